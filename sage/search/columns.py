"""One field of many documents: numbers, texts of their own, or values that many share.

A column is never changed; columns are joined from slices of others. What it keeps are a few blocks
of bytes, whatever the number of documents.
"""

import json
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice
from operator import le
from typing import Any, ClassVar, Self

from sage.terms.index_file import DAMAGED, UntrustedIndex

_MOST_STALE, _FEW = 2, 1_000
"""Values that no document has any more are left out when there are so many for each document, and
so many at least."""


class Column(ABC):
    """A field of consecutive documents."""

    PARTS: ClassVar[tuple[str, ...]]
    """The names of its bytes."""

    @classmethod
    @abstractmethod
    def of(cls, values: Sequence[Any]) -> Self:
        """These values."""

    @classmethod
    @abstractmethod
    def joined(cls, pieces: Sequence[tuple[Any, int, int]]) -> Self:
        """Slices of columns of the same kind, one behind the other."""

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: Mapping[str, bytes]) -> Self:
        """What was kept.

        Raises:
            LookupError, TypeError, ValueError: it is of another shape.
        """

    @abstractmethod
    def parts(self) -> dict[str, bytes]:
        """What is kept of it."""

    @property
    def distinct(self) -> Collection[Any]:
        """Every value that a document has."""
        return set(self)

    @abstractmethod
    def __len__(self) -> int: ...
    @abstractmethod
    def __getitem__(self, slot: int) -> Any: ...
    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...


class Numbers(Column):
    """Whole numbers of 64 bits."""

    PARTS = ("numbers",)

    def __init__(self, numbers: "array[int]") -> None:
        self._numbers = numbers

    @classmethod
    def of(cls, values: Sequence[int]) -> Self:
        return cls(array("q", values))

    @classmethod
    def joined(cls, pieces: Sequence[tuple[Self, int, int]]) -> Self:
        numbers = array("q")
        for column, first, end in pieces:
            numbers += column._numbers[first:end]
        return cls(numbers)

    @classmethod
    def from_parts(cls, parts: Mapping[str, bytes]) -> Self:
        return cls(_array("q", parts["numbers"]))

    def parts(self) -> dict[str, bytes]:
        return {"numbers": self._numbers.tobytes()}

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, slot: int) -> int:
        return self._numbers[slot]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)


class Texts(Column):
    """Texts of which hardly two are the same."""

    PARTS = ("ends", "texts")

    def __init__(self, texts: bytes, ends: "array[int]") -> None:
        self._texts = texts
        self._ends = ends

    @classmethod
    def of(cls, values: Sequence[str]) -> Self:
        encoded = [value.encode("utf-8", "surrogatepass") for value in values]
        return cls(b"".join(encoded), array("I", accumulate(map(len, encoded))))

    @classmethod
    def joined(cls, pieces: Sequence[tuple[Self, int, int]]) -> Self:
        texts: list[bytes] = []
        ends = array("I")
        size = 0
        for column, first, end in pieces:
            start, stop = column._start(first), column._start(end)
            texts.append(column._texts[start:stop])
            ends.extend(map((size - start).__add__, column._ends[first:end]))
            size += stop - start
        return cls(b"".join(texts), ends)

    @classmethod
    def from_parts(cls, parts: Mapping[str, bytes]) -> Self:
        texts, ends = parts["texts"], _array("I", parts["ends"])
        if not all(map(le, ends, islice(ends, 1, None))) or (ends[-1] if ends else 0) != len(texts):
            raise ValueError("the ends of texts are of another shape")
        return cls(texts, ends)

    def parts(self) -> dict[str, bytes]:
        return {"ends": self._ends.tobytes(), "texts": self._texts}

    def _start(self, slot: int) -> int:
        return self._ends[slot - 1] if slot else 0

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, slot: int) -> str:
        return _text(self._texts[self._start(slot) : self._ends[slot]])

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends:
            yield _text(self._texts[start:end])
            start = end


class Coded(Column):
    """Values that many documents share: each once, and for each document the number of its own."""

    PARTS = ("values", "codes")

    def __init__(self, codes: "array[int]", values: Callable[[], Sequence[Hashable]]) -> None:
        """Args:
        values: called when the first of them is needed.
        """
        self._codes = codes
        self._make_values = values

    @classmethod
    def of(cls, values: Sequence[Hashable]) -> Self:
        known = {value: code for code, value in enumerate(dict.fromkeys(values))}
        distinct = list(known)
        return cls(array("I", map(known.__getitem__, values)), lambda: distinct)

    @classmethod
    def joined(cls, pieces: Sequence[tuple[Self, int, int]]) -> Self:
        base = pieces[0][0]
        new: dict[Hashable, int] = {}
        codes = array("I")
        for column, first, end in pieces:
            part = column._codes[first:end]
            if column is base:
                codes += part
            else:
                values = column._values
                codes.extend(base._code(values[code], new) for code in part)
        values = [*base._values, *new] if new else base._values
        if len(values) > _MOST_STALE * len(codes) + _FEW:
            return cls.of([values[code] for code in codes])
        return cls(codes, lambda: values)

    @classmethod
    def from_parts(cls, parts: Mapping[str, bytes]) -> Self:
        codes, kept = _array("I", parts["codes"]), parts["values"]
        most = max(codes, default=-1)
        return cls(codes, lambda: _decoded(kept, most))

    def parts(self) -> dict[str, bytes]:
        values = json.dumps(self._values, ensure_ascii=False, separators=(",", ":"))
        return {"values": values.encode("utf-8", "surrogatepass"), "codes": self._codes.tobytes()}

    @property
    def distinct(self) -> Collection[Any]:
        values = self._values
        return [values[code] for code in set(self._codes)]

    @cached_property
    def _values(self) -> Sequence[Hashable]:
        return self._make_values()

    @cached_property
    def _places(self) -> Mapping[Hashable, int]:
        return {value: code for code, value in enumerate(self._values)}

    def _code(self, value: Hashable, new: dict[Hashable, int]) -> int:
        """The number of a value; one that is new gets the next."""
        known = self._places.get(value)
        return new.setdefault(value, len(self._values) + len(new)) if known is None else known

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, slot: int) -> Any:
        return self._values[self._codes[slot]]

    def __iter__(self) -> Iterator[Any]:
        return map(self._values.__getitem__, self._codes)


def _array(kind: str, data: bytes) -> "array[int]":
    numbers = array(kind)
    numbers.frombytes(data)
    return numbers


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UntrustedIndex(DAMAGED) from error


def _decoded(kept: bytes, most: int) -> Sequence[Hashable]:
    """Values as they were before they became JSON, the highest code among them."""
    try:
        values: list[Any] = json.loads(_text(kept))
    except (RecursionError, ValueError) as error:
        raise UntrustedIndex(DAMAGED) from error
    kinds = set(map(type, values)) if type(values) is list else {object}
    if kinds == {list} and {str}.issuperset(map(type, chain.from_iterable(values))):
        values = list(map(tuple, values))
    elif not (kinds <= {str} or kinds <= {int, float, type(None)}):
        raise UntrustedIndex(DAMAGED)
    if most >= len(values):
        raise UntrustedIndex(DAMAGED)
    return values
