"""The slices of documents that are read: a whole page, or what stands below one heading.

Each comes under a line that says where it is from, and one more when the page is not in force.
What reading a topic costs is the count of exactly this text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sage.documents.document import Document, section_topic
from sage.documents.plain_text import line_starts
from sage.sanitize import clean, mark_above, without_forged_comments


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice of a document's body: all of it, or the sections under one heading."""

    document: Document
    topic: str
    title: str
    start: int
    end: int
    lines: tuple[int, int] | None = None
    notice: str = ""
    """What a reader must know first: that the page is a draft, or replaced by another."""

    @property
    def text(self) -> str:
        """The slice under the path it comes from."""
        return self.mark + self.written

    @property
    def written(self) -> str:
        """What the page says, as it may leave."""
        # Cleaned before it is counted, so that what leaves is exactly what was counted.
        written = clean(self.document.body[self.start : self.end]).strip()
        return without_forged_comments(written)

    @property
    def mark(self) -> str:
        """The lines above the slice: where it comes from, and whether it is in force."""
        return mark_above(self.document.path, self.lines, self.notice)


def whole(document: Document, notice: str = "") -> Slice:
    """A document as one slice."""
    return Slice(document, document.topic, document.title, 0, len(document.body), notice=notice)


def under_heading(document: Document, position: int, notice: str = "") -> Slice:
    """A section with everything below its heading."""
    return _between(document, position, document.reach(position), notice)


def beginning(page: Slice, end: int) -> Slice:
    """What stands before an offset of the body."""
    first = page.lines[0] if page.lines else page.document.sections[0].start_line
    last = first + len(line_starts(page.document.body[page.start : end])) - 2
    return replace(page, end=end, lines=(first, max(first, last)))


def joined(slices: Iterable[Slice]) -> str:
    return "\n\n".join(one.text for one in slices)


def _between(document: Document, first: int, end: int, notice: str) -> Slice:
    opening, last = document.sections[first], document.sections[end - 1]
    return Slice(
        document,
        section_topic(document, opening),
        opening.heading or document.title,
        opening.start,
        last.end,
        (opening.start_line, last.end_line),
        notice,
    )
