"""One generation of one source, loaded into memory: all of it, or what changed since an ancestor.

What changed is only asked for where a generation names the one in memory as one that it was copied
from, by its key: neither the name of an index nor a number says that.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sage.cluster import generations
from sage.cluster.connection import Connection
from sage.cluster.generations import Meta
from sage.cluster.node_errors import NotThere
from sage.cluster.page_record import PageRows, entries_of, rows_of
from sage.cluster.requests import all_hits
from sage.cluster.schema import GONE, PAGE, VECTORS, WORDS, parse_name
from sage.cluster.source_settings import SourceSettings, settings_from
from sage.cluster.vectors import VectorReader
from sage.cluster.words import Chunks
from sage.deadline import Deadline
from sage.errors import SageError, Unavailable
from sage.search.catalog import DocumentEntry

logger = logging.getLogger("sage.cluster")


@dataclass(frozen=True)
class SourceGeneration:
    """One source in one generation."""

    index: str
    meta: Meta
    entries: Mapping[str, DocumentEntry]
    rows: Mapping[str, PageRows]
    """By the path of the page."""
    words: Mapping[str, Chunks]
    """By layer."""

    @cached_property
    def layers(self) -> frozenset[str]:
        """Those that it has a page in."""
        return frozenset(entry.layer for entry in self.entries.values())

    @cached_property
    def settings(self) -> SourceSettings:
        """What was published of the settings of its repository."""
        return settings_from(self.meta.settings)

    @property
    def all_layers(self) -> tuple[str, ...]:
        """Those that it may have pages in, and those that it has some in whatever it says."""
        return tuple(dict.fromkeys([*self.settings.layers, *sorted(self.layers)]))

    def is_all_in(self, layers: Iterable[str]) -> bool:
        """Whether whoever sees these layers sees all that it may ever hold."""
        return bool(self.settings.layers) and set(self.all_layers).issubset(layers)

    @property
    def is_whole(self) -> bool:
        """Whether it holds as much as its index says."""
        sections = sum(entry.indexed_sections for entry in self.entries.values())
        return (len(self.entries), sections) == self.meta.counts


@dataclass(frozen=True)
class AliasContent:
    """What an alias names, as far as it can be loaded: one generation of each source."""

    sources: tuple[SourceGeneration, ...]
    faults: Mapping[str, str] = field(default_factory=dict)
    """By source, or by index where that is not ours, why it cannot be loaded."""


class GenerationLoader:
    """Loads generations from one cluster."""

    def __init__(self, connection: Connection, vectors: VectorReader) -> None:
        self._connection = connection
        self._vectors = vectors

    def load_all(
        self,
        names: Iterable[str],
        served: Sequence[SourceGeneration],
        known: Sequence[SourceGeneration],
        deadline: Deadline,
    ) -> AliasContent:
        """What some indexes hold; of a source that cannot be loaded what is served, if it is there.

        Args:
            known: what is in memory and may be built upon.
        """
        current = {one.index: one for one in served}
        found: list[SourceGeneration] = []
        faults: dict[str, str] = {}
        for name in names:
            try:
                found.append(current.get(name) or self.load(name, known, deadline))
            except Exception as error:  # whatever is wrong with one source, the others are served
                faults[self._source_of(name)] = _told(name, error)
        found += [
            one
            for one in served
            if one.meta.source in faults and self._is_there(one.index, deadline)
        ]
        newest: dict[str, SourceGeneration] = {}
        for one in sorted(found, key=lambda one: one.meta.published):
            newest[one.meta.source] = one
        return AliasContent(tuple(sorted(newest.values(), key=lambda one: one.index)), faults)

    def load(
        self, index: str, known: Iterable[SourceGeneration], deadline: Deadline
    ) -> SourceGeneration:
        """A generation as its index has it.

        Args:
            known: what is in memory and may be built upon.

        Raises:
            Unavailable: it cannot be loaded, or holds something else than it says.
        """
        meta = self._meta(index, deadline)
        known = [one for one in known if one.meta.model == meta.model]
        same = next((one for one in known if one.meta.key == meta.key), None)
        if same is not None:
            return replace(same, index=index, meta=meta)
        ancestor = nearest_ancestor(meta, known)
        found = self._loaded(index, meta, ancestor, deadline)
        if ancestor is not None and not found.is_whole:
            found = self._loaded(index, meta, None, deadline)
        if not found.is_whole or self._meta(index, deadline).key != meta.key:
            raise Unavailable(f"{index} does not hold what it says; publish again")
        return found

    def _source_of(self, index: str) -> str:
        """Whose generation an index is by its name."""
        parts = parse_name(index)
        is_ours = parts is not None and parts.base == self._connection.options.base
        return parts.source if parts is not None and is_ours else index

    def _is_there(self, index: str, deadline: Deadline) -> bool:
        """Whether what was loaded can still be searched."""
        try:
            self._connection.get(f"/{index}/_mapping", deadline)
        except NotThere:
            return False
        except SageError:  # nobody can say now
            return True
        return True

    def _meta(self, index: str, deadline: Deadline) -> Meta:
        return next(generations.metas(self._connection, [index], deadline))[1]

    def _loaded(
        self, index: str, meta: Meta, before: SourceGeneration | None, deadline: Deadline
    ) -> SourceGeneration:
        """A generation with what changed since another one, or all of it."""
        since = before.meta.generation if before else -1
        entries = dict(before.entries) if before else {}
        rows = dict(before.rows) if before else {}
        words: dict[str, dict[int, str]] = {}
        if before:
            words = {layer: dict(chunks) for layer, chunks in before.words.items()}
        newer = {"range": {"generation": {"gt": since}}}

        def kind(name: str) -> dict[str, object]:
            return {"bool": {"filter": [{"term": {"kind": name}}, newer]}}

        ask = self._connection
        for hit in all_hits(ask, index, kind(GONE), {"_source": ["path"]}, ["path"], deadline):
            entries.pop(hit["_source"]["path"], None)
            rows.pop(hit["_source"]["path"], None)
        pages = all_hits(ask, index, kind(PAGE), {"_source": ["entry"]}, ["path"], deadline)
        sources = [hit["_source"] for hit in pages]
        for entry, source in zip(entries_of(sources), sources, strict=True):
            entries[entry.path] = entry
            rows[entry.path] = rows_of(source, entry.rows)
        if self._vectors.reads(meta.model):
            fields = {"_source": ["path"], "docvalue_fields": [VECTORS]}
            for hit in all_hits(ask, index, kind(PAGE), fields, ["path"], deadline):
                self._vectors.take(entries[hit["_source"]["path"]], hit["fields"])
        shown = {"_source": ["layer", "chunk"], "stored_fields": ["words", "_source"]}
        for hit in all_hits(ask, index, kind(WORDS), shown, ["layer", "chunk"], deadline):
            place = hit["_source"]
            words.setdefault(place["layer"], {})[place["chunk"]] = hit["fields"]["words"][0]
        return SourceGeneration(index, meta, entries, rows, words)


def _told(index: str, error: Exception) -> str:
    """Why an index cannot be loaded; what nobody expected is logged with all there is."""
    if isinstance(error, SageError):
        return str(error)
    logger.error("%s could not be loaded", index, exc_info=error)
    return f"{index} is damaged ({type(error).__name__}); publish again with --anew"


def nearest_ancestor(meta: Meta, known: Iterable[SourceGeneration]) -> SourceGeneration | None:
    """The one of some generations that another was copied from last; None without any."""
    places = {key: place for place, key in enumerate(meta.ancestors)}
    found = [one for one in known if one.meta.key in places]
    return min(found, key=lambda one: places[one.meta.key], default=None)
