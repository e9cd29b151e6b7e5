"""How near documents and sections are to each other: the kept vectors, compared among themselves.

No model is needed for it. A document is the mean of what its sections say.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np

from sage.search.fusion import Bounds, Double
from sage.semantic.encoder import Matrix, normalized
from sage.semantic.vectors import DIGITS, Rows, Table

_MOST_ARE_FARTHER = 75
"""In a hundred: of the pairs of pages that link in three bases, 50, 67 and 58 in a hundred are
among the first five by words alone, 54, 69 and 60 with what is nearer than these."""
_BLOCK = 512
_NOT_COMPARED = -2.0
"""Below every cosine."""


class TableLikeness:
    """Compares what one table holds. Never changed."""

    def __init__(self, table: Table, bounds: Bounds) -> None:
        self.table = table
        self._akin = bounds.akin

    def of_document(self, slot: int) -> Mapping[int, float]:
        """How much nearer to one document some others are than most: slots with 0 to 1."""
        at = self.table.place_of(slot)
        if at is None or len(self._centres) < 2:
            return {}
        near = np.round(self._centres @ self._centres[at], DIGITS)
        others = np.delete(near, at)
        usual = float(np.percentile(others, _MOST_ARE_FARTHER))
        if usual >= 1:
            return {}
        shares = np.round((near - usual) / (1 - usual), DIGITS)
        return {
            self.table.slot_at(int(other)): min(1.0, float(shares[other]))
            for other in np.flatnonzero(shares > 0)
            if other != at
        }

    def doubles(self, least: float, allowed: Callable[[int], bool]) -> Iterator[Double]:
        """Sections of allowed documents that are alike at least so much, each with its nearest."""
        from_on = self._akin + least * (1 - self._akin)
        if from_on > 1:
            return
        sections = self.table.sections_of(allowed)
        owners = np.array([slot for slot, _, _ in sections])
        rows = np.array([row for _, _, row in sections])
        seen: set[tuple[int, int]] = set()
        for start in range(0, len(sections), _BLOCK):
            near = self._block(rows[start : start + _BLOCK], rows)
            near[owners[start : start + _BLOCK, None] == owners] = _NOT_COMPARED
            # In the order of paths, the first of equals is the same on every machine.
            nearest = near.argmax(axis=1)
            for at, other in enumerate(nearest.tolist(), start):
                cosine = float(near[at - start, other])
                pair = (min(at, other), max(at, other))
                if cosine >= from_on and pair not in seen:
                    seen.add(pair)
                    yield self._double(sections[pair[0]], sections[pair[1]], cosine)

    def _double(
        self, first: tuple[int, int, int], second: tuple[int, int, int], cosine: float
    ) -> Double:
        likeness = min(1.0, (cosine - self._akin) / (1 - self._akin))
        return Double(first[:2], second[:2], round(likeness, DIGITS))

    def _block(self, some: Rows, rows: Rows) -> Matrix:
        """The rounded cosines of some rows with all."""
        first = self.table.unpacked(some)
        found = np.empty((len(some), len(rows)), np.float32)
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            found[:, part] = first @ self.table.unpacked(rows[part]).T
        return np.round(found, DIGITS)

    @cached_property
    def _centres(self) -> Matrix:
        """Every document as the direction that its sections have in common."""
        return normalized(self.table.sums())
