"""The sources, ready to be walked and read, and their pages joined.

Of two pages of one topic the nearer is listed and says what it overrides. A source that is not
there is a problem and no files. Every path is opened below its own source's root.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sage.deadline import Deadline
from sage.documents.containment import close, open_inside, read_file
from sage.documents.files import (
    EarlierWalk,
    Rules,
    SourceFile,
    Stamp,
    Walk,
    stamp_of,
)
from sage.documents.ignore_patterns import ignore_rule
from sage.documents.imports import Imports, importing
from sage.documents.places import Places, is_below_any
from sage.documents.problems import Problem
from sage.documents.topics import topic_parts
from sage.documents.walk import earlier_walk, walk_layer
from sage.errors import ConfigError, TimeoutExceeded
from sage.folder_watch import FolderWatch
from sage.paths import KNOWLEDGE_DIR
from sage.settings import Settings
from sage.sources import Source, fault_of
from sage.values import OWN


class Listed(NamedTuple):
    """What one source has of a layer."""

    files: tuple[SourceFile, ...]
    problems: tuple[Problem, ...]
    complete: bool = True
    unseen: bool = False


class _Earlier(NamedTuple):
    """The walk before, and those of its files that may import others."""

    walk: EarlierWalk
    importing: tuple[SourceFile, ...]
    last: Walk | None = None
    """The walk itself, which may stand for later calls."""


class SourceRoot:
    """One source: walked and read below its root only. Thread-safe."""

    def __init__(self, source: Source, settings: Settings) -> None:
        self.source = source
        limits = settings.limits
        ignores, self._fault = _ignores(source)
        others = [one.folder for one in settings.further if one.root == source.root and one.folder]
        self.rules = Rules(
            limits.max_file_bytes,
            limits.max_files,
            ignores,
            source.folder,
            frozenset(folder for folder in others if folder != source.folder),
        )
        self.places = Places(source.all_layers or source.layers, source.layer_paths, source.folder)
        # A file of the repository must not pass for one of a source whose paths begin like this.
        prefixes = [one.prefix for one in settings.further if one.prefix and source.name == OWN]
        self._prefixes = tuple(prefixes)
        self._imports = Imports(self._look, self._text, self._is_taken)
        self._scans = {layer: SharedScan() for layer in source.layers}
        self._where = {layer: self.places.of_layer(layer) for layer in source.layers}
        self._watched = {layer: WatchedWalk(source.root) for layer in source.layers}
        self._walked = dict.fromkeys(source.layers, _Earlier(earlier_walk(()), ()))
        self._named: dict[str, tuple[tuple[SourceFile, ...], tuple[SourceFile, ...]]] = {}

    @property
    def fault(self) -> str:
        """Why it cannot be served now; empty when it can. What the repository lacks is told by
        its layers."""
        return self._fault or (fault_of(self.source) if self.source.name != OWN else "")

    @property
    def missing(self) -> tuple[Problem, ...]:
        """That it cannot be served now."""
        source, fault = self.source, self.fault
        if not fault:
            return ()
        message = f"the source {source.name} is not served: {fault} (named by {source.named_by})"
        return (Problem(source.prefix or source.folder, "no-source", message),)

    def list_files(self, layer: str, deadline: Deadline) -> Listed:
        """What the source has of a layer at this moment."""
        if missing := self.missing:
            return Listed((), missing if layer == self.source.layers[0] else ())
        watched = self._watched[layer]
        walk = watched.current() or self._scans[layer].run(
            lambda: watched.walk(lambda: self._walk(layer, deadline)), deadline
        )
        complete = walk.complete and not walk.unseen
        earlier = self._walked[layer]
        same = walk is earlier.last or (walk.found_the_same and walk.known is earlier.walk)
        files = earlier.walk.files if same else tuple(walk.files)
        pages = earlier.importing if same else importing(files)
        if not same and complete:
            self._walked[layer] = _Earlier(earlier_walk(files), pages, walk)
        problems = [self._as_ours(problem) for problem in walk.problems]
        # An imported page may change while the page that imports it does not.
        if pages or not same:
            imported, not_read = self._imports.of(pages, layer)
            problems += map(self._as_ours, not_read)
            files = (*files, *imported) if imported else files
        files = self._as_named(layer, files)
        if self._prefixes:
            taken = [one for one in files if one.path.startswith(self._prefixes)]
            files = tuple(one for one in files if one not in taken) if taken else files
            problems += [_name_taken(one) for one in taken]
        return Listed(files, tuple(problems), complete, walk.unseen)

    def read(self, path: str, max_bytes: int) -> tuple[bytes, Stamp] | None:
        """The bytes of one of its files and their stamp; None when it is being written.

        Raises:
            OSError: it cannot be opened, or lies outside.
        """
        below = path.removeprefix(self.source.prefix)
        return read_file(self.source.root, below, max_bytes, self.source.folder)

    def open(self, path: str) -> int:
        """A descriptor of one of its files.

        Raises:
            OSError: it cannot be opened, or lies outside.
        """
        below = path.removeprefix(self.source.prefix)
        return open_inside(self.source.root, below, self.source.folder)

    def _walk(self, layer: str, deadline: Deadline) -> Walk:
        return walk_layer(
            self.source.root,
            layer,
            self.rules,
            deadline,
            self._walked[layer].walk,
            self._where[layer],
        )

    def _is_taken(self, path: str) -> bool:
        """Whether a path is served by a layer or a source of its own, or left out."""
        below = path.removeprefix(f"{KNOWLEDGE_DIR}/")
        return (
            self.places.holds(path)
            or self.rules.ignores(below)
            or is_below_any(self.rules.others, path)
        )

    def _look(self, path: str) -> Stamp | None:
        """The stamp of a file that a page imports; None when it may not be served."""
        folder = self.source.folder
        if folder and not path.startswith(f"{folder}/"):
            return None
        try:
            descriptor = open_inside(self.source.root, path, folder)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
        finally:
            close(descriptor)
        return stamp_of(status) if status.st_size <= self.rules.max_file_bytes else None

    def _text(self, path: str) -> str:
        try:
            read = read_file(self.source.root, path, self.rules.max_file_bytes, self.source.folder)
        except OSError:
            return ""
        return read[0].decode("utf-8", "replace") if read else ""

    def _as_named(self, layer: str, files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
        """The files as they are called among those of all sources; the same for the same files."""
        if self.source.name == OWN:
            return files
        known, named = self._named.get(layer, ((), ()))
        if known != files:
            named = tuple(
                one._replace(
                    path=self.source.prefix + one.path, address=one.topic, source=self.source.name
                )
                for one in files
            )
            self._named[layer] = (files, named)
        return named

    def _as_ours(self, problem: Problem) -> Problem:
        if not self.source.prefix:
            return problem
        return Problem(
            self.source.prefix + problem.path,
            problem.rule,
            problem.message,
            problem.line,
            problem.level,
        )


def joined(parts: Sequence[Listed]) -> tuple[SourceFile, ...]:
    """The files of all sources, nearest first: what a nearer one has, too, is left out."""
    if len(parts) == 1:
        return parts[0].files
    nearest: dict[tuple[str, ...], str] = {}
    overridden: dict[tuple[str, ...], list[str]] = {}
    kept: list[tuple[tuple[str, ...], SourceFile]] = []
    for part in parts:
        for one in part.files:
            key = tuple(topic_parts(one.topic))
            if nearest.setdefault(key, one.source) == one.source:
                kept.append((key, one))
            else:
                names = overridden.setdefault(key, [])
                names += [] if one.source in names else [one.source]
    return tuple(
        one._replace(overrides=tuple(overridden[key])) if key in overridden else one
        for key, one in kept
    )


def open_sources(settings: Settings) -> dict[str, SourceRoot]:
    """The sources that are served, by name, nearest first."""
    return {one.name: SourceRoot(one, settings) for one in settings.served}


def all_of(parts: Iterable[Listed]) -> tuple[bool, bool]:
    """Whether nothing is missing from any, and whether something could not be looked at."""
    listed = list(parts)
    return all(one.complete for one in listed), any(one.unseen for one in listed)


def _ignores(source: Source) -> tuple[Callable[[str], bool], str]:
    """What leaves out paths below the root, and why that cannot be known."""
    try:
        rule = ignore_rule(source.ignore)
    except ConfigError as error:
        if source.name == OWN:
            raise
        return (lambda _: True), str(error)
    if not source.folder:
        return rule, ""
    before = f"{source.folder}/"
    return (lambda path: rule(path.removeprefix(before).removeprefix(f"{KNOWLEDGE_DIR}/"))), ""


def _name_taken(one: SourceFile) -> Problem:
    message = "its name begins like the paths of a source; rename its folder"
    return Problem(one.path, "unreadable-name", message)


LEAST_WATCHED = 2_000
"""Names in a layer above which its folders are watched: fewer are looked at as fast."""
STANDS_SECONDS = 5.0
"""So long a walk stands while nothing is told: some changes are never told."""


class WatchedWalk:
    """The last walk of a large layer, for as long as nothing changes in its folders. Thread-safe.

    A walk stands when its folders were watched before it began and nothing was told since.
    """

    def __init__(
        self, root: Path, least: int | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Args:
        least: how many names a layer has at least that is worth it.
        """
        self._root = root
        self._least = LEAST_WATCHED if least is None else least
        self._now = now
        self._lock = threading.Lock()
        self._watch: FolderWatch | None = None
        self._walk: Walk | None = None
        self._is_first = True
        self._until = 0.0
        self._since = 0
        self._tops: list[tuple[int, int]] = []

    def current(self) -> Walk | None:
        """The last walk when another one would find the same; else None."""
        with self._lock:
            known = self._walk
            if known is None:
                return None
            same = self._changes == self._since and self._now() < self._until
            if not same or _identities(self._root, known) != self._tops:
                self._walk = known = None
            return known

    def walk(self, scan: Callable[[], Walk]) -> Walk:
        """A new walk, kept if it stands."""
        with self._lock:
            since, began = self._changes, self._now()
        walk = scan()
        with self._lock:
            self._walk = None
            tops = _identities(self._root, walk)
            if walk.seen < self._least or not _may_stand(walk) or not tops:
                self._stop()
            elif self._is_first:
                self._is_first = False  # a command looks once: nothing is gained for it
            elif self._watch is None or not self._watch.covers(walk.folders):
                self._watch = self._watch or FolderWatch()
                self._watch.follow(self._root, walk.folders)
            elif self._changes == since:
                self._walk, self._since, self._tops = walk, since, tops
                self._until = began + STANDS_SECONDS
        return walk

    @property
    def _changes(self) -> int:
        return self._watch.changes if self._watch is not None else 0

    def _stop(self) -> None:
        if self._watch is not None:
            self._watch.stop()


def _may_stand(walk: Walk) -> bool:
    """Whether everything that decides what a walk finds lies in the folders it went through."""
    whole = walk.complete and not walk.unseen and not walk.linked
    return whole and all(place.folder in walk.folders for place in walk.places)


def _identities(root: Path, walk: Walk) -> list[tuple[int, int]]:
    """Which folders a layer begins with now: one further up may have been moved or replaced."""
    try:
        found = [(root / place.folder).stat() for place in walk.places]
    except OSError:
        return []
    return [(one.st_dev, one.st_ino) for one in found]


class SharedScan:
    """Lets callers who arrive while a scan runs share the next one.

    A scan that began before a call may have passed the file just edited; one that begins after
    it cannot miss the edit, for any number of callers, also those that waited for a place.
    """

    def __init__(self) -> None:
        self._done = threading.Condition()
        self._started = 0
        self._finished = 0
        self._running = False
        self._result: Walk | None = None
        self._began = float("-inf")
        """When the scan of the result did."""

    def run(self, scan: Callable[[], Walk], deadline: Deadline) -> Walk:
        """The result of a scan that began after this call arrived."""
        with self._done:
            if self._result is not None and self._began >= deadline.since:
                return self._result
            wanted = self._started + 1
            while self._running or self._finished >= wanted:
                if self._finished >= wanted and self._result is not None:
                    return self._result
                if not self._done.wait(deadline.remaining_seconds):
                    raise TimeoutExceeded(deadline.message)
            self._running = True
            self._started += 1
            began = time.monotonic()
        walk: Walk | None = None
        try:
            walk = scan()
            return walk
        finally:
            with self._done:
                self._running = False
                # A scan cut short by its own caller's deadline is no answer for the others.
                if walk is not None and walk.complete and not walk.unseen:
                    self._finished, self._result, self._began = self._started, walk, began
                self._done.notify_all()
