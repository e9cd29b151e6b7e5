"""What a replica knows of the published base: it follows the alias, and loads what changed.

The catalog and the words are in memory; texts and places of words stay in the cluster.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

from sage.cluster import generations
from sage.cluster.connection import Connection
from sage.cluster.loading import GenerationLoader
from sage.cluster.vectors import VectorReader
from sage.cluster.view import View
from sage.deadline import Deadline
from sage.errors import SageError, TimeoutExceeded, Unavailable

logger = logging.getLogger("sage.cluster")

LOOK_SECONDS = 0.5
"""So old may be what a replica knows of the alias when a call comes."""
LONGEST_WAIT_SECONDS = 1.0
"""So long a call waits for what the cluster says, or for what it begins to load."""
TURN_SECONDS = 0.25
"""So long a call waits for another one that looks."""
_PATIENCE_SECONDS = 5.0
"""The same for whoever sets no limit."""
_SILENT_SECONDS = 5.0
"""So long a call waits for a cluster that was silent a moment ago: many callers may wait."""
START_SECONDS = 60.0
"""So long whoever has nothing yet waits for a cluster to say what there is."""
LOAD_SECONDS = 600.0
RETRY_SECONDS = 5.0
"""What could not be loaded is tried again so often: it may be large."""
_KEPT_VIEWS = 3
SILENT = "the cluster does not answer in time; look at its health, then ask again"


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

    def view(self, deadline: Deadline, *, fresh: bool = False, is_gone: bool = False) -> View:
        """The base as the alias has it, at most a moment old.

        While the cluster does not answer, or another generation is being loaded that takes long,
        the last view is what there is; searching it says why it cannot be searched.

        Args:
            fresh: whether what was seen of the alias a moment ago is too old.
            is_gone: whether an index of the last view is not there any more, so that what could
                not be loaded has to be tried again at once.

        Raises:
            Unavailable, TimeoutExceeded: there is no view yet, and none can be loaded.
        """
        views = self._views
        is_needed = fresh or not views
        if not is_needed and self._is_fresh:
            return views[0]
        try:
            loading = self._seen(deadline, is_needed, fresh, is_gone)
            if loading is not None:
                self._wait(loading, deadline, is_needed)
        except (Unavailable, TimeoutExceeded):
            if is_needed:
                raise
        return self._views[0]

    def patience(self, deadline: Deadline) -> Deadline:
        """So long a call with this deadline waits for what it asks the cluster for."""
        return deadline.earlier(_SILENT_SECONDS * 1000) if self.silence else deadline

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

    def _seen(
        self, deadline: Deadline, is_needed: bool, fresh: bool, is_gone: bool
    ) -> _LoadInThread | None:
        """See what the alias names; what is to be waited for."""
        # Whoever finds another one looking for long goes on with what there is.
        patience_seconds = _seconds(deadline, START_SECONDS) if is_needed else TURN_SECONDS
        if not self._looking.acquire(timeout=patience_seconds):
            raise TimeoutExceeded(SILENT)
        try:
            if self._views and not fresh and self._is_fresh:
                return None
            return self._look(deadline, fresh, is_gone)
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

    def _look(self, deadline: Deadline, fresh: bool, is_gone: bool = False) -> _LoadInThread | None:
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
            is_due = is_gone or started - self._tried >= RETRY_SECONDS
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
        failed: Exception | None = None
        try:
            view = self._loaded(loading.named, Deadline(LOAD_SECONDS * 1000))
            if not view.sources and not self._views:
                raise Unavailable("nothing that is published can be loaded: " + _listed(view))
            self._tried = self._clock()
            if not self._views or not view.is_as(self._views[0]):
                self._serve(view)
            self._was_current = max(self._was_current, seen)  # somebody may have looked since
        except Exception as error:  # nobody awaits this thread: it is told here, and to who waits
            failed = error
            if not isinstance(error, SageError):
                logger.exception("what is published could not be loaded")
        # Whatever happened, the next look may load again, and nobody waits for ever.
        self._loading = None
        if failed is None:
            loading.done.set_result(None)
        else:
            loading.done.set_exception(Unavailable(str(failed)))

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
