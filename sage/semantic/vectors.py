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
OF_ITSELF = 0.2
"""What a document says of itself counts so much in how near it is, and its sections the rest."""
DIGITS = 3
"""Similarities are rounded to so many, so that no machine's arithmetic decides an order."""


class DocumentVectors(NamedTuple):
    """The vectors of one document as it was at one moment."""

    stamp: Stamp
    keys: tuple[bytes, ...]
    """One for what the document says of itself, then one for each indexed section."""


class _Store:
    """Numbers by key. Rows are only ever added, so that others may compare meanwhile."""

    def __init__(self, dimensions: int, room: int) -> None:
        self.rows: dict[bytes, int] = {}
        self.numbers: NDArray[np.int8] = np.empty((room, dimensions), np.int8)
        self.scales: Matrix = np.empty(room, np.float32)

    def add(self, keys: Sequence[bytes], numbers: NDArray[np.int8], scales: Matrix) -> None:
        """Keep vectors under keys that are not here yet."""
        first, last = len(self.rows), len(self.rows) + len(keys)
        self.numbers[first:last], self.scales[first:last] = numbers, scales
        # Last: whoever finds a key finds its numbers.
        for row, key in enumerate(keys, first):
            self.rows[key] = row

    def copy(self, keys: Sequence[bytes], room: int) -> "_Store":
        """Some of it, with room for more."""
        rows = [self.rows[key] for key in keys]
        copied = _Store(self.numbers.shape[1], max(room, _FIRST_ROOM))
        copied.add(keys, self.numbers[rows], self.scales[rows])
        return copied


class Vectors:
    """The vectors of one model. Thread-safe."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.documents: dict[str, DocumentVectors] = {}
        self.changes = 0
        """Another number whenever there are other vectors."""
        self._store = _Store(dimensions, _FIRST_ROOM)
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._store.rows)

    def __contains__(self, key: bytes) -> bool:
        return key in self._store.rows

    @property
    def size_bytes(self) -> int:
        """What the numbers take."""
        return len(self) * (self.dimensions + 4)

    def add(self, keys: Sequence[bytes], vectors: Matrix) -> None:
        """Keep vectors of length 1 under their keys."""
        scales = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-9)) / np.float32(_MOST)
        numbers = np.rint(vectors / scales[:, None]).astype(np.int8)
        self.add_packed(keys, numbers, scales)

    def add_packed(self, keys: Sequence[bytes], numbers: NDArray[np.int8], scales: Matrix) -> None:
        """Keep vectors that are packed already."""
        with self._changing:
            store = self._store
            places = {key: at for at, key in enumerate(keys) if key not in store.rows}
            room, wanted = len(store.numbers), len(store.rows) + len(places)
            if wanted > room:
                # Others may compare with the old arrays: they stay as they are.
                store = store.copy(list(store.rows), max(wanted, 2 * room))
            new = list(places.values())
            store.add(list(places), numbers[new], scales[new])
            self._store = store
            self.changes += bool(new)

    def drop_unused(self) -> int:
        """Let go of the vectors that no document has any more; how many there were."""
        with self._changing:
            store = self._store
            used = {key for known in list(self.documents.values()) for key in known.keys}
            kept = [key for key in store.rows if key in used]
            dropped = len(store.rows) - len(kept)
            if dropped:
                self._store = store.copy(kept, len(kept))
                self.changes += 1
            return dropped

    def packed(self, keys: Iterable[bytes]) -> tuple[list[bytes], NDArray[np.int8], Matrix]:
        """Some keys, each once, with what is kept under them."""
        store = self._store
        wanted = list(dict.fromkeys(key for key in keys if key in store.rows))
        rows = [store.rows[key] for key in wanted]
        return wanted, store.numbers[rows], store.scales[rows]

    def table(self, catalog: Catalog) -> "Table":
        """The vectors of the documents of a catalog that are as they were then."""
        store = self._store
        slots: list[int] = []
        starts: list[int] = []
        rows: list[int] = []
        for slot, entry in enumerate(catalog.slots):
            known = self.documents.get(entry.path)
            if known is None or known.stamp != entry.stamp:
                continue
            if len(known.keys) == 1 + entry.indexed_sections and _holds(store, known.keys):
                slots.append(slot)
                starts.append(len(rows))
                rows += [store.rows[key] for key in known.keys]
        count = len(store.rows)
        return Table(catalog, store.numbers[:count], store.scales[:count], slots, starts, rows)


def _holds(store: _Store, keys: Collection[bytes]) -> bool:
    return all(key in store.rows for key in keys)


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

    @property
    def size_bytes(self) -> int:
        """What the numbers of its documents take, where each is kept once."""
        columns: int = self._numbers.shape[1]
        return len(np.unique(self._rows)) * (columns + 4)

    def similarities(self, vector: Matrix, bounds: Bounds) -> "Compared":
        """How near everything here is to a text of that vector."""
        cosines = np.empty(len(self._numbers), np.float32)
        for at in range(0, len(cosines), _CHUNK):
            part = slice(at, at + _CHUNK)
            cosines[part] = self._numbers[part].astype(np.float32) @ vector
        cosines *= self._scales
        return Compared(self, np.round(cosines[self._rows], DIGITS), bounds)

    def of_documents(self, cosines: Matrix) -> Matrix:
        """How near each document is: the two nearest things that it says, and what of itself.

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
        nearest = (best + np.where(alone, best, second)) / 2
        itself = cosines[self._starts]
        near: Matrix = np.round(nearest + np.float32(OF_ITSELF) * (itself - nearest), DIGITS)
        return near

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
