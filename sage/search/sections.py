"""The sections that are shown: packed with their documents in the index, unpacked when found.

A record holds what is shown of one document. A found section is one of its sections with what an
answer can show of it; which are found, and how good they are, is the ranking's.
"""

import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from sage.documents.document import Heading, Page, sections_below
from sage.documents.plain_text import as_shown
from sage.sanitize import clean, mark_above, status_notice
from sage.search.catalog import Catalog, DocumentEntry
from sage.search.index_reader import IndexReader
from sage.search.query import NO_FILTERS, Concept, Filters
from sage.search.scoring import Held, Ranked, Verdict, shown_score
from sage.terms.analysis import JOIN
from sage.terms.index_file import DAMAGED, UntrustedIndex
from sage.values import RELEVANCE

MAX_RECORD = 1 << 26
"""Bytes that one document may take when it is unpacked."""
PLAIN_TYPES = ("", "guide", "reference")
"""What a page is unless it says otherwise: not worth a word in an answer."""
_SAME = 0.75
"""The share of their words that two pages of one title have in common when one is a copy or
another version of the other."""
_LONG_COPY = 200
"""Characters of a section that no two pages have in common by chance."""
_MAX_DOCUMENTS = 50
"""Documents kept unpacked: the results of one search."""
_SECOND_SECTIONS = 1
"""The first so many documents may show a second section."""
_WORD = re.compile(r"\w+")


class SectionEntry(NamedTuple):
    """One indexed section of a document."""

    ordinal: int
    """Its place in the document's sections."""
    heading: str
    """The breadcrumb, outermost first."""
    anchor: str
    """What follows # in its topic; empty where the document's topic is as good."""
    start_line: int
    end_line: int
    last_line: int
    """The last line of what its topic reads: everything below its heading."""
    tokens: int
    """Those of what its topic reads, without the lines above it."""
    length: int
    """Words, for the ranking."""
    heading_length: int
    """Words of its own heading that say something."""
    text: str
    """As it is written, its heading included, without a footer that many documents share."""


class StoredDocument(NamedTuple):
    """What a document says, and its indexed sections: read only when it is a result."""

    summary: str
    sections: tuple[SectionEntry, ...]
    headings: tuple[Heading, ...]
    """Of all its sections, also of those that are not indexed."""
    last_line: int
    body: str


def heading_words(section: SectionEntry) -> int:
    """The words that a heading is said with; none where it is the title, which has its field."""
    return max(section.heading_length, 1) if section.anchor else 0


ReadDocument = Callable[[int], StoredDocument]
"""What is kept of the document of a slot."""


def pack_record(document: StoredDocument) -> bytes:
    """What is kept of a document as bytes; of the text of a section only where it ends."""
    headings = document.headings
    ends = (headings[one.ordinal].start + len(one.text) for one in document.sections)
    sections = [(*one[:-1], end) for one, end in zip(document.sections, ends, strict=True)]
    kept = (document.summary, sections, *document[2:])
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), level=1)


def unpack_record(record: bytes) -> StoredDocument:
    """What was packed.

    Raises:
        UntrustedIndex: the bytes are something else.
    """
    try:
        opened = zlib.decompressobj()
        data = opened.decompress(record, MAX_RECORD)
        summary, sections, headings, last_line, body = json.loads(
            data.decode("utf-8", "surrogatepass")
        )
        headings = tuple(map(Heading._make, headings))
        for section in sections:
            section[-1] = body[headings[section[0]].start : section[-1]]
        sections = tuple(map(SectionEntry._make, sections))
    except (LookupError, RecursionError, TypeError, ValueError, zlib.error) as error:
        raise UntrustedIndex(DAMAGED) from error
    document = StoredDocument(summary, sections, headings, last_line, body)
    if not opened.eof or not _is_stored(document):
        raise UntrustedIndex(DAMAGED)
    return document


def page_of(entry: DocumentEntry, stored: StoredDocument) -> Page:
    """A page as it was indexed."""
    return Page(
        path=entry.path,
        layer=entry.layer,
        source=entry.source,
        topic=entry.topic,
        title=entry.title,
        id=entry.id,
        priority=entry.priority,
        body=stored.body,
        sections=tuple(sections_below(stored.headings, stored.last_line, len(stored.body))),
    )


def _is_stored(document: StoredDocument) -> bool:
    """Whether every value is of its type; a record of ours may still lie at a wrong place."""
    texts = (document.summary, document.body)
    return (
        {str}.issuperset(map(type, texts))
        and type(document.last_line) is int
        and _have_types(document.sections, _SECTION_TYPES)
        and _have_types(document.headings, _HEADING_TYPES)
    )


def _have_types(rows: Sequence[Sequence[Any]], types: Sequence[type]) -> bool:
    # Of every section of every result: one by one took a third of unpacking it.
    return [*map(type, chain.from_iterable(rows))] == [*types] * len(rows)


_SECTION_TYPES = tuple(SectionEntry.__annotations__.values())
_HEADING_TYPES = tuple(Heading.__annotations__.values())


class Highlights(NamedTuple):
    """What was looked for: for each form its concept, and how rare each concept is."""

    owners: Mapping[str, int]
    rarities: Sequence[float]


@dataclass(slots=True)
class FoundSection:
    """A section of a document that was found, or a document without any."""

    entry: DocumentEntry
    section: SectionEntry | None
    score: float
    summary: str
    """What the document says of itself."""
    replaced_by: str
    """The topic of the page that is in force in its place."""
    highlights: Highlights
    copies: int = field(default=0)
    """How many other pages say the same."""
    by_meaning: bool = field(default=False)
    """Whether no word of the query led to it."""

    @property
    def text(self) -> str:
        """The section as it is written, its heading included."""
        return self.section.text if self.section else ""

    @property
    def path(self) -> str:
        """The file."""
        return self.entry.path

    @property
    def title(self) -> str:
        """The document's."""
        return self.entry.title

    @property
    def heading(self) -> str:
        """The breadcrumb, outermost first."""
        return self.section.heading if self.section else ""

    @property
    def topic(self) -> str:
        """What to read next."""
        anchor = self.section.anchor if self.section else ""
        return f"{self.entry.topic}#{anchor}" if anchor else self.entry.topic

    @property
    def lines(self) -> list[int]:
        """Its first and last line in the file."""
        return [self.section.start_line, self.section.end_line] if self.section else [1, 1]

    @property
    def tokens(self) -> int:
        """Those of what its topic reads, without the line above it."""
        return self.section.tokens if self.section and self.section.anchor else self.entry.tokens

    @property
    def mark(self) -> str:
        """The lines above what its topic reads."""
        part = self.section if self.section and self.section.anchor else None
        lines = (part.start_line, part.last_line) if part else None
        replaced_by = self.replaced_by or self.entry.superseded_by
        return mark_above(self.entry.path, lines, status_notice(self.entry.status, replaced_by))

    def shown(self) -> str:
        """The section as a reader of the site sees it."""
        return clean(as_shown(self.text)).strip("\n")

    def says_the_same(self, other: "FoundSection") -> bool:
        """Whether another page is a copy of this one, or this one in another version."""
        text = self.text
        if not text or self.entry.path == other.entry.path:
            return False
        if self.entry.title.casefold() != other.entry.title.casefold():
            return len(text) >= _LONG_COPY and text == other.text
        mine, theirs = set(_WORD.findall(text)), set(_WORD.findall(other.text))
        return len(mine & theirs) >= _SAME * len(mine | theirs)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    sections: list[FoundSection]
    total: int
    verdict: Verdict
    missing: tuple[str, ...] = ()
    """What was asked for and no document holds."""
    note: str = ""
    complete: bool = True
    paged: bool = False
    """Whether a part of a list was asked for rather than the best answers."""
    offset: int = 0
    more: bool = False
    """Whether others follow the sections."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What is asked of a search beside its words: which part of all that match, and of which."""

    limit: int
    offset: int = 0
    sort: str = RELEVANCE
    layers: Collection[str] | None = None
    """None means every layer that may be seen."""
    filters: Filters = NO_FILTERS

    @property
    def end(self) -> int:
        """The place behind the last one wanted."""
        return self.offset + self.limit

    @property
    def is_part(self) -> bool:
        """Whether more is asked for than the best answers."""
        return self.offset > 0 or self.sort != RELEVANCE


class IndexedDocuments:
    """What is kept of the documents of one generation; those last asked for are unpacked."""

    def __init__(self, catalog: Catalog, reader: IndexReader) -> None:
        self._catalog = catalog
        self._reader = reader
        self._unpacked: dict[int, StoredDocument] = {}

    def fetch(self, slots: Iterable[int]) -> None:
        """Have what is shown of some documents at hand, where they are not."""
        firsts = self._catalog.first_rows
        self._reader.fetch([firsts[slot] for slot in slots if slot not in self._unpacked])

    def document(self, slot: int) -> StoredDocument:
        """What is shown of a document, and its indexed sections."""
        known = self._unpacked.get(slot)
        if known is None:
            known = self.read(slot)
            if len(self._unpacked) >= _MAX_DOCUMENTS:
                self._unpacked = {}
            self._unpacked[slot] = known
        return known

    def heading_lengths(self, rows: Sequence[int], first: Iterable[int]) -> list[int]:
        """The words of the headings of some sections; 0 where that is the title.

        Args:
            first: the documents that will most likely be read afterwards.
        """
        known = self._reader.headings
        if known is not None:
            return [known[row] for row in rows]
        owners, firsts = self._catalog.owners, self._catalog.first_rows
        self.fetch([*(owners[row] for row in rows), *first])
        places = ((owners[row], row - firsts[owners[row]] - 1) for row in rows)
        return [heading_words(self.document(slot).sections[place]) for slot, place in places]

    def page(self, path: str) -> Page:
        """A page as it was indexed.

        Raises:
            KeyError: it was not.
        """
        slot = self._catalog.places[path]
        return page_of(self._catalog.entry(slot), self.document(slot))

    def read(self, slot: int) -> StoredDocument:
        """The same, read from the index each time: for those who go through all documents."""
        stored = unpack_record(self._reader.record(self._catalog.first_rows[slot]))
        if len(stored.sections) != self._catalog.entry(slot).indexed_sections:
            raise UntrustedIndex(DAMAGED)
        return stored


class FoundSections:
    """Makes found sections of what was ranked in one generation of the index."""

    def __init__(self, catalog: Catalog, documents: IndexedDocuments) -> None:
        self._catalog = catalog
        self._documents = documents

    def best(
        self,
        ranked: Sequence[Ranked],
        highlights: Highlights,
        possible: float,
        limit: int,
        alone: Collection[int] = (),
    ) -> list[FoundSection]:
        """The best sections in order: a page's second one after its first, copies as one.

        Args:
            possible: the strength of a document that holds all that was asked for.
            alone: the slots that no word of the query led to.
        """
        found: list[FoundSection] = []
        order = self._in_force(ranked)
        self._documents.fetch(one.slot for one in order[:limit])
        for place, one in enumerate(order):
            score = shown_score(one.strength, possible)
            section = self.one(one.slot, one.section, score, highlights)
            section.by_meaning = one.slot in alone
            same = next((other for other in found if other.says_the_same(section)), None)
            if same is not None:
                same.copies += 1
                continue
            found.append(section)
            if one.second >= 0 and place < _SECOND_SECTIONS:
                found.append(self.one(one.slot, one.second, score, highlights))
            if len(found) >= limit:
                break
        return found[:limit]

    def one(self, slot: int, place: int, score: float, highlights: Highlights) -> FoundSection:
        """A section of a document; the document itself where the place is -1."""
        stored = self._documents.document(slot)
        section = stored.sections[place] if place >= 0 else None
        successor = self._catalog.successors.get(slot)
        replaced_by = self._catalog.entry(successor).topic if successor is not None else ""
        entry = self._catalog.entry(slot)
        return FoundSection(entry, section, score, stored.summary, replaced_by, highlights)

    def _in_force(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """The ranked documents, each page that was replaced behind the one that replaces it."""
        order = list(ranked)
        for one in ranked if self._catalog.successors else ():
            slots = [other.slot for other in order]
            here, successor = slots.index(one.slot), self._catalog.successors.get(one.slot)
            if successor in slots[here:]:
                newer = order.pop(slots.index(successor))
                order.insert(here, newer._replace(strength=order[here].strength))
        return order


def highlights_of(matches: Callable[[Concept], Held], concepts: Sequence[Concept]) -> Highlights:
    """What sections are looked through for."""
    return Highlights(
        owners_of([[form for form, _ in concept.forms] for concept in concepts]),
        [matches(concept).rarity for concept in concepts],
    )


def owners_of(concepts: Sequence[Iterable[str]]) -> dict[str, int]:
    """For each form the concept it is of."""
    owners: dict[str, int] = {}
    for number, forms in enumerate(concepts):
        for form in forms:
            owners.setdefault(form.removesuffix(JOIN), number)
    return owners
