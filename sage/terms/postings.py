"""Where terms occur: the plain arrays of a segment, what reads a term from all of them, and the
vocabulary: every form of a generation.

A segment is made once and never changed. Its parts lie in memory or in a part of a file; the small
ones are loaded, of the large ones only what is asked for. Every number from a file is checked
before it is used: what does not fit raises UntrustedIndex.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from sage.terms.analysis import JOIN, stem_of
from sage.terms.index_file import DAMAGED, MemoryPart, Part, UntrustedIndex
from sage.terms.spelling import Spelling

DOCUMENT_FIELDS = ("title", "aliases", "tags", "summary", "path")
SECTION_FIELDS = ("headings", "body", "code")
FIELDS = DOCUMENT_FIELDS + SECTION_FIELDS
BITS = {name: 1 << position for position, name in enumerate(FIELDS)}

MAX_POSITION = 65_535
MAX_POSITIONS = 255
"""Positions kept of one term in one row: a count this high is saturated long before."""

_MAX_STEMS = 20_000
_MAX_POSTING_BYTES = 8_000_000

Positions = Mapping[str, list[int]]
Stem = Callable[[str], str]


class Row(NamedTuple):
    """What is indexed together: the terms of each field, its words, and what is stored with it."""

    fields: Mapping[str, Positions]
    length: int = 0
    """Words, for the ranking; 0 in a document's own row."""
    record: bytes = b""
    """In a document's own row what is shown of it and its sections."""
    heading: int = 0
    """Words of its own heading that say something, one at least; 0 where that is the title."""


class Postings:
    """Where a term occurs in one field of one segment: rows, counts, and positions on request."""

    __slots__ = ("_places", "_starts", "counts", "rows")

    def __init__(
        self, rows: Sequence[int], counts: bytes, places: Callable[[int, int], Sequence[int]]
    ) -> None:
        self.rows = rows
        """In order, counted from the first of the segment."""
        self.counts = counts
        """How often it occurs in each of them."""
        self._places = places
        self._starts: array[int] | None = None

    @property
    def size_bytes(self) -> int:
        """Roughly what it costs to keep."""
        return 5 * len(self.counts) + 300

    def positions(self, index: int) -> Sequence[int]:
        """The positions in the row of that index."""
        if self._starts is None:
            self._starts = array("I", accumulate(self.counts, initial=0))
        return self._places(self._starts[index], self._starts[index + 1])

    @property
    def all_positions(self) -> Sequence[int]:
        """The positions in all rows, one row after the other."""
        return self._places(0, sum(self.counts))

    def items(self) -> Iterator[tuple[int, Sequence[int]]]:
        """Every row with its positions."""
        places = self.all_positions
        start = 0
        for row, count in zip(self.rows, self.counts, strict=True):
            yield row, places[start : start + count]
            start += count


PARTS = (
    "keys",
    "key_ends",
    "masks",
    "first_lists",
    "row_ends",
    "place_ends",
    "rows",
    "counts",
    "places",
    "lengths",
    "record_ends",
    "records",
)
SEPARATOR = "\0"
"""Between a stem and a form in a key; it is no letter, so it is in neither."""
NARROW_ROWS = 65_536
"""A segment of so many rows numbers them in two bytes."""
_LISTS = bytes(mask.bit_count() for mask in range(256))
"""How many lists of postings a term has, by its mask."""


class SegmentTerm(NamedTuple):
    """A written form in a segment."""

    form: str
    mask: int
    """The fields in which it occurs, a bit for each."""
    first_list: int
    """The number of the first list of postings; the other fields' follow."""


class SegmentData:
    """The arrays of one segment. Safe to share between threads."""

    def __init__(self, parts: Mapping[str, Part]) -> None:
        """Args:
        parts: all that PARTS names.

        Raises:
            UntrustedIndex: they do not belong together.
        """
        self.parts = parts
        self._keys = parts["keys"].read(0, parts["keys"].size)
        self._masks = parts["masks"].read(0, parts["masks"].size)
        self._key_ends = _numbers(parts["key_ends"])
        self._first_lists = _numbers(parts["first_lists"])
        self._row_ends = _numbers(parts["row_ends"])
        self._place_ends = _numbers(parts["place_ends"])
        self._record_ends = _numbers(parts["record_ends"])
        self.lengths = _numbers(parts["lengths"])
        """For each row its words."""
        self._row_type = "H" if len(self.lengths) <= NARROW_ROWS else "I"
        self._check()

    def kept_in(self, parts: Mapping[str, Part]) -> "SegmentData":
        """The same data, read from where it was kept; what of it is loaded stays so.

        Raises:
            UntrustedIndex: something else lies there.
        """
        if any(parts[name].size != part.size for name, part in self.parts.items()):
            raise UntrustedIndex(DAMAGED)
        data = copy(self)
        data.parts = parts
        return data

    @property
    def size_bytes(self) -> int:
        """What it takes, wherever it lies."""
        return sum(part.size for part in self.parts.values())

    @property
    def memory_bytes(self) -> int:
        """What of it lies in memory."""
        return sum(part.size for part in self.parts.values() if isinstance(part, MemoryPart))

    def terms(self, stem: str) -> list[SegmentTerm]:
        """The forms of a stem."""
        start = (stem + SEPARATOR).encode("utf-8", "surrogatepass")
        at = bisect_left(range(len(self._masks)), start, key=self._key)
        found: list[SegmentTerm] = []
        while at < len(self._masks) and (key := self._key(at)).startswith(start):
            found.append(
                SegmentTerm(_form(key[len(start) :]), self._masks[at], self._first_lists[at])
            )
            at += 1
        return found

    def all_terms(self) -> Iterator[SegmentTerm]:
        """Every form, in the order of stems."""
        for at, mask in enumerate(self._masks):
            _, _, form = self._key(at).partition(SEPARATOR.encode())
            yield SegmentTerm(_form(form), mask, self._first_lists[at])

    def keys(self) -> Iterator[bytes]:
        """The keys of all forms, in order."""
        return map(self._key, range(len(self._masks)))

    def postings(self, term: SegmentTerm, field: str) -> Postings | None:
        """Where a form occurs in a field; None when it does not."""
        bit = BITS[field]
        if not term.mask & bit:
            return None
        number = term.first_list + _LISTS[term.mask & (bit - 1)]
        if number >= len(self._row_ends):
            raise UntrustedIndex(DAMAGED)
        first, end = self._row_ends[number - 1] if number else 0, self._row_ends[number]
        width = 2 if self._row_type == "H" else 4
        packed = self._bytes("rows", first * width, end * width)
        rows = memoryview(packed).cast("H" if self._row_type == "H" else "I")
        counts = self._bytes("counts", first, end)
        place = self._place_ends[number - 1] if number else 0
        if len(rows) and (
            max(rows) >= len(self.lengths) or sum(counts) != self._place_ends[number] - place
        ):
            raise UntrustedIndex(DAMAGED)
        return Postings(rows, counts, self._places_from(place))

    def record(self, row: int) -> bytes:
        """What is stored with a row."""
        if not 0 <= row < len(self._record_ends):
            raise UntrustedIndex(DAMAGED)
        first = self._record_ends[row - 1] if row else 0
        return self._bytes("records", first, self._record_ends[row])

    def _bytes(self, name: str, start: int, stop: int) -> bytes:
        part = self.parts[name]
        if part.data is None or not 0 <= start <= stop <= len(part.data):
            return part.read(start, stop)
        return part.data[start:stop]

    def _key(self, at: int) -> bytes:
        return self._keys[self._key_ends[at - 1] if at else 0 : self._key_ends[at]]

    def _places_from(self, base: int) -> Callable[[int, int], Sequence[int]]:
        def places(start: int, stop: int) -> Sequence[int]:
            packed = self._bytes("places", 2 * (base + start), 2 * (base + stop))
            return memoryview(packed).cast("H")

        return places

    def _check(self) -> None:
        """Whether the sizes fit; that ends are in order is checked where a piece is read."""
        sizes = {name: part.size for name, part in self.parts.items()}
        width = 2 if self._row_type == "H" else 4
        fits = (
            len(self._masks) == len(self._key_ends) == len(self._first_lists)
            and len(self._row_ends) == len(self._place_ends) == sum(self._masks.translate(_LISTS))
            and len(self._record_ends) == len(self.lengths)
            and _last(self._key_ends) == sizes["keys"]
            and _last(self._row_ends) == sizes["counts"]
            and sizes["rows"] == width * sizes["counts"]
            and _last(self._place_ends) == sizes["places"] // 2
            and _last(self._record_ends) == sizes["records"]
        )
        if not fits:
            raise UntrustedIndex(DAMAGED)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The arrays of some consecutive rows, and which of the rows are deleted."""

    name: str
    """Of its own; it stays while the same arrays move from memory into a file."""
    data: SegmentData
    deleted: frozenset[int]


class Leaf(NamedTuple):
    """A segment and the number of its first row."""

    segment: str
    data: SegmentData
    base: int


class PostingReader:
    """One generation of an index, read a term at a time. Safe to share between threads."""

    def __init__(self, leaves: Sequence[Leaf], stem: Stem) -> None:
        self.leaves = leaves
        self._bases = [leaf.base for leaf in leaves]
        self._stem = stem
        self._lock = threading.Lock()
        self._terms: dict[str, tuple[Mapping[str, SegmentTerm], ...]] = {}
        self._postings: dict[tuple[str, str], list[tuple[int, Postings]]] = {}
        self._bytes = 0

    headings: Sequence[int] | None = None
    """Records say how long headings are."""

    def gather(self, wanted: object) -> None:
        """Everything is at hand: nothing has to be fetched for a query."""

    def parts(self, wanted: object) -> Iterator[object]:
        """Everything is one part."""
        yield wanted

    def every(self, wanted: object) -> None:
        """Everything is at hand."""

    def holders(self, slots: object) -> tuple[int, ...]:
        """None: all documents are at hand."""
        del slots
        return ()

    def fetch(self, rows: object) -> None:
        """Nor for a record."""

    @property
    def segment_sizes(self) -> list[int]:
        """The number of rows in each segment, deleted ones included."""
        return [len(leaf.data.lengths) for leaf in self.leaves]

    @property
    def lengths(self) -> "array[int]":
        """The words of every row."""
        return array("I", b"".join(leaf.data.lengths.cast("B") for leaf in self.leaves))

    def forms(self, stem: str) -> dict[str, int]:
        """The written forms of a stem, each with a bit for every field in which it may occur."""
        masks: dict[str, int] = {}
        for terms in self._found(stem):
            for form, term in terms.items():
                masks[form] = masks.get(form, 0) | term.mask
        return masks

    def all_forms(self, known: Collection[str] = ()) -> Iterator[str]:
        """Every written form, those of segments that are known left out; some come twice."""
        for leaf in self.leaves:
            if leaf.segment not in known:
                yield from (term.form for term in leaf.data.all_terms())

    def postings(self, field: str, form: str) -> list[tuple[int, Postings]]:
        """Where a form occurs: for each segment its first row, and the postings from there.

        Deleted rows are among them; the catalog knows which those are.
        """
        key = (field, form)
        found = self._postings.get(key)
        if found is None:
            found = self._read(field, form)
            with self._lock:
                self._bytes += sum(postings.size_bytes for _, postings in found) + 200
                if self._bytes > _MAX_POSTING_BYTES:
                    self._postings, self._bytes = {}, 0
                self._postings[key] = found
        return found

    def record(self, row: int) -> bytes:
        """What is stored with a row."""
        leaf = self.leaves[bisect_right(self._bases, row) - 1]
        return leaf.data.record(row - leaf.base)

    def _read(self, field: str, form: str) -> list[tuple[int, Postings]]:
        found = []
        for leaf, terms in zip(self.leaves, self._found(self._stem(form)), strict=True):
            term = terms.get(form)
            postings = leaf.data.postings(term, field) if term else None
            if postings is not None:
                found.append((leaf.base, postings))
        return found

    def _found(self, stem: str) -> tuple[Mapping[str, SegmentTerm], ...]:
        """For each segment the forms of a stem."""
        found = self._terms.get(stem)
        if found is None:
            found = tuple(
                {term.form: term for term in leaf.data.terms(stem)} for leaf in self.leaves
            )
            with self._lock:
                if len(self._terms) >= _MAX_STEMS:
                    self._terms = {}
                self._terms[stem] = found
        return found


class Vocabulary:
    """Every form of one generation: by stem, with its fields. Safe to share between threads.

    A form whose last document went stays until its segment is merged; it then has no postings
    that live, and callers check that.
    """

    def __init__(self, reader: PostingReader, before: "Vocabulary | None" = None) -> None:
        self._reader = reader
        self._segments = frozenset(leaf.segment for leaf in reader.leaves)
        self._spelling: Spelling | None = None
        if before is not None and before._spelling is not None:
            self._spelling = self._still_right(before._spelling, before._segments)

    def stem(self, form: str) -> str:
        """What the forms of one word share."""
        return stem_of(form)

    def forms(self, form: str) -> tuple[str, ...]:
        """The written forms that share a form's stem."""
        return tuple(self._reader.forms(stem_of(form)))

    def __contains__(self, form: str) -> bool:
        return form in self._reader.forms(stem_of(form))

    def fields(self, form: str) -> list[str]:
        """The fields in which a form may occur."""
        mask = self._reader.forms(stem_of(form)).get(form, 0)
        return [name for name, bit in BITS.items() if mask & bit]

    @property
    def spelling(self) -> Spelling:
        """How the forms look; joined ones are nobody's spelling."""
        spelling = self._spelling
        if spelling is None:
            forms = set(self._reader.all_forms())
            spelling = Spelling(form for form in forms if not form.endswith(JOIN))
            self._spelling = spelling
        return spelling

    def _still_right(self, spelling: Spelling, known: Collection[str]) -> Spelling | None:
        """The spelling of the generation before, unless a form is new: making one takes long."""
        new = self._reader.all_forms(known)
        return spelling if all(form.endswith(JOIN) or form in spelling for form in new) else None


def _form(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UntrustedIndex(DAMAGED) from error


def _numbers(part: Part) -> "memoryview[int]":
    """What lies in memory as it is: an array would be a second copy."""
    if part.size % 4:
        raise UntrustedIndex(DAMAGED)
    return memoryview(part.read(0, part.size)).cast("I")


def _last(ends: "memoryview[int]") -> int:
    return ends[-1] if ends else 0
