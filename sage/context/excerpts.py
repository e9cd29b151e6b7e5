"""The text of a context: excerpts of documents under headings that name their place, and counted.

A heading carries the breadcrumb, the path and the lines, so that a reader can cite and fetch.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Protocol

from sage.context.passages import Passage, one_line, trail_of
from sage.documents.document import Page, Section, section_topic
from sage.sanitize import clean, heading_line, shown_id, without_forged_headings
from sage.values import OWN

BETWEEN = "\n\n"
_MAX_COUNTS = 20_000
_REASON_TOKENS = 10
"""What the reason of a source takes on the average."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage, whole or cut after some of its lines."""

    passage: Passage
    kept_lines: int = 0
    """How many of its lines are kept; 0 means all."""

    @property
    def is_cut(self) -> bool:
        """Whether something of the passage is missing."""
        return self.kept_lines > 0

    @property
    def end_line(self) -> int:
        """Its last line in the file."""
        passage = self.passage
        closing = passage.closer.count("\n")
        return passage.start_line + (self.kept_lines or len(passage.lines) - 1 - closing) - 1

    @property
    def section_names(self) -> list[str]:
        """The names of the sections of which something is in it."""
        named = self.passage.section_names
        return [one.name for one in named if one.start_line <= self.end_line]

    def text(self, with_heading: bool) -> str:
        """Its text as it stands in the context, with a mark where it is cut."""
        passage = self.passage
        text = passage.text
        if self.kept_lines:
            text = text[: passage.lines[self.kept_lines]].rstrip() + BETWEEN + cut_mark(passage)
        return text if with_heading else text[passage.inner_offset :]


@dataclass(frozen=True)
class DocumentExcerpts:
    """What a context holds of one document, in its order, under one heading."""

    excerpts: tuple[Excerpt, ...]

    @property
    def document(self) -> Page:
        """The document it is from."""
        return self.excerpts[0].passage.document

    @property
    def topic(self) -> str:
        """The address of the section that all of it lies below."""
        if len(self.excerpts) == 1:
            return self.excerpts[0].passage.topic
        if len(self.trail) > 1:
            for section in reversed(self.document.sections[: self.excerpts[0].passage.first + 1]):
                if trail_of(self.document, section) == self.trail:
                    return section_topic(self.document, section)
        return self.document.topic

    @property
    def id(self) -> str:
        """The document's own name, where there is one that its topic does not say."""
        return shown_id(self.document.topic, self.document.id)

    @cached_property
    def trail(self) -> tuple[str, ...]:
        """The names that all excerpts have in common, from the document down."""
        trails = [excerpt.passage.trail for excerpt in self.excerpts]
        if len(trails) == 1:
            return trails[0]
        shared = takewhile(lambda names: len(set(names)) == 1, zip(*trails, strict=False))
        return tuple(names[0] for names in shared) or trails[0][:1]

    @property
    def lines(self) -> str:
        """The lines in the file: `12-20,33-40`."""
        ranges: list[tuple[int, int]] = []
        before: Excerpt | None = None
        for excerpt in self.excerpts:
            first = excerpt.passage.start_line
            if before and not before.is_cut and before.passage.end == excerpt.passage.first:
                first = ranges.pop()[0]
            ranges.append((first, excerpt.end_line))
            before = excerpt
        return ",".join(f"{first}-{last}" for first, last in ranges)

    @property
    def heading(self) -> str:
        """Where it comes from, in one line."""
        return heading_line(" > ".join(self.trail), self.excerpts[0].passage.place, self.lines)

    @property
    def bodies(self) -> list[str]:
        """The text of each excerpt, below the headings above it that were not shown yet."""
        shown = set(self.trail)
        bodies = []
        for excerpt in self.excerpts:
            above = [one for one in _above(excerpt.passage) if one_line(one.heading) not in shown]
            lines = [f"{'#' * one.level} {one_line(one.heading)}" for one in above]
            text = excerpt.text(self.shows_heading(excerpt))
            bodies.append(BETWEEN.join((*map(without_forged_headings, lines), text)))
            shown.update(excerpt.passage.trail)
        return bodies

    @property
    def text(self) -> str:
        """All of it as it stands in the context."""
        return BETWEEN.join((self.heading, *self.bodies))

    def shows_heading(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt's own heading stands in the text: not when it ends the common one."""
        return excerpt is not self.excerpts[0] or excerpt.passage.trail != self.trail


def in_order(excerpts: Sequence[Excerpt]) -> DocumentExcerpts:
    """The excerpts of one document in its order."""
    return DocumentExcerpts(tuple(sorted(excerpts, key=lambda one: one.passage.first)))


def joined(documents: Iterable[DocumentExcerpts]) -> str:
    """The text of a context."""
    return BETWEEN.join(one.text for one in documents)


def cut_mark(passage: Passage) -> str:
    """The line that says that text is missing, and how to get it."""
    layer, topic = clean(passage.document.layer), clean(passage.topic)
    return f'[cut here; the rest: sage_get_knowledge(layer="{layer}", topic="{topic}")]'


class ExactCounter(Protocol):
    """What counts tokens exactly."""

    def count(self, text: str) -> int:
        """Those of a text."""


class TokenTally:
    """Counts the tokens that excerpts take in an answer; what was counted once is kept.

    An answer is JSON, where a line break is two characters: counted is the text as it is there.
    The sum of the pieces differs from the count of the whole by a few tokens.
    """

    def __init__(self, counter: ExactCounter) -> None:
        self._counter = counter
        self._counts: dict[str, int] = {}

    def count(self, text: str) -> int:
        """The exact tokens of a text."""
        return self._counter.count(text)

    def in_json(self, value: object) -> int:
        """The exact tokens of a value as compact JSON."""
        return self._counter.count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def excerpt(self, excerpt: Excerpt) -> int:
        """The tokens of an excerpt's own text, without its heading."""
        counts = excerpt.passage.counts
        known = counts.get(excerpt.kept_lines)
        if known is None:
            known = counts[excerpt.kept_lines] = self.in_json(excerpt.text(False))
        return known

    def document(self, held: DocumentExcerpts) -> int:
        """The tokens that what is held of a document takes: text, source and names."""
        tokens = self._kept(held.heading) + self._kept(held.topic) + len(held.excerpts) * 4
        for excerpt in held.excerpts:
            tokens += self.excerpt(excerpt) + sum(map(self._kept, excerpt.section_names))
            if held.shows_heading(excerpt):
                tokens += self._kept(excerpt.passage.sections[0].heading)
        if held.id:
            tokens += self._kept(held.id) + 4
        if held.document.source != OWN:
            tokens += self._kept(held.document.source) + 4
        return tokens + _REASON_TOKENS + 12

    def _kept(self, text: str) -> int:
        known = self._counts.get(text)
        if known is None:
            if len(self._counts) >= _MAX_COUNTS:
                self._counts.clear()
            known = self._counts[text] = self._counter.count(text) + 2
        return known


def _above(passage: Passage) -> list[Section]:
    """The sections that a passage lies below, outermost first, without the page's title."""
    above: list[Section] = []
    level = passage.sections[0].level
    for section in reversed(passage.document.sections[: passage.first]):
        if 1 < section.level < level:
            above.append(section)
            level = section.level
    return above[::-1]
