"""Token counts of the pieces of a pack, kept so that a warm call counts nothing twice.

A tokenizer never joins what stands before a line break to what begins behind it, so the pieces'
counts add up to the count of the whole.
"""

from collections.abc import Sequence

from sage.parts import BETWEEN, Excerpt, Part, joined
from sage.tokens import BUNDLED, ESTIMATE, TokenCounter

# In the other encodings a piece that begins with blanks or a slash is joined to the break before.
_ADDITIVE = frozenset({BUNDLED, ESTIMATE})
_MAX_HEADINGS = 20_000


class Tally:
    """Counts pieces; shared by all packs of a knowledge base."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._headings: dict[str, int] = {}

    def inner(self, excerpt: Excerpt) -> int:
        """The tokens of an excerpt without its heading, and of the break behind it."""
        return self._excerpt(excerpt, False)

    def part(self, part: Part) -> int:
        """The tokens of a part and of the break behind it."""
        excerpts = (self._excerpt(one, part.shows_heading(one)) for one in part.excerpts)
        return self._heading(part.heading) + sum(excerpts)

    def whole(self, parts: Sequence[Part]) -> int:
        """The exact tokens of a pack."""
        if not parts:
            return 0
        if self._counter.encoding not in _ADDITIVE:
            return self._counter.count(joined(parts))
        last = parts[-1].excerpts[-1]
        shown = parts[-1].shows_heading(last)
        text = last.text(shown)
        return sum(map(self.part, parts)) - self._excerpt(last, shown) + self._counter.count(text)

    def _excerpt(self, excerpt: Excerpt, with_heading: bool) -> int:
        key = (excerpt.kept_lines, with_heading)
        known = excerpt.passage.counts.get(key)
        if known is None:
            known = self._counter.count(excerpt.text(with_heading) + BETWEEN)
            excerpt.passage.counts[key] = known
        return known

    def _heading(self, heading: str) -> int:
        known = self._headings.get(heading)
        if known is None:
            if len(self._headings) >= _MAX_HEADINGS:
                self._headings.clear()
            known = self._headings[heading] = self._counter.count(heading + BETWEEN)
        return known
