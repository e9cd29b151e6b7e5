"""Writes arithmetic as an ONNX model, so that one call of the runtime does all of it.

An ONNX file is a protobuf message; of its many fields a dozen are needed here.
"""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sage.semantic.encoder import Matrix

_FORMAT, _OPERATORS = 9, 20
"""Versions of the file format and of the set of operators."""
_KINDS = {"float32": 1, "uint8": 2, "int64": 7}
_FLOAT = _KINDS["float32"]
_RUNTIME = "com.microsoft"
"""Whose operators the runtime has beyond the standard."""
_ZERO = 128
_BY_INT8 = 4
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7
_LAST_BITS = (1 << 64) - 1

Attribute = int | float | Sequence[int]


class Graph:
    """Operators on arrays, each named by what it gives."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, values: Matrix | NDArray[np.int64] | NDArray[np.uint8]) -> str:
        """An array that is part of the model."""
        name = f"constant{len(self._constants)}"
        kind = _KINDS[values.dtype.name]
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
        return self._apply(operator, given, attributes, b"")

    def times_groups(self, rows: str, numbers: NDArray[np.int8], scales: Matrix) -> str:
        """Rows times the transpose of a matrix of int8 in groups along its columns.

        The rows are made int8 as well, in the same groups.

        Args:
            numbers: rows, groups of each, and numbers of each group.
            scales: one for each group.
        """
        count, groups, size = numbers.shape
        raised = (numbers.view(np.uint8) + np.uint8(_ZERO)).astype(np.uint8)
        given = (rows, self.constant(raised), self.constant(np.ravel(scales)))
        shape = {"N": count, "K": groups * size, "bits": 8, "block_size": size}
        attributes = {**shape, "accuracy_level": _BY_INT8}
        return self._apply("MatMulNBits", given, attributes, _field(7, _RUNTIME))

    def _apply(
        self,
        operator: str,
        given: Sequence[str],
        attributes: Mapping[str, Attribute],
        domain: bytes,
    ) -> str:
        name = f"node{len(self._nodes)}"
        inputs = b"".join(_field(1, one) for one in given)
        told = b"".join(_field(5, _attribute(key, value)) for key, value in attributes.items())
        self._nodes.append(inputs + _field(2, name) + _field(4, operator) + told + domain)
        return name

    def model(self, given: str, result: str, columns: int) -> bytes:
        """A model from rows of that many columns to others."""
        graph = b"".join(_field(1, node) for node in self._nodes) + _field(2, "graph")
        graph += b"".join(_field(5, constant) for constant in self._constants)
        graph += _field(11, _rows(given, columns)) + _field(12, _rows(result, columns))
        operators = _field(8, _field(1, "") + _field(2, _OPERATORS))
        operators += _field(8, _field(1, _RUNTIME) + _field(2, 1))
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
