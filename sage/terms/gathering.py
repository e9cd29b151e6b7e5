"""How a segment comes to be: terms are gathered row by row, then laid out as plain arrays.

Of segments that are merged only a term at a time is held.
"""

import heapq
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter

from sage.terms.index_file import MemoryPart
from sage.terms.postings import (
    BITS,
    FIELDS,
    MAX_POSITION,
    MAX_POSITIONS,
    NARROW_ROWS,
    SEPARATOR,
    Positions,
    Postings,
    SegmentData,
    Stem,
)


class GatheredTerm:
    """The postings of one term in one field while rows are added."""

    __slots__ = ("counts", "places", "rows")

    def __init__(self) -> None:
        self.rows = array("I")
        self.counts = bytearray()
        self.places = array("H")


KeyedTerm = tuple[bytes, Mapping[str, GatheredTerm]]


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

    def iter_postings(self) -> Iterator[KeyedTerm]:
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


def key_of(stem: str, form: str) -> bytes:
    """What a form is found by in a segment: the forms of a stem lie together."""
    return f"{stem}{SEPARATOR}{form}".encode("utf-8", "surrogatepass")


def build(
    terms: Iterable[KeyedTerm],
    lengths: Sequence[int],
    records: Sequence[bytes],
) -> SegmentData:
    """A segment of what was gathered, with the length and the record of each row.

    Args:
        terms: by key, in the order of keys.
    """
    keys, masks = bytearray(), bytearray()
    key_ends, first_lists, row_ends, place_ends = (array("I") for _ in range(4))
    rows = array("H" if len(lengths) <= NARROW_ROWS else "I")
    counts, places = bytearray(), array("H")
    for key, fields in terms:
        keys += key
        key_ends.append(len(keys))
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
            "keys": MemoryPart(bytes(keys)),
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


def _ends(records: Sequence[bytes]) -> "array[int]":
    return array("I", accumulate(map(len, records)))
