"""A document and its sections, parsed from the text of one file, and the slices that are read.

A slice is a whole page, or what stands below one heading. Each comes under a line that says where
it is from, and one more when the page is not in force. What reading a topic costs is the count of
exactly this text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from sage.documents.front_matter import FrontMatter, split_front_matter
from sage.documents.markdown import Block, parse_blocks, plain_text
from sage.documents.places import topic_of
from sage.documents.plain_text import line_starts, without_site_marks
from sage.documents.problems import Problem
from sage.documents.scopes import folder_scope
from sage.sanitize import clean, mark_above, without_forged_comments
from sage.values import OWN

MAX_SUMMARY = 200
MAX_WORDS = 12_000
"""Different words of a page that are indexed: more than a real page has, and about what can be
indexed in a second."""
MAX_SEARCHED = 500_000
"""Characters that are indexed at most, however few words they repeat."""
_NO_NEED_TO_COUNT = 100_000
_USUAL_WORD = 8
_LOOKED_AT = 900  # of a first paragraph, before its marks are removed
INDEX_NAMES = frozenset({"index", "_index", "readme"})
_BOM = "\ufeff"
_WORD = re.compile(r"\S+")
_NOT_IN_SLUG = re.compile(r"[^a-z0-9_ -]+")  # of letters that are ASCII
_WORD_CATEGORIES = frozenset({"Mn", "Mc", "Me", "Nd", "Nl", "Pc"})


class Section(NamedTuple):
    """A heading and the text up to the next heading of any level."""

    heading: str
    """Plain text; empty for the text before the first heading."""
    level: int
    """1 to 6; 0 for the text before the first heading."""
    anchor: str
    """The id that the heading gives itself, else GitHub's slug; unique in the document."""
    breadcrumb: tuple[str, ...]
    """The headings from the outermost to this one."""
    start_line: int
    """Where the section begins in the file, counted from 1."""
    end_line: int
    """Its last line, inclusive."""
    start: int
    """Where it begins in the body."""
    end: int


class Heading(NamedTuple):
    """Where a section begins; the rest of it follows from the next one."""

    text: str
    level: int
    anchor: str
    line: int
    """Its line in the file, counted from 1."""
    start: int
    """Its place in the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The text of a page in its sections, and what it is called."""

    path: str
    layer: str
    topic: str
    title: str
    id: str
    """A name of its own that its front matter gives it; empty when it has none."""
    priority: int
    source: str = OWN
    """The name of the source that it comes from."""
    body: str
    """The text after the front matter, exact."""
    sections: tuple[Section, ...]
    """In order; their slices of the body make the whole body."""

    def text(self, section: Section) -> str:
        """The section's own text, heading included."""
        return self.body[section.start : section.end]

    def reach(self, position: int) -> int:
        """The position after the last section below the one at `position`."""
        level = self.sections[position].level
        end = position + 1
        while end < len(self.sections) and self.sections[end].level > level:
            end += 1
        return end

    @property
    def is_index(self) -> bool:
        """Whether the page lists others rather than says something itself."""
        return PurePosixPath(self.path).stem.casefold() in INDEX_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Page):
    """One markdown file, ready to be answered from."""

    summary: str
    meta: FrontMatter
    problems: tuple[Problem, ...] = ()
    counts: dict[tuple[int, int], int] = field(default_factory=dict, compare=False, repr=False)
    """Token counts of slices of the body, filled as they are asked for."""

    @property
    def reading_order(self) -> tuple[object, ...]:
        """Within a layer: index pages first in their folder, lower `order` first, then path."""
        return reading_order(self.path, self.is_index, self.meta.order)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names by which it is asked for."""
        return self.meta.names

    @property
    def superseded_by(self) -> str:
        """The page that it names in its own place."""
        return self.meta.superseded_by


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


def reading_order(path: str, is_index: bool, order: float | None) -> tuple[object, ...]:
    """Within a layer: index pages first in their folder, lower `order` first, then path."""
    folder, _, name = path.rpartition("/")
    place = float("inf") if order is None else order
    return (folder.casefold().split("/"), not is_index, place, name.casefold(), path)


def section_topic(document: Page, section: Section) -> str:
    """The public address of a section."""
    return f"{document.topic}#{section.anchor}" if section.anchor else document.topic


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


def parse_document(
    text: str, path: str, layer: str, topic: str = "", source: str = OWN
) -> Document:
    """Parse the text of a file. Any text gives a document; what is wrong is in its problems."""
    text = text.lstrip(_BOM)
    split = split_front_matter(text, path)
    meta = split.meta
    if not meta.applies_to and (scope := folder_scope(path)):
        meta = replace(meta, applies_to=(scope,))
    body = text[split.body_start :].lstrip(_BOM)
    first_line = len(line_starts(text[: split.body_start])) if split.body_start else 1
    blocks = parse_blocks(body)
    return Document(
        path=path,
        layer=layer,
        topic=topic or topic_of(path),
        title=split.meta.title or _heading_title(blocks) or name_title(path),
        id=meta.id,
        priority=meta.priority,
        summary=_summary(split.meta, blocks),
        meta=meta,
        body=body,
        sections=tuple(_sections(body, blocks, first_line)),
        problems=(*split.problems, *_length_problems(path, body)),
        source=source,
    )


def body_of(text: str, path: str) -> tuple[str, Sequence[Problem]]:
    """What stands behind the front matter of a file's text, and what is wrong with both."""
    text = text.lstrip(_BOM)
    split = split_front_matter(text, path)
    body = text[split.body_start :].lstrip(_BOM)
    return body, (*split.problems, *_length_problems(path, body))


def searched_length(body: str) -> int:
    """How many characters of a page are indexed: all of them, but for a flood of words."""
    if len(body) <= _NO_NEED_TO_COUNT:
        return len(body)
    seen: set[str] = set()
    left = MAX_WORDS
    for match in _WORD.finditer(body, 0, MAX_SEARCHED):
        word = match.group()
        if word in seen:
            continue
        seen.add(word)
        weight = max(1, len(word) // _USUAL_WORD)
        if weight > left:
            return match.start() + left * _USUAL_WORD
        left -= weight
    return min(len(body), MAX_SEARCHED)


def _length_problems(path: str, body: str) -> Iterator[Problem]:
    length = searched_length(body)
    if length < len(body):
        message = f"only its first {length:,} characters are searched; split it"
        yield Problem(path, "too-large", message)


def slug(heading: str) -> str:
    """GitHub's anchor for a heading."""
    words = heading.strip().lower()
    if words.isascii():
        return _NOT_IN_SLUG.sub("", words).replace(" ", "-")
    kept = (c for c in words if c in " -_" or _is_word(c))
    return "".join(kept).replace(" ", "-")


def _is_word(character: str) -> bool:
    # Not `isalnum`: GitHub drops ² and ½, which are numbers but no digits.
    return character.isalpha() or unicodedata.category(character) in _WORD_CATEGORIES


def _heading_title(blocks: list[Block]) -> str:
    return next((b.text for b in blocks if b.kind == "heading" and b.level == 1 and b.text), "")


def name_title(path: str) -> str:
    """The title of a page that has none: its file's name."""
    stem = PurePosixPath(path).stem
    name = re.sub(r"[-_\s]+", " ", stem).strip() or stem
    if name.isupper():
        name = name.lower()
    return name[:1].upper() + name[1:]


def _summary(meta: FrontMatter, blocks: list[Block]) -> str:
    described = meta.extra.get("description")
    if meta.summary or isinstance(described, str):
        return meta.summary or " ".join(str(described).split())
    return _shortened(plain_text(_first_words(blocks)[:_LOOKED_AT]))


def _first_words(blocks: list[Block]) -> str:
    """The first paragraph, unless a second heading comes before it."""
    headings = 0
    for block in blocks:
        headings += block.kind == "heading"
        if headings > 1:
            break
        if block.kind in ("paragraph", "quote"):
            words = without_site_marks(block.text[:_LOOKED_AT]).strip()
            if words:
                return words
    return ""


def _shortened(text: str) -> str:
    if len(text) <= MAX_SUMMARY:
        return text
    sentence = re.match(r".{40,199}?[.!?。](?=\s|$)|.{1,99}。", text)
    if sentence:
        return sentence.group()
    return text[:MAX_SUMMARY].rsplit(" ", 1)[0] + " …"


def _sections(body: str, blocks: list[Block], first_line: int) -> Iterator[Section]:
    starts = line_starts(body)
    found = [block for block in blocks if block.kind == "heading"]
    headings: list[Heading] = []
    if not found or starts[found[0].start] > 0:
        headings.append(Heading("", 0, "", first_line, 0))
    taken: dict[str, int] = {}
    for block in found:
        anchor = _unique(block.anchor or slug(block.text), taken)
        line, start = first_line + block.start, starts[block.start]
        headings.append(Heading(block.text, block.level, anchor, line, start))
    return sections_below(headings, first_line + max(len(starts) - 2, 0), len(body))


def sections_below(headings: Sequence[Heading], last_line: int, length: int) -> Iterator[Section]:
    """The sections that headings divide a text of so many characters into."""
    end = Heading("", 0, "", last_line + 1, length)
    trail: list[Heading] = []
    for heading, following in pairwise((*headings, end)):
        trail = [above for above in trail if above.level < heading.level] + [heading]
        names = (*(above.text for above in trail[:-1] if above.text), heading.text)
        yield Section(
            heading=heading.text,
            level=heading.level,
            anchor=heading.anchor,
            breadcrumb=names if heading.level else (),
            start_line=heading.line,
            end_line=max(heading.line, following.line - 1),
            start=heading.start,
            end=following.start,
        )


def _unique(anchor: str, taken: dict[str, int]) -> str:
    """Number a repeated anchor as GitHub does, never onto one that another heading owns."""
    if anchor not in taken:
        taken[anchor] = 0
        return anchor
    while True:
        taken[anchor] += 1
        candidate = f"{anchor}-{taken[anchor]}"
        if candidate not in taken:
            taken[candidate] = 0
            return candidate


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
