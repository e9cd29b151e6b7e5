"""The index with its catalog and vocabulary, changed together and kept in the user's vault.

It decides what to add, delete and merge; it never reads a file of the knowledge base.
"""

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from operator import gt
from typing import Any

from sage import __version__, analysis, prose
from sage.catalog import EMPTY, Card, Catalog, from_json, to_json
from sage.index import PostingIndex
from sage.postings import Row
from sage.ranking import Ranker
from sage.vault import Doubtful, Vault
from sage.vocabulary import Vocabulary

FORMAT = 1
"""To be raised whenever what is indexed, or how, changes."""
_TIERS = (64, 512, 4_096, 32_768)
_IN_TIER = 6
"""So many segments of about one size are merged: an update stays cheap, a search too."""
_MIN_DEAD_ROWS = 256


Parcel = tuple[dict[str, Any], dict[str, bytes]]
"""Everything held at one moment: catalog and vocabulary, and the index's files."""


@dataclass
class Holdings:
    """One knowledge base's index and all that belongs to it."""

    index: PostingIndex = field(default_factory=PostingIndex)
    catalog: Catalog = EMPTY
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    footers: frozenset[str] = frozenset()
    """The footers that were left out of every card's rows."""

    def change(self, gone: Collection[str], described: Iterable[tuple[Card, list[Row]]]) -> None:
        """Take documents out and put others in; the old ones are served until it is done."""
        gone = {path for path in gone if path in self.catalog.cards}
        sizes = self.index.reader.segment_sizes
        merged = self._merged(gone, sizes)
        added: list[Card] = []
        self.index.change(self.catalog.rows_of(gone), self._rows(described, added), merged)
        merged_from = sum(sizes[: len(sizes) - merged]) if merged else None
        self.catalog = self.catalog.changed(gone, added, merged_from)

    def ranker(self) -> Ranker:
        """A ranker for what is held now."""
        return Ranker(self.catalog, self.index.reader.postings, self.vocabulary.fields)

    def _rows(
        self, described: Iterable[tuple[Card, list[Row]]], added: list[Card]
    ) -> Iterator[Row]:
        for card, rows in described:
            added.append(card)
            self.vocabulary.add(rows)
            yield from rows

    def _merged(self, gone: Collection[str], sizes: Sequence[int]) -> int:
        """How many of the last segments to merge: all when most is dead."""
        dead = self.catalog.dead_rows + sum(self.catalog.cards[path].rows for path in gone)
        alive = sum(sizes) - dead
        if dead > max(alive, _MIN_DEAD_ROWS):
            return len(sizes)
        return _same_size(sizes)


def _same_size(sizes: Sequence[int]) -> int:
    """The number of last segments up to a size that enough of them have."""
    least = 0
    for most in _TIERS:
        last = list(takewhile(partial(gt, most), reversed(sizes)))
        if sum(size >= least for size in last) >= _IN_TIER:
            return len(last)
        least = most
    return 0


def kept(vault: Vault, made_for: Mapping[str, Any]) -> Holdings | None:
    """What the vault holds, if it was made by this very program for the same settings.

    Raises:
        Doubtful: it must not be used; the message says why.
    """
    found = vault.read()
    if found is None:
        return None
    manifest, files = found
    if manifest.get("made") != _made(made_for):
        raise Doubtful("the index was made by another version or for other settings")
    try:
        data = json.loads(files.pop("catalog.json").decode("utf-8", "surrogatepass"))
        return Holdings(
            PostingIndex(files),
            from_json(data["catalog"]),
            Vocabulary(data["vocabulary"]),
            frozenset(data["footers"]),
        )
    except (AttributeError, KeyError, LookupError, TypeError, ValueError) as error:
        raise Doubtful("the index file is not one of ours") from error


def parcel(holdings: Holdings) -> Parcel:
    """Everything held at this moment, to be kept; later changes leave it alone."""
    data = {
        "catalog": to_json(holdings.catalog),
        "vocabulary": holdings.vocabulary.to_json(),
        "footers": sorted(holdings.footers),
    }
    return data, holdings.index.files


def keep(vault: Vault, packed: Parcel, made_for: Mapping[str, Any]) -> int:
    """Write a parcel to the vault and return its size.

    Raises:
        Doubtful: it cannot be written safely.
    """
    data, files = packed
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    files = {**files, "catalog.json": text.encode("utf-8", "surrogatepass")}
    return vault.write({"made": _made(made_for)}, files)


def _made(made_for: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "sage": __version__,
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "byteorder": sys.byteorder,
        "longest": [analysis.MAX_TERM, analysis.MAX_PARTS, prose.FOOTER_LINES],
        **made_for,
    }
