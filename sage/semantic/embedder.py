"""Makes the vectors that are missing, in a thread of its own that lets calls go first."""

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from sage.search.catalog import Catalog
from sage.search.sections import ReadDocument
from sage.semantic.models import Encoder
from sage.semantic.passages import key_of, passages
from sage.semantic.vectors import DocumentVectors, Vectors
from sage.terms.index_file import UntrustedIndex

logger = logging.getLogger("sage.semantic")

PAUSE_SECONDS = 0.03
"""How long after the beginning of a call nothing is embedded."""
_MOST_PAUSE_SECONDS = 1.0
"""How long one section waits at most: a server that is never idle gets its vectors too."""
_TELL_SECONDS = 2.0
_KEEP_SECONDS = 30.0
_NICE = 10
_MAX_USED = 200

Generation = tuple[Catalog, ReadDocument]
Progress = Callable[[int, int], None]


class Embedder:
    """Brings the vectors to a generation of the index, the documents in use first."""

    def __init__(
        self,
        encoder: Encoder,
        vectors: Vectors,
        tell: Callable[[], None],
        keep: Callable[[], None],
    ) -> None:
        """Args:
        tell: called when there is more to compare with.
        keep: writes what there is.
        """
        self._encoder = encoder
        self._vectors = vectors
        self._tell = tell
        self._keep = keep
        self._generation: Generation | None = None
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._called = 0.0
        self._used: dict[str, None] = {}

    def follow(self, generation: Generation) -> None:
        """Go on with another generation."""
        self._generation = generation
        self._changed.set()

    def make_way(self) -> None:
        """A call begins."""
        self._called = time.monotonic()

    def use(self, paths: Sequence[str]) -> None:
        """These documents are asked for: their vectors are wanted first."""
        for path in paths:
            self._used.pop(path, None)
            self._used[path] = None
        for path in list(self._used)[:-_MAX_USED]:
            self._used.pop(path, None)

    def stop(self) -> None:
        """End soon."""
        self._stopped.set()
        self._changed.set()

    def run(self) -> None:
        """Follow the generations until stopped."""
        _lower_priority()
        while not self._stopped.is_set():
            self.catch_up(self._make_room)
            self._changed.wait()

    def catch_up(
        self, before_each: Callable[[], None] | None = None, progress: Progress | None = None
    ) -> None:
        """Embed what is missing of the last generation, or until there is another one."""
        self._changed.clear()
        if self._generation is None:
            return
        catalog, read = self._generation
        self._forget_gone(catalog)
        missing = [slot for slot in range(len(catalog.slots)) if self._is_missing(catalog, slot)]
        told = kept = time.monotonic()
        done = 0
        while missing and not self._stopped.is_set() and not self._changed.is_set():
            slot = missing.pop(self._next(catalog, missing))
            try:
                self._embed(catalog, slot, read, before_each)
            except UntrustedIndex:
                logger.warning("a document of the index cannot be read; its vectors wait")
            done += 1
            now = time.monotonic()
            if progress is not None:
                progress(done, done + len(missing))
            if now - told > _TELL_SECONDS:
                told = now
                self._tell()
            if now - kept > _KEEP_SECONDS:
                kept = now
                self._keep()
        dropped = 0 if missing else self._vectors.drop_unused()
        if done or dropped:
            self._tell()
            self._keep()

    def _forget_gone(self, catalog: Catalog) -> None:
        known = self._vectors.documents
        for path in [path for path in known if path not in catalog.entries]:
            known.pop(path, None)

    def _is_missing(self, catalog: Catalog, slot: int) -> bool:
        entry = catalog.slots[slot]
        known = self._vectors.documents.get(entry.path)
        return known is None or known.stamp != entry.stamp

    def _next(self, catalog: Catalog, missing: Sequence[int]) -> int:
        """The place of the document that was asked for last, or the first one."""
        if self._used:
            places = {catalog.slots[slot].path: at for at, slot in enumerate(missing)}
            for path in reversed(list(self._used)):
                if path in places:
                    return places[path]
            self._used.clear()
        return 0

    def _embed(
        self,
        catalog: Catalog,
        slot: int,
        read: ReadDocument,
        before_each: Callable[[], None] | None,
    ) -> None:
        entry = catalog.slots[slot]
        keys: list[bytes] = []
        for passage in passages(entry, read(slot)):
            key = key_of(passage)
            keys.append(key)
            if key in self._vectors:
                continue
            if before_each is not None:
                before_each()
            if self._stopped.is_set():
                return
            self._vectors.add([key], self._encoder.embed([passage]))
        self._vectors.documents[entry.path] = DocumentVectors(entry.stamp, tuple(keys))

    def _make_room(self) -> None:
        """Wait until no call has just begun, but not for ever."""
        most = time.monotonic() + _MOST_PAUSE_SECONDS
        while not self._stopped.is_set():
            now = time.monotonic()
            left = min(self._called + PAUSE_SECONDS, most) - now
            if left <= 0:
                return
            self._stopped.wait(left)


def _lower_priority() -> None:
    """Let every other thread go first where a thread can have a priority of its own: on Linux."""
    if hasattr(os, "setpriority") and os.uname().sysname == "Linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
