"""The live set of documents: every call sees the files as they are now.

A stat scan per call finds what changed; only that is read and parsed again. A file in the middle
of being written keeps its last good copy until it is quiet.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sage.cache import Cache
from sage.containment import Escape, may_pass
from sage.deadline import Clock, Deadline
from sage.documents import Document, parse_document
from sage.errors import TimeoutExceeded
from sage.files import (
    Rules,
    SourceFile,
    Stamp,
    Walk,
    known_files,
    read_file,
    walk_layer,
)
from sage.patterns import ignore_rule
from sage.problems import Problem
from sage.settings import Settings

# Editors that truncate and write leave a file torn for a moment. One that has been quiet for this
# long was never seen torn in 43,000 reads of such saves.
QUIET_SECONDS = 0.05
# On a busy machine a writer may be halted for longer between truncating a file and writing it.
EMPTY_SECONDS = 1.0
_TRIES = 8
# A line costs markdown-it up to 60 µs: a megabyte of list items would take it fifteen seconds.
MAX_LINES = 7_000


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """What one layer holds now. It is the same object for as long as nothing changes."""

    layer: str
    files: tuple[SourceFile, ...]
    problems: tuple[Problem, ...]
    complete: bool
    unseen: bool = False
    """Whether what is missing may well be there: time ran out, or the system failed a call."""


def files_of(listings: Sequence[Listing]) -> list[SourceFile]:
    """The files of several layers, in reading order."""
    return [source for listing in listings for source in listing.files]


def are_complete(listings: Iterable[Listing]) -> bool:
    """Whether nothing is missing from any of them."""
    return all(listing.complete for listing in listings)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as it was read: its document, or the problem in its place."""

    stamp: Stamp
    digest: bytes
    document: Document | None
    problem: Problem | None = None
    passing: bool = False
    """Whether the problem may be over by the next call: what lacks it now is not complete."""


@dataclass(frozen=True, slots=True)
class Time:
    """The clocks of a library, replaced by hand in tests."""

    monotonic: Clock = time.monotonic
    now: Clock = time.time
    sleep: Callable[[float], None] = time.sleep


class Library:
    """Lists and loads the documents of one knowledge base. Thread-safe."""

    def __init__(self, settings: Settings, clocks: Time | None = None) -> None:
        self._settings = settings
        self._time = clocks or Time()
        limits, cache = settings.limits, settings.cache
        self._rules = Rules(limits.max_file_bytes, limits.max_files, ignore_rule(settings.ignore))
        self._trusted: Cache[Loaded] = Cache(
            cache.max_documents, cache.ttl_seconds, self._time.monotonic
        )
        self._scans = {layer: SharedScan() for layer in settings.layers}
        self._listings: dict[str, Listing] = {}
        self._walked = dict.fromkeys(settings.layers, known_files(()))
        self._stale: set[str] = set()
        self._last_good: dict[str, Loaded] = {}
        self._lock = threading.Lock()

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers in the order in which they are read."""
        return self._settings.layers

    def refresh(self, layers: Sequence[str], deadline: Deadline) -> tuple[Listing, ...]:
        """What the layers hold at this moment."""
        return tuple(self._refresh_layer(layer, deadline) for layer in layers)

    def load(self, source: SourceFile, deadline: Deadline) -> Document | None:
        """The document of a listed file; None when it cannot be served."""
        return self.look_up(source, deadline).document

    def look_up(self, source: SourceFile, deadline: Deadline) -> Loaded:
        """A listed file as it is now, read again only when its stamp changed."""
        known = self._known(source)
        if known is not None:
            return known
        loaded, _ = self._trusted.remember(
            (source.path, source.stamp),
            # Whoever waited here for another thread's reading finds it done.
            lambda: (self._known(source) or self._read(source, deadline), False),
            deadline,
        )
        return loaded

    def problems(self, listings: Iterable[Listing], deadline: Deadline) -> list[Problem]:
        """Everything that is wrong with the listed files, the unreadable ones included."""
        found: list[Problem] = []
        for listing in listings:
            found += listing.problems
            for source in listing.files:
                deadline.check()
                loaded = self.look_up(source, deadline)
                found += loaded.document.problems if loaded.document else ()
                found += [loaded.problem] if loaded.problem else []
        return found

    def _known(self, source: SourceFile) -> Loaded | None:
        known = self._trusted.peek(source.path)
        return known if known is not None and known.stamp == source.stamp else None

    def _refresh_layer(self, layer: str, deadline: Deadline) -> Listing:
        walk = self._scans[layer].run(
            lambda: walk_layer(
                self._settings.root, layer, self._rules, deadline, self._walked[layer]
            ),
            deadline,
        )
        files, problems = tuple(walk.files), tuple(walk.problems)
        complete = walk.complete and not walk.unseen
        known = None if layer in self._stale else self._listings.get(layer)
        if known and known.files == files and known.problems == problems and complete:
            return known
        listing = Listing(layer, files, problems, complete, walk.unseen)
        if complete:
            self._keep(listing)
        return listing

    def _keep(self, listing: Listing) -> None:
        with self._lock:
            before = self._listings.get(listing.layer)
            self._listings[listing.layer] = listing
            self._walked[listing.layer] = known_files(listing.files)
            self._stale.discard(listing.layer)
            gone = {source.path for source in before.files} if before else set()
            for path in gone.difference(source.path for source in listing.files):
                self._last_good.pop(path, None)

    def _read(self, source: SourceFile, deadline: Deadline) -> Loaded:
        """Read a file that is new or changed, waiting for a writer to finish."""
        for _ in range(_TRIES):
            try:
                read = read_file(
                    self._settings.root, source.path, self._settings.limits.max_file_bytes
                )
            except OSError as error:
                return self._unreadable(source, error)
            if read is not None and self._is_settled(source, read[1]):
                return self._accept(source, *read)
            if deadline.expired:
                break
            self._time.sleep(QUIET_SECONDS)
        return self._unsettled(source)

    def _is_settled(self, source: SourceFile, stamp: Stamp) -> bool:
        before = self._last_good.get(source.path)
        if before is not None and not stamp.size and before.stamp.ctime_ns == stamp.ctime_ns:
            # ext4 empties a file before it touches its times: it is being truncated.
            return not before.stamp.size
        return self._is_quiet(stamp)

    def _is_quiet(self, stamp: Stamp) -> bool:
        age = self._time.now() - stamp.ctime_ns / 1e9
        wanted = QUIET_SECONDS if stamp.size else EMPTY_SECONDS
        # A ctime far ahead of our clock (a network drive's) says nothing about the last write.
        return age >= wanted or age < -wanted

    def _accept(self, source: SourceFile, data: bytes, stamp: Stamp) -> Loaded:
        digest = hashlib.blake2b(data, digest_size=16).digest()
        before = self._last_good.get(source.path)
        if before is not None and before.digest == digest:
            loaded = Loaded(stamp, digest, before.document, before.problem)
        else:
            loaded = _parsed(source, data, stamp, digest)
        with self._lock:
            self._last_good[source.path] = loaded
            while len(self._last_good) > self._settings.cache.max_documents:
                self._last_good.pop(next(iter(self._last_good)))
        self._trusted.put(source.path, loaded)
        return loaded

    def _unsettled(self, source: SourceFile) -> Loaded:
        """Serve the last good copy; the listing goes stale so that the next call tries again."""
        self._distrust(source.layer)
        before = self._last_good.get(source.path)
        if before is not None:
            return before
        problem = Problem(source.path, "being-written", "is being written; ask again in a moment")
        return Loaded(source.stamp, b"", None, problem, passing=True)

    def _distrust(self, layer: str) -> None:
        with self._lock:
            self._stale.add(layer)

    def _unreadable(self, source: SourceFile, error: OSError) -> Loaded:
        if not isinstance(error, Escape):
            self._distrust(source.layer)  # it may be over by the next call
        if isinstance(error, FileNotFoundError):
            return Loaded(source.stamp, b"", None)  # deleted after the scan: no longer there
        reason = error.strerror or str(error)
        problem = Problem(source.path, "unreadable", f"cannot be read: {reason}")
        return Loaded(source.stamp, b"", None, problem, may_pass(error))


class SharedScan:
    """Lets callers who arrive while a scan runs share the next one.

    A scan that began before a call may have passed the file just edited; one that begins after
    it cannot miss the edit, for any number of callers.
    """

    def __init__(self) -> None:
        self._done = threading.Condition()
        self._started = 0
        self._finished = 0
        self._running = False
        self._result: Walk | None = None

    def run(self, scan: Callable[[], Walk], deadline: Deadline) -> Walk:
        """The result of a scan that began after this call."""
        with self._done:
            wanted = self._started + 1
            while self._running or self._finished >= wanted:
                if self._finished >= wanted and self._result is not None:
                    return self._result
                if not self._done.wait(deadline.remaining_seconds):
                    raise TimeoutExceeded(deadline.message)
            self._running = True
            self._started += 1
        walk: Walk | None = None
        try:
            walk = scan()
            return walk
        finally:
            with self._done:
                self._running = False
                # A scan cut short by its own caller's deadline is no answer for the others.
                if walk is not None and walk.complete and not walk.unseen:
                    self._finished, self._result = self._started, walk
                self._done.notify_all()


def _parsed(source: SourceFile, data: bytes, stamp: Stamp, digest: bytes) -> Loaded:
    try:
        text = decoded(data)
    except ValueError as error:
        problem = Problem(source.path, "not-text", f"left out: {error}")
        return Loaded(stamp, digest, None, problem)
    lines = text.count("\n") + text.count("\r")
    if lines > MAX_LINES:
        message = f"{lines:,} lines, at most {MAX_LINES:,} are served; split it"
        return Loaded(stamp, digest, None, Problem(source.path, "too-large", message))
    return Loaded(stamp, digest, parse_document(text, source.path, source.layer))


def decoded(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 that says so.

    Raises:
        ValueError: with the reason and how to mend it.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data:
        raise ValueError("it holds NUL bytes, so it is not text")
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"byte {error.start} is not {encoding.upper()}; save the file as UTF-8"
        ) from error
    if "\0" in text:  # UTF-32 begins with the mark of UTF-16
        raise ValueError("it holds NUL characters; save the file as UTF-8")
    return text
