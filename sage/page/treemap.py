"""Rectangles whose areas are shares of a whole, as square as rows of them can be."""

from collections.abc import Sequence
from typing import NamedTuple


class Tile(NamedTuple):
    """One share and where it lies."""

    name: str
    size: int
    x: float
    y: float
    width: float
    height: float


def treemap(sizes: Sequence[tuple[str, int]], width: float, height: float) -> list[Tile]:
    """A tile for every share that is not empty, the largest first."""
    shares = sorted((share for share in sizes if share[1] > 0), key=lambda one: (-one[1], one[0]))
    total = sum(size for _, size in shares)
    tiles: list[Tile] = []
    x = y = 0.0
    while shares:
        scale = width * height / total
        row = _row(shares, scale, min(width, height))
        weight = sum(size for _, size in row)
        along = weight * scale / min(width, height)
        place = 0.0
        for name, size in row:
            length = size * scale / along
            if width >= height:
                tiles.append(Tile(name, size, x, y + place, along, length))
            else:
                tiles.append(Tile(name, size, x + place, y, length, along))
            place += length
        if width >= height:
            x, width = x + along, max(width - along, 1e-9)
        else:
            y, height = y + along, max(height - along, 1e-9)
        shares, total = shares[len(row) :], total - weight
    return tiles


def _row(shares: Sequence[tuple[str, int]], scale: float, side: float) -> Sequence[tuple[str, int]]:
    """As many shares as make the tiles of a row squarer."""
    best, count = float("inf"), 1
    weight = 0
    for position, (_, size) in enumerate(shares, 1):
        weight += size
        along = weight * scale / side
        # The first is the longest of the row, the last the shortest.
        worst = max(
            _elongation(shares[0][1] * scale / along, along),
            _elongation(size * scale / along, along),
        )
        if worst > best:
            break
        best, count = worst, position
    return shares[:count]


def _elongation(one: float, other: float) -> float:
    return max(one / other, other / one)
