"""What an index keeps of terms: the fields, rows of terms, and where each term occurs.

Positions are packed into bytes; where those lie is the index's.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

DOCUMENT_FIELDS = ("title", "aliases", "tags", "summary", "path")
SECTION_FIELDS = ("headings", "body", "code")
FIELDS = DOCUMENT_FIELDS + SECTION_FIELDS

MAX_POSITION = 65_535
MAX_POSITIONS = 255
"""Positions kept of one term in one row: a count this high is saturated long before."""

Positions = Mapping[str, list[int]]


class Row(NamedTuple):
    """What is indexed together: the terms of each field, and the text to show."""

    fields: Mapping[str, Positions]
    text: str


class Postings(NamedTuple):
    """Where a term occurs in one field: row numbers, and at each the packed positions."""

    rows: Sequence[int]
    places: Sequence[bytes]


class Pool:
    """Gathers postings by term while rows are added, in place of Whoosh's sorting on disk.

    Rows come in the order of their numbers, so that only the terms need to be sorted.
    """

    def __init__(self) -> None:
        self._fields: dict[str, dict[str, tuple[list[int], list[bytes]]]] = {}
        self._shared: dict[bytes, bytes] = {}

    def gather(self, row: int, fields: Mapping[str, Positions]) -> None:
        """Take the terms of a row whose number is higher than any before."""
        shared = self._shared
        for field, positions in fields.items():
            terms = self._fields.setdefault(field, {})
            for form, places in positions.items():
                packed = pack(places)
                held = terms.get(form)
                if held is None:
                    held = terms[form] = ([], [])
                held[0].append(row)
                held[1].append(shared.setdefault(packed, packed))

    def add(self, posting: tuple[str, bytes, int, float, bytes]) -> None:
        """Take one posting as Whoosh itself hands them over."""
        field, term, row, _, places = posting
        self.extend(field, term.decode(), [row], [places])

    def extend(self, field: str, form: str, rows: list[int], places: Sequence[bytes]) -> None:
        """Take the postings of a term in rows behind all that came before."""
        held = self._fields.setdefault(field, {}).setdefault(form, ([], []))
        held[0].extend(rows)
        held[1].extend(places)

    def iter_postings(self) -> Iterator[tuple[str, bytes, tuple[list[int], list[bytes]]]]:
        """Everything gathered, in the order of fields and terms."""
        for field, terms in sorted(self._fields.items()):
            for term, form in sorted((form.encode(), form) for form in terms):
                yield field, term, terms[form]

    def cleanup(self) -> None:
        """Let go of what was gathered."""
        self._fields.clear()


def pack(positions: list[int]) -> bytes:
    """Positions as bytes; a count is half their length."""
    kept = positions[:MAX_POSITIONS]
    if kept[-1] > MAX_POSITION:
        kept = [min(position, MAX_POSITION) for position in kept]
    return struct.pack(f"<{len(kept)}H", *kept)


def unpack(places: bytes) -> tuple[int, ...]:
    """The positions in packed bytes."""
    return struct.unpack(f"<{len(places) // 2}H", places)
