"""What `sage_get_knowledge` answers: whole documents in reading order, within a token limit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sage.answers import Omitted
from sage.documents import Document, section_topic
from sage.scrub import clean
from sage.tokens import TokenCounter

# What did not fit is outlined within this share of the limit, so that the whole answer keeps it.
OUTLINE_SHARE = 0.1
MAX_OUTLINE_TOKENS = 800
MAX_UNCOUNTED = 25


@dataclass(frozen=True, slots=True)
class Part:
    """A slice of a document's body: all of it, or the sections under one heading."""

    document: Document
    topic: str
    title: str
    start: int
    end: int
    lines: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The slice under the path it comes from."""
        # Cleaned before it is counted, so that what leaves is exactly what was counted.
        return self.mark + clean(self.document.body[self.start : self.end]).strip()

    @property
    def mark(self) -> str:
        """The line above the slice that says where it comes from."""
        place = f":{self.lines[0]}-{self.lines[1]}" if self.lines else ""
        return clean(f"<!-- {self.document.path}{place} -->\n\n")


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of an answer, and what it left out."""

    content: str
    token_count: int
    omitted: list[Omitted]
    complete: bool


def whole(document: Document) -> Part:
    """A document as one part."""
    return Part(document, document.topic, document.title, 0, len(document.body))


def under_heading(document: Document, position: int) -> Part:
    """A section with everything below its heading."""
    first = document.sections[position]
    last = document.sections[document.reach(position) - 1]
    return Part(
        document,
        section_topic(document, first),
        first.heading or document.title,
        first.start,
        last.end,
        (first.start_line, last.end_line),
    )


def single_sections(document: Document) -> list[Part]:
    """A document as one part per section."""
    return [
        Part(
            document,
            section_topic(document, section),
            section.heading or document.title,
            section.start,
            section.end,
            (section.start_line, section.end_line),
        )
        for section in document.sections
    ]


def read(
    parts: Sequence[Part], unread: Sequence[Omitted], max_tokens: int, counter: TokenCounter
) -> Reading:
    """Whole parts in order while they fit, then an outline of the rest.

    Args:
        unread: what the deadline kept from being loaded; it joins the outline.
    """
    if not counter.loaded:  # time ran out before anything could be counted
        return Reading("", 0, list(unread[:MAX_UNCOUNTED]), not unread)
    cut = _Cut(list(parts), list(unread), counter)
    if not unread and cut.may_fit(max_tokens):
        content = _joined(parts)
        tokens = counter.count(content)
        if tokens <= max_tokens:
            return Reading(content, tokens, [], True)
    reserve = min(MAX_OUTLINE_TOKENS, int(max_tokens * OUTLINE_SHARE))
    return cut.within(max_tokens - reserve, reserve)


class _Cut:
    """Fits the beginning of the parts into a room."""

    def __init__(self, parts: list[Part], unread: list[Omitted], counter: TokenCounter) -> None:
        self._parts = parts
        self._unread = unread
        self._counter = counter

    def may_fit(self, room: int) -> bool:
        """Whether everything could fit: blanks at the ends are in the sum, not in the content."""
        return self._fitting(2 * room + 1_000) == len(self._parts)

    def within(self, room: int, reserve: int) -> Reading:
        """As many parts as fit, and the outline of the rest."""
        fitting = self._fitting(room)
        if not fitting and self._parts and len(self._parts[0].document.sections) > 1:
            # Not even the first document fits: its sections are the parts.
            self._parts = _divided(self._parts[0]) + self._parts[1:]
            fitting = self._fitting(room)
        if not self._unread:
            fitting = min(fitting, len(self._parts) - 1)  # all of it is known not to fit
        while True:
            content = self._content(fitting)
            tokens = self._counter.count(content)
            if tokens <= room or not fitting:
                break
            fitting -= 1
        if tokens > room:  # no room even for the line that names the next call
            content, tokens = "", 0
        return Reading(content, tokens, self._outline(fitting, reserve), False)

    def _fitting(self, room: int) -> int:
        """How many parts fit by the sum of their counts; the exact check comes later.

        Counting stops at the limit, so a large layer is not counted whole.
        """
        used = 0
        for position, part in enumerate(self._parts):
            used += self._counter.count_slice(part.document, part.start, part.end)
            used += self._counter.count(part.mark)
            if used > room:
                return position
        return len(self._parts)

    def _content(self, fitting: int) -> str:
        shown = self._parts[:fitting]
        left = len(self._parts) - fitting + len(self._unread)
        note = clean(f"[Cut here, {left} more parts. Next: {self._next_call(fitting)}]")
        return _joined(shown) + "\n\n" + note if shown else note

    def _next_call(self, fitting: int) -> str:
        if fitting == len(self._parts):
            topic = self._unread[0]["topic"]
            return f'sage_get_knowledge(layer="{topic.split("/")[0]}", topic="{topic}")'
        part = self._parts[fitting]
        call = f'sage_get_knowledge(layer="{part.document.layer}", topic="{part.topic}"'
        if fitting > 0:
            return call + ")"
        needed = self._counter.count(part.text)
        return f"{call}, max_tokens={needed + needed // 5 + 100})"

    def _outline(self, fitting: int, reserve: int) -> list[Omitted]:
        outline: list[Omitted] = []
        used = 0
        for omitted in self._rest(fitting):
            used += self._counter.count(str(omitted))
            if outline and used > reserve:
                break
            outline.append(omitted)
        return outline

    def _rest(self, fitting: int) -> Iterator[Omitted]:
        for part in self._parts[fitting:]:
            tokens = self._counter.count_slice(part.document, part.start, part.end)
            yield Omitted(topic=part.topic, title=part.title, tokens=tokens)
        yield from self._unread


def _joined(parts: Sequence[Part]) -> str:
    return "\n\n".join(part.text for part in parts)


def _divided(part: Part) -> list[Part]:
    """The sections within a part; blank lines above the first heading are none."""
    body = part.document.body
    return [
        one
        for one in single_sections(part.document)
        if part.start <= one.start
        and one.end <= part.end
        and not body[one.start : one.end].isspace()
    ]
