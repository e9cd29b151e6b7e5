"""Whoosh's home: a codec that writes segments as plain arrays.

Whoosh's writer adds, deletes and merges rows by its own rules and asks the codec to write them. A
segment that was written is data only: nothing is ever unpickled.
"""

import warnings
from collections.abc import Collection, Iterable
from typing import Any

from sage.terms.gathering import Pool, build
from sage.terms.postings import FIELDS, Row, Segment, Stem

with warnings.catch_warnings():
    # 2.7.4 holds escapes in plain strings that newer Pythons warn about when they compile it.
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    from whoosh.codec import base
    from whoosh.fields import STORED, FieldType, Schema
    from whoosh.filedb.filestore import RamStorage
    from whoosh.formats import Existence
    from whoosh.index import TOC
    from whoosh.writing import SegmentWriter

_INDEX_NAME = "sage"


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


class WhooshSegment(base.Segment):  # type: ignore[misc]
    """One segment as Whoosh's writer knows it."""

    def __init__(self, kept: Segment | None = None) -> None:
        """Args:
        kept: the segment that it stands for; None for one that is to be written.
        """
        super().__init__(_INDEX_NAME)
        self.lengths: list[int] = []
        self.records: list[bytes] = []
        self.kept_name: str = kept.name if kept else self.segment_id()
        self.data = kept.data if kept else None
        self.deleted = set(kept.deleted) if kept else set[int]()

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

    def new_segment(self, storage: Any, name: str) -> WhooshSegment:
        """A segment to be written."""
        del storage, name
        return WhooshSegment()

    def per_document_writer(self, storage: Any, segment: WhooshSegment) -> "RecordWriter":
        """Writes what is stored with a row."""
        del storage
        return RecordWriter(segment)

    def field_writer(self, storage: Any, segment: WhooshSegment) -> "TermsWriter":
        """Writes what was gathered of the terms."""
        del storage
        return TermsWriter(segment)


class RecordWriter(base.PerDocumentWriter):  # type: ignore[misc]
    """Writes the length and the record of each row."""

    def __init__(self, segment: WhooshSegment) -> None:
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

    def __init__(self, segment: WhooshSegment) -> None:
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

    def __init__(self, index: "WhooshIndex") -> None:
        super().__init__(index, _lk=False, codec=ArrayCodec(), compound=False)
        self.pool = Pool(index.stem)
        self._index = index

    def add_row(self, row: Row) -> None:
        """Add a row behind the last."""
        self.pool.gather(self.docnum, row.fields)
        self.add_document(length=row.length, record=row.record)

    def move(self, segment: WhooshSegment) -> None:
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

    def _commit_toc(self, segments: list[WhooshSegment]) -> None:
        self._index.segments = segments


class WhooshIndex:
    """What Whoosh's writer takes for its index: the segments of one change, in memory."""

    indexname = _INDEX_NAME

    def __init__(self, segments: Iterable[Segment], stem: Stem) -> None:
        self.stem = stem
        self.schema = Schema(
            length=STORED, record=STORED, **{name: PostingField() for name in FIELDS}
        )
        self.storage = Memory()
        self.segments = [WhooshSegment(one) for one in segments]

    def lock(self, name: str) -> None:
        """Whoosh's lock: who owns the segments locks."""
        del name

    def _read_toc(self) -> Any:
        return TOC(self.schema, self.segments, 0)


def changed(
    segments: Iterable[Segment],
    stem: Stem,
    deleted: Collection[int],
    added: Iterable[Row],
    merged: int,
) -> list[Segment]:
    """The segments after rows were deleted by number and others added behind the last.

    The rows of the `merged` last segments follow the added ones in one segment.
    """
    index = WhooshIndex(segments, stem)
    writer = Writer(index)
    try:
        for number in deleted:
            writer.delete_document(number)
        for row in added:
            writer.add_row(row)
        writer.commit(mergetype=_merge_last(merged))
    finally:
        if not writer.is_closed:
            writer.cancel()
    return [
        Segment(one.kept_name, one.data, frozenset(one.deleted))
        for one in index.segments
        if one.data is not None
    ]


def _merge_last(count: int) -> Any:
    def merge(writer: Writer, segments: list[WhooshSegment]) -> list[WhooshSegment]:
        kept = len(segments) - count
        for segment in segments[kept:]:
            writer.move(segment)
        return segments[:kept]

    return merge
