"""Where terms occur: gathered row by row, then kept as the plain arrays of a segment.

A segment is made once and never changed. Its parts lie in memory or in a part of a file; the small
ones are loaded, of the large ones only what is asked for. Every number from a file is checked
before it is used: what does not fit raises UntrustedIndex.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from operator import le
from typing import NamedTuple

from sage.search.index_file import DAMAGED, MemoryPart, Part, UntrustedIndex

DOCUMENT_FIELDS = ("title", "aliases", "tags", "summary", "path")
SECTION_FIELDS = ("headings", "body", "code")
FIELDS = DOCUMENT_FIELDS + SECTION_FIELDS
BITS = {name: 1 << position for position, name in enumerate(FIELDS)}

MAX_POSITION = 65_535
MAX_POSITIONS = 255
"""Positions kept of one term in one row: a count this high is saturated long before."""

Positions = Mapping[str, list[int]]


class Row(NamedTuple):
    """What is indexed together: the terms of each field, its words, and what is stored with it."""

    fields: Mapping[str, Positions]
    length: int = 0
    """Words, for the ranking; 0 in a document's own row."""
    record: bytes = b""
    """In a document's own row what is shown of it and its sections."""


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


class GatheredTerm:
    """The postings of one term in one field while rows are added."""

    __slots__ = ("counts", "places", "rows")

    def __init__(self) -> None:
        self.rows = array("I")
        self.counts = bytearray()
        self.places = array("H")


class Pool:
    """Gathers postings by term while rows are added, in place of Whoosh's sorting on disk.

    Rows come in the order of their numbers, so that only the terms need to be sorted.
    """

    def __init__(self) -> None:
        self._terms: dict[str, dict[str, GatheredTerm]] = {}

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

    def move(self, form: str, field: str, postings: Postings, moved: Mapping[int, int]) -> None:
        """Take the postings of a term in rows that are now behind all that came before.

        Args:
            moved: for each row that lives its new number.
        """
        if all(map(moved.__contains__, postings.rows)):
            term = self._term(form, field)
            term.rows.extend(map(moved.__getitem__, postings.rows))
            term.counts += postings.counts
            term.places.extend(postings.all_positions)
            return
        for row, places in postings.items():
            if row in moved:
                term = self._term(form, field)
                term.rows.append(moved[row])
                term.counts.append(len(places))
                term.places.extend(places)

    def iter_postings(self) -> Iterable[tuple[str, dict[str, GatheredTerm]]]:
        """Everything gathered: each form with its fields."""
        return self._terms.items()

    def cleanup(self) -> None:
        """Let go of what was gathered."""
        self._terms.clear()

    def _term(self, form: str, field: str) -> GatheredTerm:
        fields = self._terms.get(form)
        if fields is None:
            fields = self._terms[form] = {}
        term = fields.get(field)
        if term is None:
            term = fields[field] = GatheredTerm()
        return term


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
_NARROW_ROWS = 65_536
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
        self._row_type = "H" if len(self.lengths) <= _NARROW_ROWS else "I"
        self._check()

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
        packed = self.parts["rows"].read(first * width, end * width)
        rows = memoryview(packed).cast("H" if self._row_type == "H" else "I")
        counts = self.parts["counts"].read(first, end)
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
        return self.parts["records"].read(first, self._record_ends[row])

    def _key(self, at: int) -> bytes:
        return self._keys[self._key_ends[at - 1] if at else 0 : self._key_ends[at]]

    def _places_from(self, base: int) -> Callable[[int, int], Sequence[int]]:
        def places(start: int, stop: int) -> Sequence[int]:
            packed = self.parts["places"].read(2 * (base + start), 2 * (base + stop))
            return memoryview(packed).cast("H")

        return places

    def _check(self) -> None:
        sizes = {name: part.size for name, part in self.parts.items()}
        width = 2 if self._row_type == "H" else 4
        fits = (
            len(self._masks) == len(self._key_ends) == len(self._first_lists)
            and len(self._row_ends) == len(self._place_ends) == sum(self._masks.translate(_LISTS))
            and len(self._record_ends) == len(self.lengths)
            and _are_ends(self._key_ends, sizes["keys"])
            and _are_ends(self._row_ends, sizes["counts"])
            and sizes["rows"] == width * sizes["counts"]
            and _are_ends(self._place_ends, sizes["places"] // 2)
            and _are_ends(self._record_ends, sizes["records"])
        )
        if not fits:
            raise UntrustedIndex(DAMAGED)


def build(
    terms: Iterable[tuple[str, Mapping[str, GatheredTerm]]],
    stem: Callable[[str], str],
    lengths: Sequence[int],
    records: Sequence[bytes],
) -> SegmentData:
    """A segment of what was gathered, with the length and the record of each row."""
    keyed = sorted(
        ((stem(form) + SEPARATOR + form).encode("utf-8", "surrogatepass"), fields)
        for form, fields in terms
    )
    masks = bytearray()
    key_ends, first_lists, row_ends, place_ends = (array("I") for _ in range(4))
    rows = array("H" if len(lengths) <= _NARROW_ROWS else "I")
    counts, places = bytearray(), array("H")
    key_end = 0
    for key, fields in keyed:
        key_end += len(key)
        key_ends.append(key_end)
        first_lists.append(len(row_ends))
        masks.append(sum(BITS[name] for name in fields))
        for name in FIELDS:
            if name in fields:
                term = fields[name]
                rows.extend(term.rows if rows.typecode == "I" else array("H", term.rows))
                counts += term.counts
                places.extend(term.places)
                row_ends.append(len(counts))
                place_ends.append(len(places))
    return SegmentData(
        {
            "keys": MemoryPart(b"".join(key for key, _ in keyed)),
            "key_ends": MemoryPart(key_ends.tobytes()),
            "masks": MemoryPart(bytes(masks)),
            "first_lists": MemoryPart(first_lists.tobytes()),
            "row_ends": MemoryPart(row_ends.tobytes()),
            "place_ends": MemoryPart(place_ends.tobytes()),
            "rows": MemoryPart(rows.tobytes()),
            "counts": MemoryPart(bytes(counts)),
            "places": MemoryPart(places.tobytes()),
            "lengths": MemoryPart(array("I", lengths).tobytes()),
            "record_ends": MemoryPart(_ends(records).tobytes()),
            "records": MemoryPart(b"".join(records)),
        }
    )


def _form(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UntrustedIndex(DAMAGED) from error


def _numbers(part: Part) -> "array[int]":
    if part.size % 4:
        raise UntrustedIndex(DAMAGED)
    numbers = array("I")
    numbers.frombytes(part.read(0, part.size))
    return numbers


def _ends(records: Sequence[bytes]) -> "array[int]":
    return array("I", accumulate(map(len, records)))


def _are_ends(ends: "array[int]", size: int) -> bool:
    """Whether these are the ends of consecutive pieces of that size together."""
    rising = all(map(le, ends, islice(ends, 1, None)))
    return rising and (ends[-1] == size if ends else size == 0)
