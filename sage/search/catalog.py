"""What the index knows of each document without opening it: entries, and where their rows lie.

A catalog is never changed; an update makes the next one. Postings are the index's.
"""

import json
import posixpath
import zlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple

from sage.documents.document import Heading, Page, sections_below
from sage.documents.files import Stamp
from sage.documents.topics import topic_parts
from sage.search.index_file import DAMAGED, UntrustedIndex

CURRENT = "published"
_NOBODY = -1
"""In place of a document: the rows are deleted."""
MAX_RECORD = 1 << 26
"""Bytes that one document may take when it is unpacked."""


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


class DocumentEntry(NamedTuple):
    """One document as search sees it."""

    path: str
    layer: str
    source: str
    """The name of the source that it comes from."""
    topic: str
    id: str
    """The name of its own that its front matter gives it; empty when it has none."""
    title: str
    summary: str
    stamp: Stamp
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    languages: tuple[str, ...]
    task_types: tuple[str, ...]
    applies_to: tuple[str, ...]
    """Globs of the files that it belongs to."""
    type: str
    status: str
    superseded_by: str
    """What it names itself, as it is written there."""
    priority: int
    order: float | None
    last_updated: str
    is_index: bool
    title_length: int
    path_length: int
    last_lines: tuple[str, ...]
    """Keys of the lines that may be a footer."""
    section_total: int
    """All its sections, those that only point elsewhere included."""
    tokens: int
    """Those of all it says."""
    length: int
    """Words of the indexed sections, for the ranking."""
    indexed_sections: int
    """Those that can be found: not those that only point elsewhere."""
    problems: tuple[str, ...] = ()
    """What is not served as written, without the path."""

    @property
    def state(self) -> str:
        """Its status; a page that names its successor is superseded whatever else it says."""
        return "superseded" if self.superseded_by and self.status == CURRENT else self.status

    @property
    def updated(self) -> str:
        """The day that it names, else that of its file."""
        return self.last_updated or self.stamp.day

    @property
    def rows(self) -> int:
        """The rows it takes in the index: one of its own, one for each section."""
        return 1 + self.indexed_sections


class RowRange(NamedTuple):
    """Consecutive rows of one document; of none when the path is empty."""

    path: str
    rows: int


@dataclass(frozen=True)
class Catalog:
    """The documents of one generation of the index."""

    entries: Mapping[str, DocumentEntry]
    ranges: tuple[RowRange, ...]
    """All rows of the index in order, deleted ones included."""

    @cached_property
    def slots(self) -> tuple[DocumentEntry, ...]:
        """The entries in the order of their rows."""
        return tuple(self.entries[span.path] for span in self.ranges if span.path)

    @cached_property
    def successors(self) -> Mapping[int, int]:
        """For the slot of every page that another replaces, the slot of the one in force."""
        replaced = [slot for slot, entry in enumerate(self.slots) if entry.superseded_by]
        if not replaced:
            return {}
        addresses = [tuple(topic_parts(entry.topic)) for entry in self.slots]
        steps = {slot: self._named(slot, addresses) for slot in replaced}
        found: dict[int, int] = {}
        for slot in replaced:
            seen, last = {slot}, steps[slot]
            while last is not None and last in steps and last not in seen:
                seen.add(last)
                last = steps[last]
            if last is not None and last not in seen:
                found[slot] = last
        return found

    def _named(self, slot: int, addresses: Sequence[tuple[str, ...]]) -> int | None:
        """The page that another names as its successor, by its path from there, topic or title."""
        entry = self.slots[slot]
        name = entry.superseded_by.partition("#")[0]
        near = posixpath.join(posixpath.dirname(entry.path), name)
        for parts in map(tuple, map(topic_parts, (posixpath.normpath(near), name))):
            for other, address in enumerate(addresses):
                if parts and address[-len(parts) :] == parts and other != slot:
                    return other
        wanted = name.casefold()
        titled = (
            other
            for other, one in enumerate(self.slots)
            if wanted in (one.title.casefold(), one.id.casefold())
        )
        return next((other for other in titled if other != slot), None)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """For the path of each document its slot."""
        return {entry.path: slot for slot, entry in enumerate(self.slots)}

    @cached_property
    def first_rows(self) -> "array[int]":
        """For each slot the number of its document's row; its sections follow."""
        firsts = array("I")
        row = 0
        for span in self.ranges:
            if span.path:
                firsts.append(row)
            row += span.rows
        return firsts

    @cached_property
    def owners(self) -> "array[int]":
        """For each row the slot it belongs to, or -1 when it was deleted."""
        owners = array("i")
        slot = 0
        for span in self.ranges:
            owners.extend(repeat(slot if span.path else -1, span.rows))
            slot += bool(span.path)
        return owners

    @cached_property
    def tags(self) -> frozenset[str]:
        """Every tag that a page has."""
        return frozenset(tag for entry in self.slots for tag in entry.tags)

    @cached_property
    def languages(self) -> frozenset[str]:
        """Every language that a page is for."""
        return frozenset(language for entry in self.slots for language in entry.languages)

    @cached_property
    def sources(self) -> frozenset[str]:
        """Every source that a page comes from."""
        return frozenset(entry.source for entry in self.slots)

    @cached_property
    def section_count(self) -> int:
        """How many sections can be found."""
        return sum(entry.indexed_sections for entry in self.slots)

    @cached_property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """For each layer its sections and their tokens."""
        sizes: dict[str, tuple[int, int]] = {}
        for entry in self.slots:
            sections, tokens = sizes.get(entry.layer, (0, 0))
            sizes[entry.layer] = (sections + entry.section_total, tokens + entry.tokens)
        return sizes

    @property
    def dead_rows(self) -> int:
        """Rows of documents that are gone or were indexed again."""
        return sum(span.rows for span in self.ranges if not span.path)

    def rows_of(self, paths: Collection[str]) -> list[int]:
        """The rows of some documents."""
        rows: list[int] = []
        for slot, entry in enumerate(self.slots):
            if entry.path in paths:
                first = self.first_rows[slot]
                rows += range(first, first + entry.rows)
        return rows

    def changed(
        self, gone: Collection[str], added: Sequence[DocumentEntry], merged_from: int | None = None
    ) -> "Catalog":
        """The catalog after some documents went and others came in rows behind the last.

        From the row `merged_from` on, what lives was moved behind the added rows.
        """
        entries = {path: entry for path, entry in self.entries.items() if path not in gone}
        entries.update((entry.path, entry) for entry in added)
        kept: list[RowRange] = []
        moved: list[RowRange] = []
        row = 0
        for span in self.ranges:
            alive = bool(span.path) and span.path not in gone
            if merged_from is not None and row >= merged_from:
                moved += [span] if alive else []
            else:
                kept.append(span if alive else RowRange("", span.rows))
            row += span.rows
        fresh = [RowRange(entry.path, entry.rows) for entry in added]
        return Catalog(entries, tuple(kept + fresh + moved))


EMPTY = Catalog({}, ())


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
        headings = tuple(Heading(*heading) for heading in headings)
        sections = tuple(
            SectionEntry._make((*section[:-1], body[headings[section[0]].start : section[-1]]))
            for section in sections
        )
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


def to_json(catalog: Catalog) -> dict[str, Any]:
    """A catalog as plain lists, a field at a time: most fields have few values, each kept once."""
    entries = catalog.entries.values()
    places = {path: place for place, path in enumerate(catalog.entries)} | {"": _NOBODY}
    return {
        "fields": [_packed(column) for column in zip(*entries, strict=True)],
        "owners": [places[span.path] for span in catalog.ranges],
        "rows": [span.rows for span in catalog.ranges],
    }


def from_json(data: Mapping[str, Any]) -> Catalog:
    """A catalog from plain lists.

    Raises:
        LookupError, TypeError, ValueError: the lists are of another shape.
    """
    entries = _entries([_unpacked(column) for column in data["fields"]])
    owners, rows = data["owners"], data["rows"]
    if not {int}.issuperset(map(type, chain(owners, rows))) or len(owners) != len(rows):
        raise TypeError("the rows are of another shape")
    if min(owners, default=0) < _NOBODY or min(rows, default=0) < 0:
        raise ValueError("a number of rows is none")
    paths = [*(entry.path for entry in entries), ""]
    ranges = tuple(map(RowRange, map(paths.__getitem__, owners), rows))
    catalog = Catalog({entry.path: entry for entry in entries}, ranges)
    living = [span for span in ranges if span.path]
    held = {span.path for span in living}
    if not len(living) == len(held) == len(catalog.entries) == len(entries):
        raise ValueError("the rows and the entries differ")
    if any(catalog.entries[span.path].rows != span.rows for span in living):
        raise ValueError("the rows and the entries differ")
    return catalog


def entries_from_json(rows: Sequence[list[Any]]) -> list[DocumentEntry]:
    """Entries from plain lists.

    Raises:
        TypeError, ValueError: the lists are of another shape.
    """
    return _entries(list(zip(*rows, strict=True)))


def _packed(column: Sequence[Any]) -> list[Any]:
    """The values of a field, and for each entry which of them it has; none when all differ."""
    values = {value: place for place, value in enumerate(dict.fromkeys(column))}
    if 2 * len(values) > len(column):
        return [column, []]
    return [list(values), [values[value] for value in column]]


def _unpacked(packed: list[Any]) -> Sequence[Any]:
    values, places = packed
    if min(places, default=0) < 0:
        raise ValueError("a place is none")
    return [values[place] for place in places] if places else values


def _entries(columns: Sequence[Sequence[Any]]) -> list[DocumentEntry]:
    """Entries from their fields, each checked as a whole: one by one takes thrice as long."""
    if columns and len(columns) != len(_ENTRY_TYPES):
        raise TypeError("an entry is of another shape")
    if len(set(map(len, columns))) > 1:
        raise ValueError("some fields lack values")
    return list(map(DocumentEntry, *map(_values, columns, _ENTRY_TYPES))) if columns else []


def _values(column: Sequence[Any], wanted: Any) -> Iterable[Any]:
    """One field of all entries as it was before it became JSON."""
    # Not isinstance: true and false are integers to it.
    kinds = set(map(type, column))
    if wanted is _TEXTS and kinds == {list} and _are_all(str, column):
        # Most pages share theirs with others.
        known: dict[tuple[str, ...], tuple[str, ...]] = {}
        return [known.setdefault(one, one) for one in map(tuple, column)]
    if wanted is Stamp and kinds == {list} and _are_all(int, column):
        return [Stamp(*one) for one in column]
    if kinds <= ({int, float, type(None)} if wanted == float | None else {wanted}):
        return column
    raise TypeError("an entry is of another shape")


def _are_all(kind: type, lists: Iterable[Iterable[Any]]) -> bool:
    return {kind}.issuperset(map(type, chain.from_iterable(lists)))


def _is_stored(document: StoredDocument) -> bool:
    """Whether every value is of its type; a record of ours may still lie at a wrong place."""
    texts = (document.summary, document.body)
    return (
        {str}.issuperset(map(type, texts))
        and type(document.last_line) is int
        and all(_has_types(section, _SECTION_TYPES) for section in document.sections)
        and all(_has_types(heading, _HEADING_TYPES) for heading in document.headings)
    )


def _has_types(values: Sequence[Any], types: Sequence[type]) -> bool:
    # Of every section of every result: one by one took a third of unpacking it.
    return tuple(map(type, values)) == types


_TEXTS = tuple[str, ...]
_ENTRY_TYPES = tuple(
    _TEXTS if kind == _TEXTS else kind for kind in DocumentEntry.__annotations__.values()
)
_SECTION_TYPES = tuple(SectionEntry.__annotations__.values())
_HEADING_TYPES = tuple(Heading.__annotations__.values())
