"""Writes arithmetic as an ONNX model, so that one call of the runtime does all of it.

An ONNX file is a protobuf message; of its many fields a dozen are needed here.
"""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sage.semantic.encoder import Matrix

_FORMAT, _OPERATORS = 9, 20
"""Versions of the file format and of the set of operators."""
_FLOAT, _INT64 = 1, 7
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7
_LAST_BITS = (1 << 64) - 1

Attribute = int | float | Sequence[int]


class Graph:
    """Operators on arrays, each named by what it gives."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, values: Matrix | NDArray[np.int64]) -> str:
        """An array that is part of the model."""
        name = f"constant{len(self._constants)}"
        kind = _FLOAT if values.dtype == np.float32 else _INT64
        shape = b"".join(_field(1, size) for size in values.shape)
        self._constants.append(
            shape + _field(2, kind) + _field(8, name) + _field(9, values.tobytes())
        )
        return name

    def numbers(self, *values: int) -> str:
        """Whole numbers that are part of the model: a shape, or places."""
        return self.constant(np.array(values, np.int64))

    def apply(self, operator: str, *given: str, **attributes: Attribute) -> str:
        """What an operator makes of what is given."""
        name = f"node{len(self._nodes)}"
        inputs = b"".join(_field(1, one) for one in given)
        told = b"".join(_field(5, _attribute(key, value)) for key, value in attributes.items())
        self._nodes.append(inputs + _field(2, name) + _field(4, operator) + told)
        return name

    def model(self, given: str, result: str, columns: int) -> bytes:
        """A model from rows of that many columns to others."""
        graph = b"".join(_field(1, node) for node in self._nodes) + _field(2, "graph")
        graph += b"".join(_field(5, constant) for constant in self._constants)
        graph += _field(11, _rows(given, columns)) + _field(12, _rows(result, columns))
        operators = _field(8, _field(1, "") + _field(2, _OPERATORS))
        return _field(1, _FORMAT) + _field(7, graph) + operators


def _rows(name: str, columns: int) -> bytes:
    """That a name is of any number of rows of floats."""
    shape = _field(1, _field(2, f"rows of {name}")) + _field(1, _field(1, columns))
    return _field(1, name) + _field(2, _field(1, _field(1, _FLOAT) + _field(2, shape)))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, _ATTRIBUTE_FLOAT)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, _ATTRIBUTE_INT)
    return _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, _ATTRIBUTE_INTS)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """A number in as few bytes as it needs; one below zero takes all 64 bits."""
    value &= _LAST_BITS
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
