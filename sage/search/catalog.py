"""What the index knows of each document without opening it: entries, and where their rows lie.

A catalog is never changed; an update makes the next one. Its entries lie in columns, of which one
is made when somebody asks for it. Postings are the index's.
"""

import posixpath
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, repeat
from typing import Any, NamedTuple, overload

from sage.documents.files import Stamp
from sage.documents.topics import topic_parts
from sage.search.columns import Coded, Column, Numbers, Texts
from sage.values import state_of


class DocumentEntry(NamedTuple):
    """One document as search sees it."""

    path: str
    layer: str
    source: str
    """The name of the source that it comes from."""
    topic: str
    id: str
    """The name of its own that its front matter gives it; empty when it has none."""
    title: str
    summary: str
    stamp: Stamp
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    languages: tuple[str, ...]
    task_types: tuple[str, ...]
    applies_to: tuple[str, ...]
    """Globs of the files that it belongs to."""
    type: str
    status: str
    superseded_by: str
    """What it names itself, as it is written there."""
    priority: int
    order: float | None
    last_updated: str
    is_index: bool
    title_length: int
    path_length: int
    last_lines: tuple[str, ...]
    """Keys of the lines that may be a footer."""
    section_total: int
    """All its sections, those that only point elsewhere included."""
    tokens: int
    """Those of all it says."""
    length: int
    """Words of the indexed sections, for the ranking."""
    indexed_sections: int
    """Those that can be found: not those that only point elsewhere."""
    problems: tuple[str, ...] = ()
    """What is not served as written, without the path."""

    @property
    def state(self) -> str:
        """Its status; a page that names its successor is superseded whatever else it says."""
        return state_of(self.status, self.superseded_by)

    @property
    def updated(self) -> str:
        """The day that it names, else that of its file."""
        return self.last_updated or self.stamp.day

    @property
    def rows(self) -> int:
        """The rows it takes in the index: one of its own, one for each section."""
        return 1 + self.indexed_sections


class MadeEntries(dict[int, DocumentEntry]):
    """Entries by their slots, each made from its columns when it is asked for first."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        super().__init__()
        self._columns = columns

    def __missing__(self, slot: int) -> DocumentEntry:
        values = {name: column[slot] for name, column in self._columns.items()}
        stamp = Stamp(*(values.pop(name) for name in _STAMP))
        values["is_index"] = bool(values["is_index"])
        entry = self[slot] = DocumentEntry(stamp=stamp, **values)
        return entry


class EntryTable(Sequence[DocumentEntry]):
    """Entries in columns; one that was made is kept. Safe to share between threads."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Args:
        columns: those of COLUMNS, of the same length.
        """
        self.columns = columns
        self.made = MadeEntries(columns)

    @classmethod
    def of(cls, entries: Sequence[DocumentEntry]) -> "EntryTable":
        """These entries."""
        fields = zip(*entries, strict=True) if entries else ((),) * len(DocumentEntry._fields)
        values = dict(zip(DocumentEntry._fields, fields, strict=True))
        stamps = zip(*values.pop("stamp"), strict=True) if entries else ((),) * len(Stamp._fields)
        values |= zip(_STAMP, stamps, strict=True)
        return cls({name: kind.of(values[name]) for name, kind in COLUMNS.items()})

    @classmethod
    def joined(cls, pieces: Sequence[tuple["EntryTable", int, int]]) -> "EntryTable":
        """Slices of tables, one behind the other."""
        columns = {
            name: kind.joined([(table.columns[name], first, end) for table, first, end in pieces])
            for name, kind in COLUMNS.items()
        }
        joined = cls(columns)
        start = 0
        for table, first, end in pieces:
            made = table.made.copy().items()  # other threads may make more of them
            joined.made.update((start + at - first, one) for at, one in made if first <= at < end)
            start += end - first
        return joined

    def __len__(self) -> int:
        return len(self.columns["path"])

    @overload
    def __getitem__(self, slot: int) -> DocumentEntry: ...
    @overload
    def __getitem__(self, slot: slice) -> Sequence[DocumentEntry]: ...
    def __getitem__(self, slot: int | slice) -> DocumentEntry | Sequence[DocumentEntry]:
        if isinstance(slot, slice):
            return [self.made[one] for one in range(*slot.indices(len(self)))]
        return self.made[slot if slot >= 0 else len(self) + slot]

    def __iter__(self) -> Iterator[DocumentEntry]:
        self.make_all()
        return map(self.made.__getitem__, range(len(self)))

    def make_all(self) -> None:
        """Make every entry: all at once take a third of the time that one by one takes."""
        if len(self.made) == len(self):
            return
        fields: dict[str, Iterable[Any]] = dict(self.columns)
        fields["stamp"] = map(Stamp, *(fields.pop(name) for name in _STAMP))
        fields["is_index"] = map(bool, fields["is_index"])
        entries = map(DocumentEntry, *(fields[name] for name in DocumentEntry._fields))
        for slot, entry in enumerate(entries):
            self.made.setdefault(slot, entry)

    def stamps(self) -> list[Stamp]:
        """The stamps of all entries, which need not be made for that."""
        return list(map(Stamp, *(self.columns[name] for name in _STAMP)))


class EntriesByPath(Mapping[str, DocumentEntry]):
    """The entries of a table by their paths; whoever goes through them has all of them made."""

    def __init__(self, table: EntryTable, places: Mapping[str, int]) -> None:
        self._table = table
        self._places = places

    def __getitem__(self, path: str) -> DocumentEntry:
        return self._table[self._places[path]]

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def __iter__(self) -> Iterator[str]:
        self._table.make_all()
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@dataclass(frozen=True, eq=False)
class Catalog:
    """The documents of one generation of the index."""

    slots: EntryTable
    """The entries in the order of their rows."""
    row_counts: "array[int]"
    """How many consecutive rows each has: documents, and what is deleted between them."""
    alive: bytes
    """For each of these 1, or 0 where the rows are deleted."""

    @cached_property
    def entry(self) -> Callable[[int], DocumentEntry]:
        """Gives the entry of a slot."""
        return self.slots.made.__getitem__

    @cached_property
    def entries(self) -> EntriesByPath:
        """The entries by their paths."""
        return EntriesByPath(self.slots, self.places)

    def column(self, name: str) -> Column:
        """One field of all entries, in the order of slots."""
        return self.slots.columns[name]

    @cached_property
    def successors(self) -> Mapping[int, int]:
        """For the slot of every page that another replaces, the slot of the one in force."""
        replaced = [slot for slot, name in enumerate(self.column("superseded_by")) if name]
        if not replaced:
            return {}
        addresses = [tuple(topic_parts(topic)) for topic in self.column("topic")]
        steps = {slot: self._named(slot, addresses) for slot in replaced}
        found: dict[int, int] = {}
        for slot in replaced:
            seen, last = {slot}, steps[slot]
            while last is not None and last in steps and last not in seen:
                seen.add(last)
                last = steps[last]
            if last is not None and last not in seen:
                found[slot] = last
        return found

    def _named(self, slot: int, addresses: Sequence[tuple[str, ...]]) -> int | None:
        """The page that another names as its successor, by its path from there, topic or title."""
        entry = self.slots[slot]
        name = entry.superseded_by.partition("#")[0]
        near = posixpath.join(posixpath.dirname(entry.path), name)
        for parts in map(tuple, map(topic_parts, (posixpath.normpath(near), name))):
            for other, address in enumerate(addresses):
                if parts and address[-len(parts) :] == parts and other != slot:
                    return other
        wanted = name.casefold()
        titled = (
            other
            for other, one in enumerate(self.slots)
            if wanted in (one.title.casefold(), one.id.casefold())
        )
        return next((other for other in titled if other != slot), None)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """For the path of each document its slot."""
        return {path: slot for slot, path in enumerate(self.column("path"))}

    @cached_property
    def first_rows(self) -> "array[int]":
        """For each slot the number of its document's row; its sections follow."""
        firsts = array("I")
        row = 0
        for rows, alive in zip(self.row_counts, self.alive, strict=True):
            if alive:
                firsts.append(row)
            row += rows
        return firsts

    @cached_property
    def owners(self) -> "array[int]":
        """For each row the slot it belongs to, or -1 when it was deleted."""
        owners = array("i")
        slot = 0
        for rows, alive in zip(self.row_counts, self.alive, strict=True):
            owners.extend(repeat(slot if alive else -1, rows))
            slot += alive
        return owners

    @cached_property
    def tags(self) -> frozenset[str]:
        """Every tag that a page has."""
        return frozenset(chain.from_iterable(self.column("tags").distinct))

    @cached_property
    def languages(self) -> frozenset[str]:
        """Every language that a page is for."""
        return frozenset(chain.from_iterable(self.column("languages").distinct))

    @cached_property
    def sources(self) -> frozenset[str]:
        """Every source that a page comes from."""
        return frozenset(self.column("source").distinct)

    @cached_property
    def section_count(self) -> int:
        """How many sections can be found."""
        return sum(self.column("indexed_sections"))

    @cached_property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """For each layer its sections and their tokens."""
        sizes: dict[str, tuple[int, int]] = {}
        columns = map(self.column, ("layer", "section_total", "tokens"))
        for layer, of_page, its_tokens in zip(*columns, strict=True):
            sections, tokens = sizes.get(layer, (0, 0))
            sizes[layer] = (sections + of_page, tokens + its_tokens)
        return sizes

    @cached_property
    def dead_rows(self) -> int:
        """Rows of documents that are gone or were indexed again."""
        return sum(self.row_counts) - self.section_count - len(self.slots)

    def rows_of(self, paths: Collection[str]) -> list[int]:
        """The rows of some documents."""
        rows: list[int] = []
        for slot in sorted(map(self.places.__getitem__, paths)):
            first = self.first_rows[slot]
            rows += range(first, first + 1 + self.column("indexed_sections")[slot])
        return rows

    def changed(
        self, gone: Collection[str], added: Sequence[DocumentEntry], merged_from: int | None = None
    ) -> "Catalog":
        """The catalog after some documents went and others came in rows behind the last.

        From the row `merged_from` on, what lives was moved behind the added rows.
        """
        dying = set(map(self.places.__getitem__, gone))
        kept, moved = _Spans(), _Spans()
        row = slot = 0
        for rows, alive in zip(self.row_counts, self.alive, strict=True):
            lives = bool(alive) and slot not in dying
            if merged_from is None or row < merged_from:
                kept.add(rows, slot if lives else -1)
            elif lives:
                moved.add(rows, slot)
            slot += alive
            row += rows
        fresh = EntryTable.of(added)
        pieces = [
            *((self.slots, *run) for run in kept.runs),
            (fresh, 0, len(fresh)),
            *((self.slots, *run) for run in moved.runs),
        ]
        counts = array("I", [*kept.rows, *(entry.rows for entry in added), *moved.rows])
        living = bytes([*kept.alive, *repeat(1, len(added)), *moved.alive])
        return Catalog(EntryTable.joined(pieces), counts, living)


class _Spans:
    """Rows that follow each other, and the slots of the documents among them in runs."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.alive: list[int] = []
        self.runs: list[tuple[int, int]] = []

    def add(self, rows: int, slot: int) -> None:
        """Add the rows of a document; of none when the slot is -1."""
        self.rows.append(rows)
        self.alive.append(slot >= 0)
        if slot < 0:
            return
        if self.runs and self.runs[-1][1] == slot:
            self.runs[-1] = (self.runs[-1][0], slot + 1)
        else:
            self.runs.append((slot, slot + 1))


def catalog_of(entries: Iterable[DocumentEntry]) -> Catalog:
    """The catalog of documents whose rows follow each other."""
    return EMPTY.changed((), list(entries))


def to_parts(catalog: Catalog) -> dict[str, bytes]:
    """A catalog as named bytes."""
    parts = {"row_counts": catalog.row_counts.tobytes(), "alive": catalog.alive}
    for name, column in catalog.slots.columns.items():
        parts |= {f"{name}.{part}": data for part, data in column.parts().items()}
    return parts


def from_parts(parts: Mapping[str, bytes]) -> Catalog:
    """A catalog from named bytes.

    Raises:
        LookupError, TypeError, ValueError: they are of another shape.
    """
    columns = {
        name: kind.from_parts({part: parts[f"{name}.{part}"] for part in kind.PARTS})
        for name, kind in COLUMNS.items()
    }
    if len(set(map(len, columns.values()))) != 1:
        raise ValueError("some fields lack values")
    counts, alive = array("I"), parts["alive"]
    counts.frombytes(parts["row_counts"])
    sections = columns["indexed_sections"]
    if len(counts) != len(alive) or not set(alive) <= {0, 1}:
        raise ValueError("the rows are of another shape")
    if list(compress(counts, alive)) != [1 + count for count in sections]:
        raise ValueError("the rows and the entries differ")
    catalog = Catalog(EntryTable(columns), counts, alive)
    if len(catalog.places) != len(catalog.slots):
        raise ValueError("a path occurs twice")
    return catalog


_STAMP = tuple(f"stamp_{name}" for name in Stamp._fields)
_OWN_TEXTS = ("path", "topic", "id", "title", "summary")
"""What hardly two pages share; of all other fields that are no sizes there are few values."""


def _kind_of(name: str, kind: Any) -> type[Column]:
    if name in _OWN_TEXTS:
        return Texts
    return Numbers if kind in (int, bool) and name != "priority" else Coded


COLUMNS: Mapping[str, type[Column]] = {
    **{
        name: _kind_of(name, kind)
        for name, kind in DocumentEntry.__annotations__.items()
        if name != "stamp"
    },
    **dict.fromkeys(_STAMP, Numbers),
}
"""How each field of an entry is kept."""

EMPTY = Catalog(EntryTable.of(()), array("I"), b"")
