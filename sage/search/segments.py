"""Whoosh's home: a codec that writes segments as plain arrays.

Whoosh's writer adds, deletes and merges rows by its own rules and asks the codec to write them. A
segment that was written is data only: nothing is ever unpickled. What a row means is the catalog's,
what a match is worth the ranking's.
"""

import heapq
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from sage.search.postings import (
    FIELDS,
    MAX_POSITION,
    MAX_POSITIONS,
    GatheredTerm,
    Leaf,
    Positions,
    PostingReader,
    Postings,
    Row,
    SegmentData,
    Stem,
    build,
    key_of,
)

with warnings.catch_warnings():
    # 2.7.4 holds escapes in plain strings that newer Pythons warn about when they compile it.
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    from whoosh.codec import base
    from whoosh.fields import STORED, FieldType, Schema
    from whoosh.filedb.filestore import RamStorage
    from whoosh.formats import Existence
    from whoosh.index import TOC
    from whoosh.lang.snowball.english import EnglishStemmer as EnglishStemmer
    from whoosh.writing import SegmentWriter

_INDEX_NAME = "sage"


class Pool:
    """Gathers postings by term while rows are added, in place of Whoosh's sorting on disk.

    Rows come in the order of their numbers, so that only the terms need to be sorted.
    """

    def __init__(self, stem: Stem) -> None:
        self._stem = stem
        self._terms: dict[str, dict[str, GatheredTerm]] = {}
        self._moved: list[tuple[SegmentData, Mapping[int, int]]] = []

    def gather(self, row: int, fields: Mapping[str, Positions]) -> None:
        """Take the terms of a row whose number is higher than any before."""
        terms = self._terms
        for field, positions in fields.items():
            for form, places in positions.items():
                known = terms.get(form)
                term = known.get(field) if known is not None else None
                if term is None:
                    term = self._term(form, field)
                term.rows.append(row)
                if len(places) == 1 and places[0] <= MAX_POSITION:
                    term.counts.append(1)
                    term.places.append(places[0])
                    continue
                kept = places[:MAX_POSITIONS]
                if kept[-1] > MAX_POSITION:
                    kept = [min(position, MAX_POSITION) for position in kept]
                term.counts.append(len(kept))
                term.places.extend(kept)

    def add(self, posting: tuple[str, bytes, int, float, bytes]) -> None:
        """Take one posting as Whoosh itself hands them over: ours never come this way."""
        raise NotImplementedError(f"{posting[0]} is not indexed by Whoosh")

    def move(self, data: SegmentData, moved: Mapping[int, int]) -> None:
        """Take the rows of a segment, which are now behind all that came before.

        Args:
            moved: for each row that lives its new number.
        """
        self._moved.append((data, moved))

    def iter_postings(self) -> Iterator[tuple[bytes, Mapping[str, GatheredTerm]]]:
        """Everything gathered, in the order of keys: of segments only a term at a time is held."""
        stem = self._stem
        gathered = sorted(
            (key_of(stem(form), form), fields) for form, fields in self._terms.items()
        )
        if not self._moved:
            return iter(gathered)
        parts = (_moved_terms(data, moved) for data, moved in self._moved)
        return _joined(heapq.merge(gathered, *parts, key=itemgetter(0)))

    def cleanup(self) -> None:
        """Let go of what was gathered."""
        self._terms.clear()
        self._moved.clear()

    def _term(self, form: str, field: str) -> GatheredTerm:
        fields = self._terms.get(form)
        if fields is None:
            fields = self._terms[form] = {}
        term = fields.get(field)
        if term is None:
            term = fields[field] = GatheredTerm()
        return term


KeyedTerm = tuple[bytes, Mapping[str, GatheredTerm]]


def _moved_terms(data: SegmentData, moved: Mapping[int, int]) -> Iterator[KeyedTerm]:
    """The terms of the rows of a segment that live, with their new numbers."""
    for key, term in zip(data.keys(), data.all_terms(), strict=True):
        found = ((name, data.postings(term, name)) for name in FIELDS)
        fields = {name: _moved_postings(one, moved) for name, one in found if one is not None}
        living = {name: one for name, one in fields.items() if one.rows}
        if living:
            yield key, living


def _moved_postings(postings: Postings, moved: Mapping[int, int]) -> GatheredTerm:
    term = GatheredTerm()
    if all(map(moved.__contains__, postings.rows)):
        term.rows.extend(map(moved.__getitem__, postings.rows))
        term.counts += postings.counts
        term.places.extend(postings.all_positions)
        return term
    for row, places in postings.items():
        if row in moved:
            term.rows.append(moved[row])
            term.counts.append(len(places))
            term.places.extend(places)
    return term


def _joined(terms: Iterable[KeyedTerm]) -> Iterator[KeyedTerm]:
    """What several parts have of one key as one term; of equal keys the first has lower rows."""
    for key, same in groupby(terms, itemgetter(0)):
        fields: dict[str, GatheredTerm] = {}
        for _, part in same:
            for name, term in part.items():
                known = fields.setdefault(name, term)
                if known is not term:
                    known.rows += term.rows
                    known.counts += term.counts
                    known.places += term.places
        yield key, fields


class PostingField(FieldType):  # type: ignore[misc]
    """A field whose terms and positions are gathered by the pool; Whoosh only knows its name."""

    def __init__(self) -> None:
        super().__init__(format=Existence(), analyzer=None, scorable=False, stored=False)


class Memory(RamStorage):  # type: ignore[misc]
    """Whoosh's storage in memory, its temporary files included.

    Whoosh 2.7.4 would put those in a folder of a known name in the system's temporary folder.
    """

    def temp_storage(self, name: str | None = None) -> "Memory":  # noqa: ARG002 Whoosh's signature
        """Temporary files live as briefly as what they are for."""
        return Memory()


class Segment(base.Segment):  # type: ignore[misc]
    """One segment as Whoosh's writer knows it."""

    def __init__(self, data: SegmentData | None = None, deleted: Iterable[int] = ()) -> None:
        super().__init__(_INDEX_NAME)
        self.lengths: list[int] = []
        self.records: list[bytes] = []
        self.data = data
        self.deleted = set(deleted)

    def copy(self) -> "Segment":
        """The same segment, in which other rows may be deleted."""
        made = Segment(self.data, self.deleted)
        made.segid = self.segid
        return made

    def doc_count_all(self) -> int:
        """Its rows, deleted ones included."""
        return len(self.data.lengths) if self.data else len(self.lengths)

    def set_doc_count(self, count: int) -> None:
        """Whoosh tells the number of rows; the arrays know it."""

    def deleted_count(self) -> int:
        """Its deleted rows."""
        return len(self.deleted)

    def delete_document(self, row: int, delete: bool = True) -> None:
        """Mark a row as deleted; no posting is touched."""
        (self.deleted.add if delete else self.deleted.discard)(row)

    def is_deleted(self, row: int) -> bool:
        """Whether a row was deleted."""
        return row in self.deleted

    def should_assemble(self) -> bool:
        """It is no collection of files."""
        return False


class ArrayCodec(base.Codec):  # type: ignore[misc]
    length_stats = False

    def new_segment(self, storage: Any, name: str) -> Segment:
        """A segment to be written."""
        del storage, name
        return Segment()

    def per_document_writer(self, storage: Any, segment: Segment) -> "RecordWriter":
        """Writes what is stored with a row."""
        del storage
        return RecordWriter(segment)

    def field_writer(self, storage: Any, segment: Segment) -> "TermsWriter":
        """Writes what was gathered of the terms."""
        del storage
        return TermsWriter(segment)


class RecordWriter(base.PerDocumentWriter):  # type: ignore[misc]
    """Writes the length and the record of each row."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.is_closed = False

    def start_doc(self, number: int) -> None:
        del number
        self._segment.lengths.append(0)
        self._segment.records.append(b"")

    def add_field(self, name: str, field: Any, value: Any, length: int) -> None:
        del field, length
        if name == "length":
            self._segment.lengths[-1] = value
        elif name == "record":
            self._segment.records[-1] = value

    def close(self) -> None:
        self.is_closed = True


class TermsWriter(base.FieldWriter):  # type: ignore[misc]
    """Turns what a pool gathered into the arrays of a segment."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.is_closed = False

    def add_postings(self, schema: Any, lengths: None, items: Iterable[Any]) -> None:
        """Write what a pool gathered."""
        del schema, lengths
        segment = self._segment
        segment.data = build(items, segment.lengths, segment.records)
        segment.lengths, segment.records = [], []

    def close(self) -> None:
        self.is_closed = True


class Writer(SegmentWriter):  # type: ignore[misc]
    """Whoosh's writer; the list of segments it commits stays in memory."""

    def __init__(self, store: "SegmentStore") -> None:
        super().__init__(store, _lk=False, codec=ArrayCodec(), compound=False)
        self.pool = Pool(store.stem)
        self._store = store

    def add_row(self, row: Row) -> None:
        """Add a row behind the last."""
        self.pool.gather(self.docnum, row.fields)
        self.add_document(length=row.length, record=row.record)

    def move(self, segment: Segment) -> None:
        """Add the living rows of a segment: Whoosh's own way goes posting by posting."""
        data = segment.data
        if data is None:
            return
        moved: dict[int, int] = {}
        for row in range(segment.doc_count_all()):
            if not segment.is_deleted(row):
                moved[row] = self.docnum
                self.add_document(length=data.lengths[row], record=data.record(row))
        self.pool.move(data, moved)

    def _commit_toc(self, segments: list[Segment]) -> None:
        self._store.segments = segments


class SegmentStore:
    """Rows in segments: appended, deleted and merged. Its owner locks."""

    def __init__(
        self, stem: Stem, segments: Iterable[tuple[SegmentData, Iterable[int]]] = ()
    ) -> None:
        """Args:
        stem: what the forms of one word share.
        segments: the arrays of each, and its deleted rows.
        """
        self.stem = stem
        self.schema = Schema(
            length=STORED, record=STORED, **{name: PostingField() for name in FIELDS}
        )
        self.storage = Memory()
        self.indexname = _INDEX_NAME
        self.segments = [Segment(data, deleted) for data, deleted in segments]
        self.reader = PostingReader(self._leaves(), self.stem)

    @property
    def data(self) -> list[SegmentData]:
        """The arrays of every segment."""
        return [leaf.data for leaf in self.reader.leaves]

    @property
    def size_bytes(self) -> int:
        return sum(data.size_bytes for data in self.data)

    @property
    def memory_bytes(self) -> int:
        """What of them is in memory as a whole."""
        return sum(data.memory_bytes for data in self.data)

    def change(self, deleted: Collection[int], added: Iterable[Row], merged: int = 0) -> None:
        """Delete rows by number and add others behind the last.

        With `merged`, the rows of that many last segments follow the added ones in one segment.
        """
        writer = Writer(self)
        try:
            for number in deleted:
                writer.delete_document(number)
            for row in added:
                writer.add_row(row)
            writer.commit(mergetype=_merge_last(merged))
        finally:
            if not writer.is_closed:
                writer.cancel()
        self.reader = PostingReader(self._leaves(), self.stem)

    def replace(self, replaced: Mapping[int, SegmentData]) -> None:
        """Go on with other arrays of the same content, by the `id` of those that they replace."""
        for segment in self.segments:
            segment.data = replaced.get(id(segment.data), segment.data)
        self.reader = PostingReader(self._leaves(), self.stem)

    def lock(self, name: str) -> None:
        """Whoosh's lock: our owner locks."""
        del name

    def _read_toc(self) -> Any:
        # Copies: what a change deletes counts only once it is committed.
        return TOC(self.schema, [segment.copy() for segment in self.segments], 0)

    def _leaves(self) -> list[Leaf]:
        leaves: list[Leaf] = []
        base_row = 0
        for segment in self.segments:
            if segment.data is not None:
                leaves.append(Leaf(segment.segment_id(), segment.data, base_row))
                base_row += segment.doc_count_all()
        return leaves


def _merge_last(count: int) -> Any:
    def merge(writer: Writer, segments: list[Segment]) -> list[Segment]:
        kept = len(segments) - count
        for segment in segments[kept:]:
            writer.move(segment)
        return segments[:kept]

    return merge
