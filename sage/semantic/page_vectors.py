"""The vectors of one page as they travel: packed with their keys, and read only if they are whole.

In order: how many there are and of how many numbers, their keys, their scales, their numbers.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sage.semantic.encoder import Matrix
from sage.semantic.passages import KEY_BYTES
from sage.semantic.vectors import Vectors

_HEAD = struct.Struct("<II")
_MOST_NUMBERS = 65_536
"""Of one vector."""


class PageVectors(NamedTuple):
    """What a page says of itself, then each of its indexed sections, as vectors."""

    keys: tuple[bytes, ...]
    numbers: NDArray[np.int8]
    scales: Matrix


def pack_page(vectors: Vectors, keys: Sequence[bytes]) -> bytes:
    """The vectors that are kept under some keys, in their order."""
    known, numbers, scales = vectors.packed(keys)
    places = {key: at for at, key in enumerate(known)}
    rows = [places[key] for key in keys]
    head = _HEAD.pack(len(keys), vectors.dimensions)
    return b"".join(
        (head, *keys, scales[rows].astype("<f4").tobytes(), numbers[rows].tobytes()),
    )


def unpack_page(data: bytes) -> PageVectors:
    """What was packed.

    Raises:
        ValueError: it is something else.
    """
    if len(data) < _HEAD.size:
        raise ValueError("the vectors of a page have no head")
    count, dimensions = _HEAD.unpack_from(data)
    wanted = _HEAD.size + count * (KEY_BYTES + 4 + dimensions)
    if not 0 < dimensions <= _MOST_NUMBERS or len(data) != wanted:
        raise ValueError("the vectors of a page have another size")
    first = _HEAD.size
    keys = tuple(data[first + at * KEY_BYTES :][:KEY_BYTES] for at in range(count))
    first += count * KEY_BYTES
    scales = np.frombuffer(data, "<f4", count, first).astype(np.float32)
    if not np.isfinite(scales).all():
        raise ValueError("the vectors of a page are no numbers")
    numbers = np.frombuffer(data, np.int8, count * dimensions, first + 4 * count)
    return PageVectors(keys, numbers.reshape(count, dimensions), scales)
