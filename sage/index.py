"""Whoosh's home: an index in memory that keeps postings and texts, and Whoosh's stemmer.

It stores rows and reads terms; what a row means is the catalog's, what a match is worth the
ranking's.
"""

import marshal
import struct
import threading
import warnings
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sage.postings import FIELDS, Pool, Postings, Row

with warnings.catch_warnings():
    # 2.7.4 holds escapes in plain strings that newer Pythons warn about when they compile it.
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)
    from whoosh.codec.whoosh3 import W3Codec, W3FieldWriter, W3TermsReader
    from whoosh.fields import STORED, FieldType, Schema
    from whoosh.filedb.filestore import RamStorage
    from whoosh.formats import Existence
    from whoosh.index import FileIndex
    from whoosh.index import IndexError as NoIndex
    from whoosh.lang.snowball.english import EnglishStemmer
    from whoosh.reading import SegmentReader

_INDEX_NAME = "sage"
_MAX_STEMS = 200_000
_MAX_DECODED = 100_000


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


class Codec(W3Codec):  # type: ignore[misc]
    """Whoosh's own format, but each term's postings stand together in the table of terms.

    One look-up then gives all of them; blocks to skip through would cost a hundred bytes and
    three pickles a term. The bytes are only ever read from an index that was made here.
    """

    length_stats = False

    def field_writer(self, storage: Any, segment: Any) -> Any:
        """Writes the table of terms."""
        return TermsWriter(self, storage, segment)

    def terms_reader(self, storage: Any, segment: Any) -> Any:
        """Reads the table of terms."""
        name = segment.make_filename(self.TERMS_EXT)
        posts = segment.open_file(storage, self.POSTS_EXT)
        return TermsReader(self, storage.open_file(name), storage.file_length(name), posts)


class TermsWriter(W3FieldWriter):  # type: ignore[misc]
    """Writes whole terms."""

    def add_postings(self, schema: Any, lengths: None, items: Iterable[Any]) -> None:
        """Write what a pool gathered."""
        del lengths  # none are kept
        opened = ""
        for field, term, (rows, places) in items:
            if field != opened:
                self.start_field(field, schema[field])
                opened = field
            packed = marshal.dumps((tuple(rows), tuple(places)))
            self._tindex.add(struct.pack("!H", self._fieldid) + term, packed)


class TermsReader(W3TermsReader):  # type: ignore[misc]
    """Reads whole terms."""

    def read(self, field: str, term: bytes) -> Postings:
        """All postings of a term.

        Raises:
            KeyError: there are none.
        """
        # Fast to load, and as safe as the pickles beside it: the seal was checked before.
        rows, places = marshal.loads(self._tindex[self._keycoder(field, term)])  # noqa: S302
        return Postings(rows, places)

    def read_all(self) -> Iterator[tuple[str, bytes, Postings]]:
        """Every term with its field and postings."""
        for key, packed in self._tindex.items():
            field, term = self._keydecoder(key)
            rows, places = marshal.loads(packed)  # noqa: S302
            yield field, term, Postings(rows, places)


class Leaf(NamedTuple):
    """A segment and the number of its first row."""

    segment: str
    reader: Any
    base: int


class PostingReader:
    """One generation of an index, read a term at a time. Safe to share between threads."""

    def __init__(self, leaves: Sequence[Leaf], before: "PostingReader | None" = None) -> None:
        self.leaves = leaves
        self._bases = [leaf.base for leaf in leaves]
        # Readers are shared by generations: a segment never changes once it is written.
        self._lock: threading.Lock = before._lock if before else threading.Lock()
        live = {leaf.segment for leaf in leaves}
        decoded = before._decoded.copy() if before else {}
        self._decoded: dict[tuple[str, str, str], Postings | None] = {
            key: postings for key, postings in decoded.items() if key[0] in live
        }
        self._size = sum(len(postings.rows) for postings in self._decoded.values() if postings)

    @property
    def segment_sizes(self) -> list[int]:
        """The number of rows in each segment, deleted ones included."""
        return [leaf.reader.doc_count_all() for leaf in self.leaves]

    def postings(self, field: str, form: str) -> list[tuple[int, Postings]]:
        """Where a term occurs: for each segment its first row, and the postings from there.

        Deleted rows are among them; the catalog knows which those are.
        """
        found = []
        for leaf in self.leaves:
            key = (leaf.segment, field, form)
            try:
                decoded = self._decoded[key]
            except KeyError:
                decoded = self._decode(leaf.reader, key)
            if decoded is not None:
                found.append((leaf.base, decoded))
        return found

    def text(self, row: int) -> str:
        """The text kept with a row."""
        leaf = self.leaves[bisect_right(self._bases, row) - 1]
        with self._lock:
            return str(leaf.reader.stored_fields(row - leaf.base).get("text", ""))

    def _decode(self, reader: Any, key: tuple[str, str, str]) -> Postings | None:
        with self._lock:
            decoded = _read(reader, key[1], key[2])
        if self._size > _MAX_DECODED:
            self._decoded, self._size = {}, 0
        self._decoded[key] = decoded
        self._size += len(decoded.rows) if decoded else 0
        return decoded


class PostingIndex:
    """Rows in Whoosh segments: appended, deleted and merged. Its owner locks."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        """Begin an empty index, or go on with one from its files.

        Raises:
            ValueError: the files are no index.
        """
        self._schema = Schema(text=STORED, **{name: PostingField() for name in FIELDS})
        storage = Memory()
        if files is None:
            self._index = FileIndex.create(storage, self._schema, _INDEX_NAME)
        else:
            storage.files.update(files)
            try:
                self._index = FileIndex(storage, self._schema, _INDEX_NAME)
            except NoIndex as error:
                raise ValueError("these files are no index") from error
        self.reader = PostingReader(self._leaves({}))

    @property
    def files(self) -> dict[str, bytes]:
        """The index as Whoosh's files."""
        return dict(self._index.storage.files)

    @property
    def size_bytes(self) -> int:
        """What the files take."""
        return sum(map(len, list(self._index.storage.files.values())))

    def change(self, deleted: Collection[int], added: Iterable[Row], merged: int = 0) -> None:
        """Delete rows by number and add others behind the last.

        With `merged`, the rows of that many last segments follow the added ones in one segment.
        """
        writer = self._index.writer(codec=Codec(), compound=False)
        writer.pool = Pool()
        try:
            for number in deleted:
                writer.delete_document(number)
            for row in added:
                writer.pool.gather(writer.docnum, row.fields)
                writer.add_document(text=row.text)
            writer.commit(mergetype=_merge_last(merged))
        except BaseException:
            # The lock of a storage in memory would be held for ever.
            if not writer.is_closed:
                writer.cancel()
            raise
        opened = {leaf.segment: leaf.reader for leaf in self.reader.leaves}
        self.reader = PostingReader(self._leaves(opened), self.reader)

    def _leaves(self, opened: Mapping[str, Any]) -> list[Leaf]:
        """All segments; those already opened stay so, which saves most of a small update."""
        leaves: list[Leaf] = []
        base = 0
        for segment in self._index._segments():
            name = segment.segment_id()
            leaves.append(Leaf(name, opened.get(name) or self._opened(segment), base))
            base += segment.doc_count_all()
        return leaves

    def _opened(self, segment: Any) -> Any:
        reader = SegmentReader(self._index.storage, self._schema, segment)
        if segment.doc_count_all():
            reader.stored_fields(0)  # opens the texts, which a later change may take away
        return reader


class Stemmer:
    """English stems by Snowball; Whoosh's own Porter stemmer turns running into runn."""

    def __init__(self) -> None:
        self._stemmer = EnglishStemmer()
        self._known: dict[str, str] = {}

    def stem(self, form: str) -> str:
        """The stem of an English word, anything else unchanged."""
        known = self._known.get(form)
        if known is None:
            if len(self._known) >= _MAX_STEMS:
                self._known.clear()
            english = len(form) > 2 and form.isascii() and form.isalpha()
            known = self._known[form] = str(self._stemmer.stem(form)) if english else form
        return known


def _merge_last(count: int) -> Any:
    def merge(writer: Any, segments: list[Any]) -> list[Any]:
        kept = len(segments) - count
        for segment in segments[kept:]:
            _move(writer, SegmentReader(writer.storage, writer.schema, segment))
        return segments[:kept]

    return merge


def _move(writer: Any, leaf: Any) -> None:
    """Copy the living rows of a segment: Whoosh's own way goes posting by posting."""
    moved: dict[int, int] = {}
    for row in range(leaf.doc_count_all()):
        if not leaf.is_deleted(row):
            moved[row] = writer.docnum
            writer.add_document(text=leaf.stored_fields(row).get("text", ""))
    for field, term, (rows, places) in leaf._terms.read_all():
        alive = [(moved[row], at) for row, at in zip(rows, places, strict=True) if row in moved]
        if alive:
            form = term.decode()
            writer.pool.extend(field, form, [row for row, _ in alive], [at for _, at in alive])


def _read(reader: Any, field: str, form: str) -> Postings | None:
    try:
        # Whoosh's way would wrap them to leave out deleted rows, one by one.
        found: Postings = reader._terms.read(field, form.encode())
    except KeyError:
        return None
    return found
