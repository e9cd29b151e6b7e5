"""Vectors of sections in memory: compact, added to while others compare, and comparable at once.

A vector is kept once for what a section says, however many sections say it; a document knows the
keys of its sections. Numbers are int8 with one scale a vector.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sage.documents.files import Stamp
from sage.search.catalog import Catalog
from sage.search.fusion import Bounds, Near
from sage.semantic.encoder import Matrix

Rows: TypeAlias = NDArray[np.int64]

_MOST = 127
_FIRST_ROOM = 1_024
_CHUNK = 8_192
"""Rows that are compared at a time: more would not fit beside the rest in a core's memory."""
_LESS_THAN_ALL = -2.0
"""Below every cosine."""
DIGITS = 3
"""Similarities are rounded to so many, so that no machine's arithmetic decides an order."""


class DocumentVectors(NamedTuple):
    """The vectors of one document as it was at one moment."""

    stamp: Stamp
    keys: tuple[bytes, ...]
    """One for what the document says of itself, then one for each indexed section."""


class Vectors:
    """The vectors of one model. Thread-safe: rows are only ever added."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.documents: dict[str, DocumentVectors] = {}
        self._rows: dict[bytes, int] = {}
        self._numbers: NDArray[np.int8] = np.empty((_FIRST_ROOM, dimensions), np.int8)
        self._scales: Matrix = np.empty(_FIRST_ROOM, np.float32)
        self._adding = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    @property
    def size_bytes(self) -> int:
        """What the numbers take."""
        return len(self._rows) * (self.dimensions + 4)

    def add(self, keys: Sequence[bytes], vectors: Matrix) -> None:
        """Keep vectors of length 1 under their keys."""
        scales = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-9)) / np.float32(_MOST)
        numbers = np.rint(vectors / scales[:, None]).astype(np.int8)
        self.add_packed(keys, numbers, scales)

    def add_packed(self, keys: Sequence[bytes], numbers: NDArray[np.int8], scales: Matrix) -> None:
        """Keep vectors that are packed already."""
        with self._adding:
            new = [at for at, key in enumerate(keys) if key not in self._rows]
            first = len(self._rows)
            self._make_room(first + len(new))
            self._numbers[first : first + len(new)] = numbers[new]
            self._scales[first : first + len(new)] = scales[new]
            # Last: whoever finds a key finds its numbers.
            for row, at in enumerate(new, first):
                self._rows[keys[at]] = row

    def packed(self, keys: Iterable[bytes]) -> tuple[list[bytes], NDArray[np.int8], Matrix]:
        """Some keys, each once, with what is kept under them."""
        wanted = list(dict.fromkeys(key for key in keys if key in self._rows))
        rows = [self._rows[key] for key in wanted]
        return wanted, self._numbers[rows], self._scales[rows]

    def table(self, catalog: Catalog) -> "Table":
        """The vectors of the documents of a catalog that are as they were then."""
        slots: list[int] = []
        starts: list[int] = []
        rows: list[int] = []
        for slot, entry in enumerate(catalog.slots):
            known = self.documents.get(entry.path)
            if known is None or known.stamp != entry.stamp:
                continue
            if len(known.keys) == 1 + entry.indexed_sections and self._has(known.keys):
                slots.append(slot)
                starts.append(len(rows))
                rows += [self._rows[key] for key in known.keys]
        count = len(self._rows)
        return Table(catalog, self._numbers[:count], self._scales[:count], slots, starts, rows)

    def _has(self, keys: Collection[bytes]) -> bool:
        return all(key in self._rows for key in keys)

    def _make_room(self, wanted: int) -> None:
        room = len(self._numbers)
        if wanted <= room:
            return
        while room < wanted:
            room *= 2
        # Others may compare with the old arrays: they stay as they are.
        numbers = np.empty((room, self.dimensions), np.int8)
        scales = np.empty(room, np.float32)
        used = len(self._rows)
        numbers[:used], scales[:used] = self._numbers[:used], self._scales[:used]
        self._numbers, self._scales = numbers, scales


class Table:
    """The vectors of one generation of the index, to compare texts with. Never changed."""

    def __init__(
        self,
        catalog: Catalog,
        numbers: NDArray[np.int8],
        scales: Matrix,
        slots: Sequence[int],
        starts: Sequence[int],
        rows: Sequence[int],
    ) -> None:
        self.catalog = catalog
        self._numbers = numbers
        self._scales = scales
        self._rows = np.array(rows, np.int64)
        self._starts = np.array(starts, np.int64)
        self._slots = list(slots)
        self._places: Mapping[int, int] = {slot: at for at, slot in enumerate(slots)}

    @property
    def sections(self) -> int:
        """How many sections have a vector."""
        return len(self._rows) - len(self._slots)

    def similarities(self, vector: Matrix, bounds: Bounds) -> "Compared":
        """How near everything here is to a text of that vector."""
        cosines = np.empty(len(self._numbers), np.float32)
        for at in range(0, len(cosines), _CHUNK):
            part = slice(at, at + _CHUNK)
            cosines[part] = self._numbers[part].astype(np.float32) @ vector
        cosines *= self._scales
        return Compared(self, np.round(cosines[self._rows], DIGITS), bounds)

    def of_documents(self, cosines: Matrix) -> Matrix:
        """How near each document is: the mean of the two nearest things that it says.

        One section alone is near by chance too often. Of a document that says one thing, that.
        """
        if not self._slots:
            return np.empty(0, np.float32)
        best: Matrix = np.maximum.reduceat(cosines, self._starts)
        counts = np.diff(self._starts, append=len(cosines))
        is_best = cosines == np.repeat(best, counts)
        others = np.where(is_best, np.float32(_LESS_THAN_ALL), cosines)
        second: Matrix = np.maximum.reduceat(others, self._starts)
        alone = (np.add.reduceat(is_best, self._starts, dtype=np.int64) > 1) | (counts == 1)
        mean: Matrix = np.round((best + np.where(alone, best, second)) / 2, DIGITS)
        return mean

    def near(self, at: int, similarity: float, cosines: Matrix) -> Near:
        """The document at a place, and its nearest section."""
        first = int(self._starts[at]) + 1
        last = int(self._starts[at + 1]) if at + 1 < len(self._starts) else len(cosines)
        section = int(np.argmax(cosines[first:last])) if last > first else -1
        return Near(self._slots[at], section, round(similarity, DIGITS))

    def place_of(self, slot: int) -> int | None:
        """Where a document stands here; None without vectors."""
        return self._places.get(slot)

    def unpacked(self, rows: Rows) -> Matrix:
        """The vectors of some rows."""
        numbers: Matrix = self._numbers[rows].astype(np.float32)
        return numbers * self._scales[rows][:, None]

    def sums(self) -> Matrix:
        """For each document the sum of what it says, itself and its sections."""
        sums = np.zeros((len(self._slots), self._numbers.shape[1]), np.float32)
        ends = [*self._starts[1:].tolist(), len(self._rows)]
        for at, (start, end) in enumerate(zip(self._starts.tolist(), ends, strict=True)):
            sums[at] = self.unpacked(self._rows[start:end]).sum(axis=0)
        return sums

    def sections_of(self, allowed: Callable[[int], bool]) -> list[tuple[int, int, int]]:
        """The sections of some documents by path: slot, place in the document, and row."""
        entries = self.catalog.slots
        places = [at for at, slot in enumerate(self._slots) if allowed(slot)]
        return [
            (slot, place, int(self._rows[int(self._starts[at]) + 1 + place]))
            for at in sorted(places, key=lambda at: entries[self._slots[at]].path)
            for slot in (self._slots[at],)
            for place in range(entries[slot].indexed_sections)
        ]

    def slot_at(self, at: int) -> int:
        """The document at a place."""
        return self._slots[at]


class Compared:
    """How near all documents are to one text."""

    def __init__(self, table: Table, cosines: Matrix, bounds: Bounds) -> None:
        self._table = table
        self._cosines = cosines
        self._of_documents: list[float] = table.of_documents(cosines).tolist()
        self.bounds = bounds

    def best(self, limit: int, allowed: Callable[[int], bool] | None) -> Sequence[Near]:
        """The nearest of the allowed documents, by falling similarity and rising path."""
        nearness = self._of_documents
        entries = self._table.catalog.slots
        found: list[tuple[float, str, int]] = []
        last = -2.0
        for at in sorted(range(len(nearness)), key=nearness.__getitem__, reverse=True):
            # Beyond the limit only those that are as near as the last: their paths decide.
            if len(found) >= limit and nearness[at] < last:
                break
            slot = self._table.slot_at(at)
            if allowed is None or allowed(slot):
                last = nearness[at]
                found.append((-last, entries[slot].path, at))
        found.sort()
        return [self._near(at) for _, _, at in found[:limit]]

    def of(self, slot: int) -> Near | None:
        """One document; None while it has no vectors."""
        at = self._table.place_of(slot)
        return None if at is None else self._near(at)

    def _near(self, at: int) -> Near:
        return self._table.near(at, self._of_documents[at], self._cosines)
