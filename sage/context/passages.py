"""What of a document can be packed: passages, each a section with the small ones below it.

Also where the text of one may be cut, and what closes a fence that a cut leaves open. What a
passage is worth to a task is the business of `scoring`.
"""

import re
import sys
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from sage.context.section_kinds import is_knowledge, kinds_of
from sage.documents.boilerplate import Footers, footers_in
from sage.documents.document import Page, Section, section_topic
from sage.documents.languages import canonical, is_main, languages_in
from sage.documents.markdown import Block, list_items, parse_blocks
from sage.documents.plain_text import FENCE, RULE, line_starts, without_site_marks
from sage.sanitize import clean, without_forged_headings

# A heading with everything below it is one passage up to about three hundred tokens.
PASSAGE_BYTES = 1_300
MAX_NAME = 90
_SHINGLE = 5
_MOTTO_BYTES = 120
"""Fewer words than this below a title are a motto, not knowledge."""
_POINTER_BYTES = 240
"""Fewer than this below the title of an index page only lead to the others."""

_HEADING = re.compile(
    r" {0,3}#{1,6}(?![^\s])[^\r\n]*(?:\r\n?|\n|\Z)"
    # The other form: lines of text over a line of = or -.
    r"|(?:[^\r\n]+(?:\r\n?|\n))+? {0,3}(?:=+|-+)[ \t]*(?:\r\n?|\n|\Z)"
)
_FENCE_LANGUAGE = re.compile(r"^ {0,3}(?:```+|~~~+)[ \t]*([A-Za-z][\w+#.-]*)", re.MULTILINE)
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n?|\n))*")
_NO_FOOTERS: Footers = MappingProxyType({})


class PassageKey(NamedTuple):
    """The place of a passage in the knowledge base."""

    path: str
    first: int
    """The position of its first section."""


class SectionName(NamedTuple):
    """A section with text of its own, as it is named to others."""

    name: str
    start_line: int


@dataclass(frozen=True, eq=False)
class Passage:
    """Neighbouring sections of one document that are packed together."""

    document: Page
    first: int
    """The position of its first section."""
    end: int
    """The position after its last section."""
    stop: int
    """Where its text ends in the body, without the rules and the footer behind it."""
    closer: str = ""
    """What must follow the text so that it leaves no fence or comment open."""
    counts: dict[int, int] = field(default_factory=dict, repr=False)
    """Token counts by the number of lines kept."""

    @cached_property
    def key(self) -> PassageKey:
        """What tells it from every other passage."""
        return PassageKey(self.document.path, self.first)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        return self.document.sections[self.first : self.end]

    @property
    def start(self) -> int:
        """Where its text begins in the body."""
        return self.sections[0].start

    @cached_property
    def inner_start(self) -> int:
        """Where its text begins behind its first heading."""
        return heading_end(self.document, self.sections[0])

    @property
    def topic(self) -> str:
        """Its public address: that of its first section, or of the document it opens."""
        if len(self.trail) == 1:
            return self.document.topic
        return section_topic(self.document, self.sections[0])

    @cached_property
    def place(self) -> str:
        """The path of its document, as it may stand in a heading."""
        return " ".join(clean(self.document.path).split())

    @cached_property
    def trail(self) -> tuple[str, ...]:
        """The title of the document and the headings down to its first section."""
        return trail_of(self.document, self.sections[0])

    @cached_property
    def section_names(self) -> tuple[SectionName, ...]:
        """Its sections that are more than a heading."""
        return tuple(
            SectionName(trail_of(self.document, section)[-1], section.start_line)
            for section in self.sections
            if _below_heading(self.document, section).strip()
        )

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds that its headings show."""
        headings = (section.heading for section in self.sections if section.level > 1)
        return kinds_of("\n".join(headings))

    @cached_property
    def code_languages(self) -> frozenset[str]:
        """The programming languages of its code."""
        body = self.document.body[self.start : self.stop]
        named = {canonical(name) for name in _FENCE_LANGUAGE.findall(body)}
        return frozenset(name for name in named if is_main(name))

    @property
    def start_line(self) -> int:
        """Its first line in the file."""
        return self.sections[0].start_line

    @cached_property
    def text(self) -> str:
        """Its text as it may leave, heading included."""
        return _served(self.document.body[self.start : self.stop]).rstrip() + self.closer

    @cached_property
    def inner_offset(self) -> int:
        """Where its text goes on behind the first heading and the blank lines below it."""
        heading = len(_served(self.document.body[self.start : self.inner_start]))
        # A line of characters that may not leave is blank once they are gone.
        blank = _BLANK_LINES.match(self.text, heading)
        return blank.end() if blank else heading

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """The offsets of the lines of its text, and its end."""
        return tuple(line_starts(self.text))

    @cached_property
    def cut_points(self) -> tuple[int, ...]:
        """The numbers of lines after which its text may end."""
        return tuple(cut_points(self.text))

    @cached_property
    def size_bytes(self) -> int:
        """The size of its text."""
        return len(self.document.body[self.start : self.stop].encode("utf-8", "replace"))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words, folded; a word of many passages is kept once for all of them."""
        found = set(re.findall(r"[^\W_]+", self.text.casefold()))
        return tuple(map(sys.intern, found))

    @cached_property
    def shingles(self) -> "array[int]":
        """Its runs of five words, without case and marks, by which repeated text is known.

        As plain numbers: sets of them took most of what a base keeps for its contexts.
        """
        words = re.findall(r"\w+", self.document.body[self.inner_start : self.stop].casefold())
        runs = (words[at : at + _SHINGLE] for at in range(max(1, len(words) - _SHINGLE + 1)))
        return array("q", {hash(tuple(run)) for run in runs})


def passages_of(document: Page, footers: Footers = _NO_FOOTERS) -> tuple[Passage, ...]:
    """The passages of a document in order; of an index page, those that say something themselves.

    Args:
        footers: by keys, the lines that end so many documents that they say nothing.
    """
    endings = footers_in(document, footers)
    kept = [
        is_knowledge(section, document.text(section), _below_heading(document, section))
        for section in document.sections
    ]
    passages = [one for one in _passages(document, kept, endings) if _says_something(one)]
    if document.is_index:
        is_less = bool(passages) and _is_motto(passages[0], _POINTER_BYTES)
    else:
        is_less = len(passages) > 1 and _is_motto(passages[0], _MOTTO_BYTES)
    return tuple(passages[is_less:])


def trail_of(document: Page, section: Section) -> tuple[str, ...]:
    """The names from the document down to a section."""
    names = section.breadcrumb
    title = next((one.heading for one in document.sections if one.level == 1), "")
    if names and names[0] == title:
        names = names[1:]
    return tuple(one_line(name) for name in (document.title, *names) if name.strip())


def heading_end(document: Page, section: Section) -> int:
    """Where the text of a section begins in the body, behind its heading and blank lines."""
    end = section.start
    if section.level:
        heading = _HEADING.match(document.body, section.start, section.end)
        end = heading.end() if heading else end
    blank = _BLANK_LINES.match(document.body, end, section.end)
    return blank.end() if blank else end


def _passages(document: Page, kept: Sequence[bool], footers: Collection[str]) -> Iterator[Passage]:
    waiting: int | None = None  # a heading without text of its own joins what is below it
    position = 0
    while position < len(document.sections):
        reach = document.reach(position)
        bare = _is_bare(document, position) and reach > position + 1
        if all(kept[position + bare : reach]) and _belongs_together(document, position, reach):
            end = reach
        elif kept[position]:
            end = position + 1
        else:
            waiting = (position if waiting is None else waiting) if bare else None
            position += 1
            continue
        joins = waiting is not None and document.reach(waiting) > position
        first = waiting if waiting is not None and joins else position
        yield _passage(document, first, end, footers)
        waiting = None
        position = end


def _belongs_together(document: Page, first: int, end: int) -> bool:
    """Whether sections are small, and none of the inner ones is for one language only."""
    start, stop = document.sections[first].start, document.sections[end - 1].end
    if len(document.body[start:stop].encode("utf-8", "replace")) > PASSAGE_BYTES:
        return False
    return not any(languages_in(one.heading) for one in document.sections[first + 1 : end])


def _is_bare(document: Page, position: int) -> bool:
    section = document.sections[position]
    return section.level > 1 and not _below_heading(document, section).strip()


def _says_something(passage: Passage) -> bool:
    """Whether words are left without the footer."""
    return bool(re.search(r"[^\W_]", passage.document.body[passage.inner_start : passage.stop]))


def _is_motto(passage: Passage, most_bytes: int) -> bool:
    """Whether a passage is a line or two below the title and nothing else."""
    is_short = passage.size_bytes - (passage.inner_start - passage.start) < most_bytes
    return is_short and len(passage.sections) == 1 and passage.sections[0].level < 2


def _served(text: str) -> str:
    """A text as it may leave: cleaned, without the marks of site generators and without a line
    that names a source."""
    return without_forged_headings(clean(without_site_marks(text)))


def _below_heading(document: Page, section: Section) -> str:
    return document.body[heading_end(document, section) : section.end]


def _passage(document: Page, first: int, end: int, footers: Collection[str]) -> Passage:
    start, stop = document.sections[first].start, document.sections[end - 1].end
    is_last = end == len(document.sections)
    text = without_ending(document.body[start:stop], footers if is_last else ())
    # Only what ends a document can be left open: a heading is none while a fence is open.
    closing = closer(clean(without_site_marks(text))) if is_last else ""
    return Passage(document, first, end, start + len(text), closing)


def one_line(name: str) -> str:
    """A name as it may stand in a heading of ours."""
    line = " ".join(clean(name).split())
    return line if len(line) <= MAX_NAME else line[: MAX_NAME - 1].rstrip() + "…"


_MAY_STAY_OPEN = re.compile(r"^ {0,3}(?:```|~~~|<)", re.MULTILINE)
_CLOSERS = ("-->", "?>", "]]>", "</pre>", "</script>", "</style>", "</textarea>", ">")


def cut_points(text: str) -> list[int]:
    """The numbers of lines after which the text may end, in order, short of the whole."""
    blocks = parse_blocks(text)
    items = [block.end for block in list_items(text)]
    points: set[int] = set()
    for block in blocks:
        points.update(_inner_points(block, items))
    for block, following in pairwise(blocks):
        if not _leads_on(block, following):
            points.add(block.end)
    return sorted(points)


def without_ending(text: str, footers: Collection[str] = ()) -> str:
    """Without the blank lines, rules and footers that end it."""
    end = len(text)
    for start in reversed(line_starts(text)[:-1]):
        line = text[start:end].rstrip()
        if line and not RULE.match(line) and line.strip() not in footers:
            break
        end = start
    return text[:end].rstrip()


def closer(text: str) -> str:
    """What closes the fence, comment or tag that runs to the end of a document."""
    if not _MAY_STAY_OPEN.search(text) or _is_closed(text):
        return ""
    blocks = parse_blocks(text)
    fence = FENCE.match(text, line_starts(text)[blocks[-1].start]) if blocks else None
    candidates = (fence.group(1), *_CLOSERS) if fence else _CLOSERS
    return next(("\n" + one for one in candidates if _is_closed(f"{text}\n{one}")), "")


def _inner_points(block: Block, items: list[int]) -> Iterator[int]:
    if block.kind == "list":
        yield from (end for end in items if block.start < end < block.end)
    elif block.kind == "table":
        # The head, the line below it and one row are the least that is a table.
        yield from range(block.start + 3, block.end)


def _leads_on(block: Block, following: Block) -> bool:
    """Whether a block only announces the next: a heading, or a paragraph that ends in a colon."""
    if block.kind in ("heading", "rule"):
        return True
    return (
        block.kind == "paragraph"
        and following.kind not in ("heading", "paragraph", "rule")
        and block.text.rstrip("*_ \n").endswith((":", "："))
    )


def _is_closed(text: str) -> bool:
    blocks = parse_blocks(f"{text}\n\n# end")
    return bool(blocks) and blocks[-1].kind == "heading" and blocks[-1].text == "end"
