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
_LOAD_SECONDS = 600.0
_KEPT_VIEWS = 3


class Scope:
    """What somebody who may see some layers and sources knows of one view. Safe to share."""

    def __init__(self, view: "View", layers: tuple[str, ...], names: tuple[str, ...]) -> None:
        """Args:
        names: of the sources that may be seen; none means all.
        """
        self.layers = layers
        self.sources = tuple(
            source for source in view.sources if not names or source.meta.source in names
        )
        self.indexes = tuple(source.index for source in self.sources)

    @property
    def names(self) -> Sequence[str]:
        """The sources that may be seen."""
        return [source.meta.source for source in self.sources]

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
        rows = {path: held for source in self.sources for path, held in source.rows.items()}
        return (rows[entry.path] for entry in self.catalog.slots)

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """The slot of every path."""
        return {entry.path: slot for slot, entry in enumerate(self.catalog.slots)}

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
    _scopes: dict[tuple[tuple[str, ...], tuple[str, ...]], Scope] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scope(self, layers: tuple[str, ...], names: tuple[str, ...]) -> Scope:
        """What may be seen of it with these layers and sources; the same object every time."""
        with self._lock:
            key = (layers, names)
            if key not in self._scopes:
                self._scopes[key] = Scope(self, layers, names)
            return self._scopes[key]

    @property
    def indexes(self) -> tuple[str, ...]:
        return tuple(source.index for source in self.sources)


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
        self._loading: Future[None] | None = None
        self._silence = ""
        """Why the cluster could not be asked the last time; empty when it could."""
        self._failure = ""
        """Why what the alias names could not be loaded; empty when it could."""

    @property
    def views(self) -> Sequence[View]:
        """The views that calls may still be answered from, newest first."""
        return self._views

    @property
    def trouble(self) -> str:
        """Why what is served may not be what the alias names; empty when all is well."""
        return self._silence or self._failure

    @property
    def has_failed(self) -> bool:
        """Whether that is because something could not be loaded; which source it is of is told."""
        return bool(self._failure and not self._silence)

    @property
    def behind_seconds(self) -> float:
        """How long ago the alias was last known to be what is served."""
        return max(0.0, self._clock() - self._was_current)

    @property
    def behind(self) -> str:
        """That a newer generation is not served yet; empty when none has been waited for long."""
        if self._loading is None or self.behind_seconds < LONGEST_WAIT_SECONDS:
            return ""
        return (
            "a newer generation is being loaded; this is the one that was in force "
            f"{self.behind_seconds:.0f} s ago"
        )

    def view(self, deadline: Deadline, *, fresh: bool = False) -> View:
        """The base as the alias has it, at most a moment old.

        While the cluster does not answer, or another generation is being loaded that takes long,
        the last view is what there is; searching it says why it cannot be searched.

        Raises:
            Unavailable, TimeoutExceeded: there is no view yet, and none can be loaded.
        """
        views = self._views
        is_needed = fresh or not views
        if not is_needed and self._is_fresh:
            return views[0]
        # Whoever finds another one looking for long goes on with what there is.
        left = deadline.remaining_seconds
        patience_seconds = TURN_SECONDS if not is_needed else -1 if left is None else left
        if not self._looking.acquire(timeout=patience_seconds):
            if is_needed:
                raise TimeoutExceeded(deadline.message)
            return views[0]
        try:
            if is_needed or not self._is_fresh:
                self._look(deadline, fresh)
        except (Unavailable, TimeoutExceeded):
            if not self._views or fresh:
                raise
        finally:
            self._looking.release()
        return self._views[0]

    def follow(self, deadline: Deadline) -> None:
        """See what the alias names while nobody asks; the next call looks by itself again."""
        with self._looking:
            looked = self._looked
            with suppress(Unavailable, TimeoutExceeded):  # the state tells it
                self._look(deadline, fresh=False)
            self._looked = looked

    @property
    def _is_fresh(self) -> bool:
        return self._clock() - self._looked < LOOK_SECONDS

    def _look(self, deadline: Deadline, fresh: bool) -> None:
        """See what the alias names, and load it; to be done by one thread at a time."""
        started = self._clock()
        try:
            names = self._named(deadline)
        except (Unavailable, TimeoutExceeded) as error:
            self._silence = str(error)
            self._looked = self._clock() - LOOK_SECONDS / 2
            raise
        self._looked, self._silence = started, ""
        if self._views and self._views[0].indexes == names:
            self._was_current, self._failure = started, ""
            return
        loading = self._loading
        is_new = loading is None
        if loading is None:
            loading = self._begun(names, started)
        if not self._views:
            loading.result()
        elif is_new or fresh:
            # What is small is seen by whoever finds it; what is large holds up nobody for long.
            patience = deadline if fresh else deadline.part(0.5, LONGEST_WAIT_SECONDS)
            with suppress(TimeoutError):
                loading.result(patience.remaining_seconds)

    def _named(self, deadline: Deadline) -> tuple[str, ...]:
        """The indexes that the alias names now."""
        # With a view at hand nobody waits long for a cluster that does not answer.
        longest = (
            LONGEST_WAIT_SECONDS if deadline.remaining_seconds is not None else _PATIENCE_SECONDS
        )
        patience = deadline.earlier(longest * 1000) if self._views else deadline
        self.connection.check_version(patience)
        names = generations.served(self.connection, patience)
        if not names:
            raise Unavailable(
                f"nothing is published as {self.connection.options.base!r}; run: sage publish"
            )
        return names

    def _begun(self, names: tuple[str, ...], seen: float) -> "Future[None]":
        """What is loaded in a thread of its own from now on."""
        loading: Future[None] = Future()
        self._loading = loading
        work = threading.Thread(
            target=self._load, args=(names, seen, loading), name="sage-load", daemon=True
        )
        work.start()
        return loading

    def _load(self, names: tuple[str, ...], seen: float, loading: "Future[None]") -> None:
        try:
            view = self._loaded(names, Deadline(_LOAD_SECONDS * 1000))
        except Exception as error:  # nobody awaits this thread: it is told here, and to who waits
            if not isinstance(error, SageError):
                logger.exception("a generation could not be loaded")
            self._failure = f"what was published last cannot be loaded: {error}"
            self._loading = None
            loading.set_exception(Unavailable(self._failure))
            return
        self._was_current, self._failure = seen, ""
        self._views = [view, *self._views[: _KEPT_VIEWS - 1]]
        self.vectors.keep_only({path for one in view.sources for path in one.entries})
        self._loading = None
        loading.set_result(None)
        logger.info("serving another generation", extra={"fields": {"indexes": list(names)}})

    def _loaded(self, names: Sequence[str], deadline: Deadline) -> View:
        current = {source.index: source for view in self._views[:1] for source in view.sources}
        # The vectors in memory are those of the view in force, and of no earlier one.
        views = self._views[: 1 if self.vectors.meaning is not None else _KEPT_VIEWS]
        known = [source for view in views for source in view.sources]
        return View(
            tuple(current.get(name) or self._loader.load(name, known, deadline) for name in names)
        )
