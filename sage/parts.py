"""The parts of a pack: neighbouring excerpts of a document, under a heading that names the place.

The heading carries the breadcrumb, the path and the lines, so that a reader can cite and fetch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from sage.documents import Document, section_topic
from sage.passages import Passage, trail_of
from sage.scrub import clean

BETWEEN = "\n\n"


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
    def section_names(self) -> list[tuple[str, str]]:
        """The name and the topic of each section of which something is in it."""
        held = [one for one in self.passage.section_names if one.start_line <= self.end_line]
        return [(one.name, one.topic) for one in held]

    def text(self, with_heading: bool) -> str:
        """Its text as it stands in the pack, with a mark where it is cut."""
        passage = self.passage
        text = passage.text
        if self.kept_lines:
            text = text[: passage.lines[self.kept_lines]].rstrip() + BETWEEN + cut_mark(passage)
        return text if with_heading else text[passage.inner_offset :]


@dataclass(frozen=True)
class Part:
    """Excerpts that follow each other in a document, under one heading."""

    excerpts: tuple[Excerpt, ...]

    @property
    def document(self) -> Document:
        """The document it is from."""
        return self.excerpts[0].passage.document

    @property
    def topic(self) -> str:
        """The address of the section that all of it lies below."""
        trail = self.trail
        if len(self.excerpts) == 1:
            return self.excerpts[0].passage.topic
        if len(trail) > 1:
            for section in reversed(self.document.sections[: self.excerpts[0].passage.first + 1]):
                if trail_of(self.document, section) == trail:
                    return section_topic(self.document, section)
        return self.document.topic

    @cached_property
    def trail(self) -> tuple[str, ...]:
        """The names that all excerpts have in common, from the document down."""
        trails = [excerpt.passage.trail for excerpt in self.excerpts]
        if len(trails) == 1:
            return trails[0]
        shared = takewhile(lambda names: len(set(names)) == 1, zip(*trails, strict=False))
        return tuple(names[0] for names in shared) or trails[0][:1]

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line in the file."""
        return self.excerpts[0].passage.start_line, self.excerpts[-1].end_line

    @property
    def heading(self) -> str:
        """Where it comes from, in one line."""
        first, last = self.lines
        return f"# {' > '.join(self.trail)} ({self.excerpts[0].passage.place}:{first}-{last})"

    @property
    def text(self) -> str:
        """The part as it stands in the pack."""
        bodies = [excerpt.text(self.shows_heading(excerpt)) for excerpt in self.excerpts]
        return BETWEEN.join((self.heading, *bodies))

    def shows_heading(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt's own heading stands in the text: not when it ends the part's."""
        return excerpt is not self.excerpts[0] or excerpt.passage.trail != self.trail


def parts_of(excerpts: Sequence[Excerpt]) -> Iterator[Part]:
    """The excerpts of one document as parts, in its order."""
    run: list[Excerpt] = []
    for excerpt in sorted(excerpts, key=lambda one: one.passage.first):
        if run and (run[-1].is_cut or run[-1].passage.end != excerpt.passage.first):
            yield Part(tuple(run))
            run = []
        run.append(excerpt)
    if run:
        yield Part(tuple(run))


def joined(parts: Iterable[Part]) -> str:
    """The text of a pack."""
    return BETWEEN.join(part.text for part in parts)


def fetch_call(document: Document, topic: str) -> str:
    """The call that reads a topic in full."""
    layer = clean(document.layer)
    return f'sage_get_knowledge(layer="{layer}", topic="{clean(topic)}")'


def cut_mark(passage: Passage) -> str:
    """The line that says that text is missing, and how to get it."""
    return f"[cut here; the rest: {fetch_call(passage.document, passage.topic)}]"
