"""How what a topic names is fitted into a token limit.

Whole pages in order while they fit. A page that is too long by itself comes as its outline, with
the topic and the cost of each heading, and its beginning.
"""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sage.answers import Omitted
from sage.documents.document import (
    Slice,
    beginning,
    joined,
    section_topic,
    under_heading,
)
from sage.documents.markdown import parse_blocks
from sage.documents.plain_text import line_starts
from sage.errors import counted
from sage.sanitize import clean
from sage.token_counter import TokenCounter

# What did not fit is listed within this share of the limit, so that the whole answer keeps it.
OMITTED_SHARE = 0.1
MAX_OMITTED_TOKENS = 800
MAX_UNCOUNTED = 25
OUTLINE_SHARE = 0.3
MAX_OUTLINE_TOKENS = 3_000
_LONGEST_TOKEN = 16  # characters; longer ones are rules and blanks


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of an answer, and what it left out."""

    content: str
    token_count: int
    omitted: list[Omitted]
    complete: bool


def fit(
    slices: Sequence[Slice], unread: Sequence[Omitted], max_tokens: int, counter: TokenCounter
) -> Reading:
    """Whole slices in order while they fit, then a list of the rest.

    Args:
        unread: what the deadline kept from being loaded; it joins the list.
    """
    if not counter.loaded:  # time ran out before anything could be counted
        return Reading("", 0, list(unread[:MAX_UNCOUNTED]), not unread)
    cut = _Cut(list(slices), list(unread), counter)
    if not unread and cut.may_fit(max_tokens):
        content = joined(slices)
        tokens = counter.count(content)
        if tokens <= max_tokens:
            return Reading(content, tokens, [], True)
    reserve = min(MAX_OMITTED_TOKENS, int(max_tokens * OMITTED_SHARE))
    return cut.within(max_tokens - reserve, reserve)


def most_counted(max_tokens: int) -> int:
    """Slices of more tokens than that never fit, whatever the blanks at their ends count."""
    return 2 * max_tokens + 1_000


def read_call(topic: str, max_tokens: int | None = None) -> str:
    """The call that reads a topic."""
    limit = "" if max_tokens is None else f", max_tokens={max_tokens}"
    return f'sage_get_knowledge(topic="{clean(topic)}"{limit})'


class _Cut:
    """Fits the beginning of the slices into a room."""

    def __init__(self, slices: list[Slice], unread: list[Omitted], counter: TokenCounter) -> None:
        self._slices = slices
        self._unread = unread
        self._counter = counter

    def may_fit(self, room: int) -> bool:
        """Whether everything could fit: blanks at the ends are in the sum, not in the content."""
        return self._fitting(most_counted(room)) == len(self._slices)

    def within(self, room: int, reserve: int) -> Reading:
        """As many slices as fit, and the list of the rest."""
        fitting = self._fitting(room)
        if not self._unread:
            fitting = min(fitting, len(self._slices) - 1)  # all of it is known not to fit
        while True:
            content = self._content(fitting)
            tokens = self._counter.count(content)
            if tokens <= room or not fitting:
                break
            fitting -= 1
        if not fitting and self._slices:
            return self._opened(room, reserve)
        omitted = _bounded(self._rest(fitting), reserve, self._counter)
        return Reading(*_if_room(content, tokens, room), omitted, False)

    def _opened(self, room: int, reserve: int) -> Reading:
        """Not even the first slice fits: its outline and its beginning, and the others listed."""
        page = _LongPage(self._slices[0], self._counter)
        others = len(self._slices) - 1 + len(self._unread)
        content, following = page.within(room, others)
        tokens = self._counter.count(content)
        omitted = _bounded([*following, *self._rest(1)], reserve, self._counter)
        return Reading(*_if_room(content, tokens, room), omitted, False)

    def _fitting(self, room: int) -> int:
        """How many slices fit by the sum of their counts; the exact check comes later.

        Counting stops at the limit, so a large layer is not counted whole.
        """
        used = 0
        for position, one in enumerate(self._slices):
            used += self._counter.count_slice(one.document, one.start, one.end)
            used += self._counter.count(one.mark)
            if used > room:
                return position
        return len(self._slices)

    def _content(self, fitting: int) -> str:
        left = len(self._slices) - fitting + len(self._unread)
        following = self._slices[fitting].topic if fitting < len(self._slices) else None
        note = _cut_note(left, read_call(following or self._unread[0]["topic"]))
        shown = self._slices[:fitting]
        return f"{joined(shown)}\n\n{note}" if shown else note

    def _rest(self, fitting: int) -> Iterator[Omitted]:
        for one in self._slices[fitting:]:
            yield _omitted(one, self._counter)
        yield from self._unread


class _Ending(NamedTuple):
    """Where a beginning may end, and the section that follows there."""

    offset: int
    following: int | None


class _LongPage:
    """One page, or what stands below one heading, that is longer than the room."""

    def __init__(self, page: Slice, counter: TokenCounter) -> None:
        self._page = page
        self._counter = counter
        self._sections = [
            position
            for position, section in enumerate(page.document.sections)
            if page.start <= section.start and section.end <= page.end
        ]

    def within(self, room: int, others: int) -> tuple[str, list[Omitted]]:
        """The outline and the beginning, and what follows that beginning.

        Args:
            others: how many other pages were asked for.
        """
        needed = self._counter.count(self._page.text)
        whole = _cut_note(others, read_call(self._page.topic, needed + needed // 5 + 100))
        outline = self._outline(min(MAX_OUTLINE_TOKENS, int(room * OUTLINE_SHARE)))
        summary = "\n\n".join(filter(None, (self._words(needed, bool(outline)), outline)))

        def content(ending: _Ending) -> str:
            shown = beginning(self._page, ending.offset)
            next_call = _cut_note(others, self._call(ending.following))
            note = whole if ending.following is None else next_call
            return f"{shown.mark}{summary}\n\n{shown.written}\n\n{note}"

        endings = self._endings(room)
        fitting = bisect.bisect_right(
            endings, room, key=lambda ending: self._counter.count(content(ending))
        )
        if fitting:
            ending = endings[fitting - 1]
            return content(ending), self._following(ending.offset)
        bare = f"{self._page.mark}{summary}\n\n{whole}"
        fits = outline and self._counter.count(bare) <= room
        return bare if fits else whole, self._following(self._page.start)

    def _words(self, needed: int, outlined: bool) -> str:
        what = "its headings with their topics and tokens, and " if outlined else ""
        return f"[{needed:,} tokens, more than asked for: {what}its beginning.]"

    def _outline(self, room: int) -> str:
        """The headings down to the deepest level for which there is room."""
        document = self._page.document
        headed = [one for one in self._sections[1:] if document.sections[one].level > 1]
        levels = sorted({document.sections[one].level for one in headed}, reverse=True)
        for deepest in levels:
            shown = [one for one in headed if document.sections[one].level <= deepest]
            if len(shown) * 8 > room:  # a line has more tokens than that
                continue
            lines = [self._line(position, levels[-1]) for position in shown]
            outline = "\n".join(lines)
            if self._counter.count(outline) <= room:
                return outline
        return ""

    def _line(self, position: int, top: int) -> str:
        document = self._page.document
        section = document.sections[position]
        tokens = self._counter.count(under_heading(document, position, self._page.notice).text)
        name = " ".join(clean(section.heading).split()) or "(no words)"
        indent = "  " * (section.level - top)
        return f"{indent}- {name}: {clean(section_topic(document, section))} ({tokens:,} tokens)"

    def _endings(self, room: int) -> list["_Ending"]:
        """Where the beginning may end, shortest first: behind sections, or behind whole
        paragraphs when not even the first section fits.
        """
        document = self._page.document
        start = self._page.start
        sections = [
            _Ending(document.sections[position].start, position)
            for position in self._sections[1:]
            if not document.body[start : document.sections[position].start].isspace()
        ]
        first = document.body[start : document.sections[self._sections[0]].end]
        lines = line_starts(first)
        blocks = [block for block in parse_blocks(first)[:-1] if block.kind != "heading"]
        paragraphs = [_Ending(start + lines[block.end], None) for block in blocks]
        # Counting what cannot fit would take longer than all the rest.
        reach = start + room * _LONGEST_TOKEN
        return [one for one in (*paragraphs, *sections) if one.offset <= reach]

    def _call(self, position: int | None) -> str:
        document = self._page.document
        if position is None:
            return ""
        return read_call(section_topic(document, document.sections[position]))

    def _following(self, end: int) -> list[Omitted]:
        """What stands behind the beginning, by its outermost headings; else all of it."""
        document = self._page.document
        found: list[Omitted] = []
        reached = 0
        for position in self._sections if end > self._page.start else ():
            if document.sections[position].start >= end and position >= reached:
                reached = document.reach(position)
                below = under_heading(document, position, self._page.notice)
                found.append(_omitted(below, self._counter))
        return found or [_omitted(self._page, self._counter)]


def _omitted(one: Slice, counter: TokenCounter) -> Omitted:
    """What reading a topic costs, exactly."""
    return Omitted(topic=one.topic, title=one.title, tokens=counter.count(one.text))


def _bounded(rest: Iterable[Omitted], room: int, counter: TokenCounter) -> list[Omitted]:
    listed: list[Omitted] = []
    used = 0
    for omitted in rest:
        used += counter.count(str(omitted))
        if listed and used > room:
            break
        listed.append(omitted)
    return listed


def _cut_note(left: int, call: str) -> str:
    more = f", {counted(left, 'more part')}" if left else ""
    return clean(f"[Cut here{more}. Next: {call}]")


def _if_room(content: str, tokens: int, room: int) -> tuple[str, int]:
    """Nothing when there is no room even for the line that names the next call."""
    return ("", 0) if tokens > room else (content, tokens)
