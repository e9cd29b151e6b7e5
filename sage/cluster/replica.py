"""What a replica knows of the published base: it follows the alias, and loads what changed.

The catalog and the words are in memory; texts and places of words stay in the cluster. A view is
one moment of the base: an answer is made from one view from beginning to end.
"""

import logging
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_
from typing import NamedTuple

from sage.cluster import generations
from sage.cluster.connection import Connection
from sage.cluster.loading import GenerationLoader, SourceGeneration
from sage.cluster.page_record import PageRows
from sage.cluster.vectors import VectorReader
from sage.cluster.words import ClusterWords
from sage.deadline import Deadline
from sage.documents.files import SourceFile
from sage.documents.places import topic_of
from sage.documents.source_roots import Listing
from sage.errors import SageError, TimeoutExceeded, Unavailable
from sage.search.catalog import Catalog, catalog_of
from sage.search.scoring import CorpusStats

logger = logging.getLogger("sage.cluster")

LOOK_SECONDS = 0.5
"""So old may be what a replica knows of the alias when a call comes."""
LONGEST_WAIT_SECONDS = 1.0
"""So long a call waits for what the cluster says, or for what it begins to load."""
TURN_SECONDS = 0.25
"""So long a call waits for another one that looks."""
_PATIENCE_SECONDS = 5.0
"""The same for whoever sets no limit."""
START_SECONDS = 60.0
"""So long whoever has nothing yet waits for a cluster to say what there is."""
LOAD_SECONDS = 600.0
RETRY_SECONDS = 5.0
"""What could not be loaded is tried again so often: it may be large."""
_KEPT_VIEWS = 3
UNLOADED = "what was published last cannot be loaded; whoever runs this server is told why"
SILENT = "the cluster does not answer in time; look at its health, then ask again"


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


class _LoadInThread(NamedTuple):
    """What is loaded in a thread of its own."""

    named: tuple[str, ...]
    done: "Future[None]"


class Replica:
    """Follows the alias of one base. Thread-safe."""

    def __init__(
        self,
        connection: Connection,
        vectors: VectorReader,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        self.vectors = vectors
        self._loader = GenerationLoader(connection, vectors)
        self._clock = clock
        self._looking = threading.Lock()
        self._views: list[View] = []
        self._looked = float("-inf")
        self._was_current = float("-inf")
        """When the alias was last known to be what is served."""
        self._loading: _LoadInThread | None = None
        self._tried = float("-inf")
        """When what the alias names was loaded last, as far as that is possible."""
        self.silence = ""
        """Why the cluster could not be asked the last time; empty when it could."""

    @property
    def views(self) -> Sequence[View]:
        """The views that calls may still be answered from, newest first."""
        return self._views

    @property
    def behind_seconds(self) -> float:
        """How long ago the alias was last known to be what is served, as far as it can be."""
        return max(0.0, self._clock() - self._was_current)

    @property
    def behind(self) -> str:
        """That a newer generation is not served yet; empty when none has been waited for long."""
        loading, views = self._loading, self._views
        is_newer = loading is not None and (not views or loading.named != views[0].named)
        if not is_newer or self.behind_seconds < LONGEST_WAIT_SECONDS:
            return ""
        return (
            "a newer generation is being loaded; this is the one that was in force "
            f"{self.behind_seconds:.0f} s ago"
        )

    def view(self, deadline: Deadline, *, fresh: bool = False) -> View:
        """The base as the alias has it, at most a moment old.

        While the cluster does not answer, or another generation is being loaded that takes long,
        the last view is what there is; searching it says why it cannot be searched.

        Args:
            fresh: whether what was seen of the alias a moment ago is too old.

        Raises:
            Unavailable, TimeoutExceeded: there is no view yet, and none can be loaded.
        """
        views = self._views
        is_needed = fresh or not views
        if not is_needed and self._is_fresh:
            return views[0]
        try:
            loading = self._seen(deadline, is_needed, fresh)
            if loading is not None:
                self._wait(loading, deadline, is_needed)
        except (Unavailable, TimeoutExceeded):
            if is_needed:
                raise
        return self._views[0]

    def follow(self, deadline: Deadline) -> None:
        """See what the alias names while nobody asks; the next call looks by itself again."""
        if not self._looking.acquire(timeout=_seconds(deadline, _PATIENCE_SECONDS)):
            return  # somebody looks
        try:
            looked = self._looked
            with suppress(Unavailable, TimeoutExceeded):  # the state tells it
                self._look(deadline, fresh=False)
            self._looked = looked
        finally:
            self._looking.release()

    @property
    def _is_fresh(self) -> bool:
        return self._clock() - self._looked < LOOK_SECONDS

    def _seen(self, deadline: Deadline, is_needed: bool, fresh: bool) -> _LoadInThread | None:
        """See what the alias names; what is to be waited for."""
        # Whoever finds another one looking for long goes on with what there is.
        patience_seconds = _seconds(deadline, START_SECONDS) if is_needed else TURN_SECONDS
        if not self._looking.acquire(timeout=patience_seconds):
            raise TimeoutExceeded(SILENT)
        try:
            if self._views and not fresh and self._is_fresh:
                return None
            return self._look(deadline, fresh)
        finally:
            self._looking.release()

    def _wait(self, loading: _LoadInThread, deadline: Deadline, is_needed: bool) -> None:
        # What is small is seen by whoever finds it; what is large holds up nobody for long.
        patience = deadline if is_needed else deadline.part(0.5, LONGEST_WAIT_SECONDS)
        try:
            loading.done.result(_seconds(patience, LOAD_SECONDS))
        except TimeoutError as error:
            if is_needed:
                raise TimeoutExceeded(
                    "what is published is being loaded still; look at the cluster's health, "
                    "then ask again"
                ) from error

    def _look(self, deadline: Deadline, fresh: bool) -> _LoadInThread | None:
        """See what the alias names, by one thread at a time; what is loaded, if it is new here."""
        deadline.check()
        started = self._clock()
        try:
            named = self._named(deadline)
        except (Unavailable, TimeoutExceeded) as error:
            self.silence = SILENT if isinstance(error, TimeoutExceeded) else str(error)
            self._looked = self._clock() - LOOK_SECONDS / 2
            raise
        self._looked, self.silence = started, ""
        view = next(iter(self._views), None)
        if view is not None and view.named == named:
            self._was_current = started
            is_due = fresh or started - self._tried >= RETRY_SECONDS
            if not view.faults or not is_due:
                return None
        known = self._loading
        loading = known or self._begun(named, started)
        return loading if known is None or fresh or view is None else None

    def _named(self, deadline: Deadline) -> tuple[str, ...]:
        """The indexes that the alias names now."""
        # With a view at hand nobody waits long for a cluster that does not answer.
        longest = (
            LONGEST_WAIT_SECONDS if deadline.remaining_seconds is not None else _PATIENCE_SECONDS
        )
        patience = (
            deadline.earlier(longest * 1000) if self._views else deadline.part(1.0, START_SECONDS)
        )
        self.connection.check_version(patience)
        names = generations.served(self.connection, patience)
        if not names:
            raise Unavailable(
                f"nothing is published as {self.connection.options.base!r}; run: sage publish"
            )
        return names

    def _begun(self, named: tuple[str, ...], seen: float) -> _LoadInThread:
        """What is loaded in a thread of its own from now on.

        Raises:
            Unavailable: the system starts no thread.
        """
        self._loading = loading = _LoadInThread(named, Future())
        work = threading.Thread(
            target=self._load, args=(loading, seen), name="sage-load", daemon=True
        )
        try:
            work.start()
        except RuntimeError as error:  # the next look tries again
            self._loading = None
            raise Unavailable(
                "this machine starts no more threads, so what was published cannot be loaded; "
                "end what takes them, then ask again"
            ) from error
        return loading

    def _load(self, loading: _LoadInThread, seen: float) -> None:
        try:
            view = self._loaded(loading.named, Deadline(LOAD_SECONDS * 1000))
            if not view.sources and not self._views:
                raise Unavailable("nothing that is published can be loaded: " + _listed(view))
        except Exception as error:  # nobody awaits this thread: it is told here, and to who waits
            if not isinstance(error, SageError):
                logger.exception("what is published could not be loaded")
            self._loading = None
            loading.done.set_exception(Unavailable(str(error)))
            return
        self._tried = self._clock()
        if not self._views or not view.is_as(self._views[0]):
            self._serve(view)
        self._was_current = max(self._was_current, seen)  # somebody may have looked since
        self._loading = None
        loading.done.set_result(None)

    def _serve(self, view: View) -> None:
        self._views = [view, *self._views[: _KEPT_VIEWS - 1]]
        self.vectors.keep_only({path for one in view.sources for path in one.entries})
        logger.info("serving another generation", extra={"fields": {"indexes": list(view.named)}})
        if view.faults:
            logger.error("not all that is published can be loaded: %s", _listed(view))

    def _loaded(self, named: tuple[str, ...], deadline: Deadline) -> View:
        served = [source for view in self._views[:1] for source in view.sources]
        # The vectors in memory are those of the view in force, and of no earlier one.
        views = self._views[: 1 if self.vectors.meaning is not None else _KEPT_VIEWS]
        known = [source for view in views for source in view.sources]
        found = self._loader.load_all(named, served, known, deadline)
        return View(found.sources, found.faults, named)


def _seconds(deadline: Deadline, most_seconds: float) -> float:
    """So long whoever has this deadline waits for another thread."""
    left = deadline.remaining_seconds
    return most_seconds if left is None else min(left, most_seconds)


def _listed(view: View) -> str:
    return "; ".join(f"{name}: {why}" for name, why in sorted(view.faults.items()))
