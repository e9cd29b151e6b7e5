"""What the index knows of each document without opening it: cards, and where their rows lie.

A catalog is never changed; an update makes the next one. Postings are the index's.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from sage.files import Stamp


class SectionCard(NamedTuple):
    """One indexed section of a document."""

    ordinal: int
    """Its place in the document's sections."""
    heading: str
    """The breadcrumb, outermost first."""
    anchor: str
    """What follows # in its topic; empty where the document's topic is as good."""
    start_line: int
    end_line: int
    tokens: int
    length: int
    """Words, for the ranking."""


class Card(NamedTuple):
    """One document as search sees it."""

    path: str
    layer: str
    topic: str
    title: str
    summary: str
    stamp: Stamp
    tags: tuple[str, ...]
    languages: tuple[str, ...]
    type: str
    status: str
    is_index: bool
    title_length: int
    path_length: int
    last_lines: tuple[str, ...]
    """Keys of the lines that may be a footer."""
    section_total: int
    """All its sections, those that only point elsewhere included."""
    tokens: int
    """The tokens of all of them."""
    length: int
    """Words of the indexed sections, for the ranking."""
    sections: tuple[SectionCard, ...]

    @property
    def rows(self) -> int:
        """The rows it takes in the index: one of its own, one for each section."""
        return 1 + len(self.sections)


class Block(NamedTuple):
    """Consecutive rows of one document; of none when the path is empty."""

    path: str
    rows: int


@dataclass(frozen=True)
class Catalog:
    """The documents of one generation of the index."""

    cards: Mapping[str, Card]
    blocks: tuple[Block, ...]
    """All rows of the index in order, deleted ones included."""

    @cached_property
    def slots(self) -> tuple[Card, ...]:
        """The cards in the order of their rows."""
        return tuple(self.cards[block.path] for block in self.blocks if block.path)

    @cached_property
    def first_rows(self) -> tuple[int, ...]:
        """For each slot the number of its document's row; its sections follow."""
        firsts = []
        row = 0
        for block in self.blocks:
            if block.path:
                firsts.append(row)
            row += block.rows
        return tuple(firsts)

    @cached_property
    def owners(self) -> list[int]:
        """For each row the slot it belongs to, or -1 when it was deleted."""
        owners: list[int] = []
        slot = 0
        for block in self.blocks:
            owners += [slot if block.path else -1] * block.rows
            slot += bool(block.path)
        return owners

    @cached_property
    def row_lengths(self) -> list[int]:
        """For each row the words of its section, 0 where it is none that lives."""
        lengths: list[int] = []
        for block in self.blocks:
            if block.path:
                sections = self.cards[block.path].sections
                lengths += (0, *(section.length for section in sections))
            else:
                lengths += [0] * block.rows
        return lengths

    @cached_property
    def section_count(self) -> int:
        """How many sections can be found."""
        return sum(len(card.sections) for card in self.slots)

    @cached_property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """For each layer its sections and their tokens."""
        sizes: dict[str, tuple[int, int]] = {}
        for card in self.slots:
            sections, tokens = sizes.get(card.layer, (0, 0))
            sizes[card.layer] = (sections + card.section_total, tokens + card.tokens)
        return sizes

    @property
    def dead_rows(self) -> int:
        """Rows of documents that are gone or were indexed again."""
        return sum(block.rows for block in self.blocks if not block.path)

    def rows_of(self, paths: Collection[str]) -> list[int]:
        """The rows of some documents."""
        rows: list[int] = []
        for slot, card in enumerate(self.slots):
            if card.path in paths:
                first = self.first_rows[slot]
                rows += range(first, first + card.rows)
        return rows

    def changed(
        self, gone: Collection[str], added: Sequence[Card], merged_from: int | None = None
    ) -> "Catalog":
        """The catalog after some documents went and others came in rows behind the last.

        From the row `merged_from` on, what lives was moved behind the added rows.
        """
        cards = {path: card for path, card in self.cards.items() if path not in gone}
        cards.update((card.path, card) for card in added)
        kept: list[Block] = []
        moved: list[Block] = []
        row = 0
        for block in self.blocks:
            alive = bool(block.path) and block.path not in gone
            if merged_from is not None and row >= merged_from:
                moved += [block] if alive else []
            else:
                kept.append(block if alive else Block("", block.rows))
            row += block.rows
        fresh = [Block(card.path, card.rows) for card in added]
        return Catalog(cards, tuple(kept + fresh + moved))


EMPTY = Catalog({}, ())


def to_json(catalog: Catalog) -> dict[str, Any]:
    """A catalog as plain lists."""
    return {"cards": list(catalog.cards.values()), "blocks": list(catalog.blocks)}


def from_json(data: Mapping[str, Any]) -> Catalog:
    """A catalog from plain lists.

    Raises:
        TypeError, KeyError, ValueError: the lists are of another shape.
    """
    cards = [_card(fields) for fields in data["cards"]]
    blocks = tuple(Block(path, rows) for path, rows in data["blocks"])
    catalog = Catalog({card.path: card for card in cards}, blocks)
    if sorted(block.path for block in blocks if block.path) != sorted(catalog.cards):
        raise ValueError("the rows and the cards differ")
    return catalog


def _card(fields: Iterable[Any]) -> Card:
    card = Card(*fields)
    return card._replace(
        stamp=Stamp(*card.stamp),
        tags=tuple(card.tags),
        languages=tuple(card.languages),
        last_lines=tuple(card.last_lines),
        sections=tuple(SectionCard(*section) for section in card.sections),
    )
