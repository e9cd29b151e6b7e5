"""One moment of the published base, and what somebody may see of it.

A view never changes: an answer is made from one view from beginning to end.
"""

import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_

from sage.cluster.loading import SourceGeneration
from sage.cluster.page_record import PageRows
from sage.cluster.words import ClusterWords
from sage.documents.files import SourceFile
from sage.documents.places import topic_of
from sage.documents.source_roots import Listing
from sage.search.catalog import Catalog, catalog_of
from sage.search.scoring import CorpusStats

UNLOADED = "what was published last cannot be loaded; whoever runs this server is told why"


class Scope:
    """What somebody who may see some layers and sources knows of one view. Safe to share."""

    def __init__(
        self, view: "View", layers: tuple[str, ...], names: tuple[str, ...], is_narrowed: bool
    ) -> None:
        """Args:
        names: of the sources that may be seen; none means all.
        is_narrowed: whether the rest may not be known of: a source without a page to be seen is
            none, and why one is not served is nobody's business.
        """
        self.layers = layers
        allowed = [one for one in view.sources if not names or one.meta.source in names]
        self.sources = tuple(
            one for one in allowed if not is_narrowed or not one.layers.isdisjoint(layers)
        )
        self.indexes = tuple(source.index for source in self.sources)
        unseen = {one.meta.source for one in allowed} - set(self.names)
        self._faults = {
            name: why
            for name, why in view.faults.items()
            if (not names or name in names) and name not in unseen
        }
        self._is_narrowed = is_narrowed

    @property
    def names(self) -> Sequence[str]:
        """The sources that may be seen."""
        return [source.meta.source for source in self.sources]

    @cached_property
    def trouble(self) -> str:
        """Why not all that was published last is served; empty when it is."""
        if self._is_narrowed and self._faults:
            return UNLOADED
        told = (f"the source {name} {self._instead(name)}: {why}" for name, why in self._lacks)
        return "; ".join(told)

    @cached_property
    def note(self) -> str:
        """The same for whoever reads an answer."""
        if self._is_narrowed:
            return self.trouble
        return "; ".join(f"the source {name} {self._instead(name)}" for name, _ in self._lacks)

    @property
    def _lacks(self) -> Iterable[tuple[str, str]]:
        return sorted(self._faults.items())

    def _instead(self, name: str) -> str:
        return "is served as it was before" if name in self.names else "is not served"

    @property
    def models(self) -> set[str]:
        """What made the vectors of their pages."""
        return {source.meta.model for source in self.sources}

    @cached_property
    def catalog(self) -> Catalog:
        """Its documents."""
        wanted = frozenset(self.layers)
        entries = {
            path: entry
            for source in self.sources
            for path, entry in source.entries.items()
            if entry.layer in wanted
        }
        return catalog_of(entries.values())

    @cached_property
    def row_lengths(self) -> "array[int]":
        """The words of every row of the catalog."""
        return array("I", b"".join(one.lengths for one in self._rows))

    @cached_property
    def headings(self) -> bytes:
        """Those of the heading of every row."""
        return b"".join(one.headings for one in self._rows)

    @property
    def _rows(self) -> Iterable[PageRows]:
        rows = {source.meta.source: source.rows for source in self.sources}
        return (rows[entry.source][entry.path] for entry in self.catalog.slots)

    @cached_property
    def slots(self) -> Mapping[tuple[str, str], int]:
        """The slot of every page, by the index that holds it and its path there.

        Two sources may have a page of the same path: the folder of one may be called as another is.
        """
        indexes = {source.meta.source: source.index for source in self.sources}
        return {
            (indexes[entry.source], entry.path): slot
            for slot, entry in enumerate(self.catalog.slots)
        }

    @cached_property
    def stats(self) -> CorpusStats:
        """The lengths that scores are measured by."""
        return CorpusStats(self.catalog)

    @cached_property
    def words(self) -> ClusterWords:
        """Its words."""
        chunks = [
            source.words[layer]
            for source in self.sources
            for layer in self.layers
            if layer in source.words
        ]
        return ClusterWords(chunks, len(self.catalog.slots), self.catalog.section_count)

    @cached_property
    def listings(self) -> Mapping[str, Listing]:
        """Its files, layer by layer."""
        files: dict[str, list[SourceFile]] = {layer: [] for layer in self.layers}
        for entry in self.catalog.slots:
            address = entry.topic if topic_of(entry.path) != entry.topic else ""
            found = SourceFile(entry.path, entry.layer, entry.stamp, address, entry.source)
            files[entry.layer].append(found)
        return {
            layer: Listing(layer, tuple(sorted(held)), (), complete=True)
            for layer, held in files.items()
        }

    @cached_property
    def earlier_listings(self) -> Mapping[str, Listing]:
        """The same while it is known that others are in force."""
        return {name: replace(one, complete=False) for name, one in self.listings.items()}


@dataclass
class View:
    """The base at one moment: one generation of each source."""

    sources: tuple[SourceGeneration, ...]
    faults: Mapping[str, str] = field(default_factory=dict)
    """By source why what was published last cannot be loaded."""
    named: tuple[str, ...] = ()
    """The indexes that the alias named at that moment."""
    _scopes: dict[tuple[tuple[str, ...], tuple[str, ...], bool], Scope] = field(
        default_factory=dict
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scope(
        self, layers: tuple[str, ...], names: tuple[str, ...], *, is_narrowed: bool = False
    ) -> Scope:
        """What may be seen of it with these layers and sources; the same object every time."""
        with self._lock:
            key = (layers, names, is_narrowed)
            if key not in self._scopes:
                self._scopes[key] = Scope(self, *key)
            return self._scopes[key]

    def is_as(self, other: "View") -> bool:
        """Whether another one holds the same, of the same state of the alias."""
        mine, theirs = (one.sources for one in (self, other))
        is_same = len(mine) == len(theirs) and all(map(is_, mine, theirs))
        return is_same and (self.faults, self.named) == (other.faults, other.named)
