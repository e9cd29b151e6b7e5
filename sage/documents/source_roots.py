"""The sources, ready to be walked and read, and what each layer holds of all of them.

Of two pages of one topic the nearer is listed and says what it overrides. A source that is not
there is a problem and no files. Every path is opened below its own source's root.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from sage.documents.walk import NO_WALK, SharedScan, WatchedWalk, walk_layer
from sage.errors import ConfigError
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


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """What one layer holds now. It is the same object for as long as nothing changes."""

    layer: str
    files: tuple[SourceFile, ...]
    problems: tuple[Problem, ...]
    complete: bool
    unseen: bool = False
    """Whether what is missing may well be there: time ran out, or the system failed a call."""


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
        self._walked = dict.fromkeys(source.layers, _Earlier(NO_WALK, ()))
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

        def scan() -> Walk:
            # Whoever waited for the walk of another call may find that it still stands.
            return watched.current() or watched.walk(
                lambda watch: self._walk(layer, deadline, watch)
            )

        walk = watched.current() or self._scans[layer].run(scan, deadline)
        complete = walk.complete and not walk.unseen
        earlier = self._walked[layer]
        same = walk is earlier.last or (walk.found_the_same and walk.known is earlier.walk)
        files = earlier.walk.files if same else tuple(walk.files)
        pages = earlier.importing if same else importing(files)
        if not same and complete:
            self._walked[layer] = _Earlier(EarlierWalk(files), pages, walk)
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

    def expect_calls(self) -> None:
        """Be ready for many calls: large layers are watched from their first walk on."""
        for watched in self._watched.values():
            watched.expect_calls()

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

    def _walk(self, layer: str, deadline: Deadline, watch: FolderWatch | None) -> Walk:
        return walk_layer(
            self.source.root,
            layer,
            self.rules,
            deadline,
            self._walked[layer].walk,
            self._where[layer],
            watch,
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


class Listings:
    """What the layers of all sources hold, looked at anew at every call. Thread-safe."""

    def __init__(
        self, sources: Mapping[str, SourceRoot], forget: Callable[[Iterable[str]], None]
    ) -> None:
        """Args:
        sources: by name, nearest first.
        forget: told the paths of files that are gone.
        """
        self._sources = sources
        self._forget = forget
        self._known: dict[str, Listing] = {}
        self._listed: dict[str, list[Listed]] = {}
        self._stale: set[str] = set()
        self._lock = threading.Lock()

    def refresh(self, layers: Sequence[str], deadline: Deadline) -> tuple[Listing, ...]:
        """What the layers hold at this moment."""
        return tuple(self._refresh_layer(layer, deadline) for layer in layers)

    def distrust(self, layer: str) -> None:
        """Give the layer a new listing at the next call, also if nothing seems to have changed."""
        with self._lock:
            self._stale.add(layer)

    def _refresh_layer(self, layer: str, deadline: Deadline) -> Listing:
        listed = [
            root.list_files(layer, deadline)
            for root in self._sources.values()
            if layer in root.source.layers
        ]
        complete, unseen = _all_of(listed)
        known = None if layer in self._stale else self._known.get(layer)
        if known and complete and self._listed.get(layer) == listed:
            return known
        problems = tuple(problem for one in listed for problem in one.problems)
        listing = Listing(layer, _joined(listed), problems, complete, unseen)
        if complete:
            self._keep(listing, listed)
        return listing

    def _keep(self, listing: Listing, listed: list[Listed]) -> None:
        with self._lock:
            before = self._known.get(listing.layer)
            self._known[listing.layer] = listing
            self._listed[listing.layer] = listed
            self._stale.discard(listing.layer)
            gone = {source.path for source in before.files} if before else set()
            self._forget(gone.difference(source.path for source in listing.files))


def files_of(listings: Sequence[Listing]) -> list[SourceFile]:
    """The files of several layers, in reading order."""
    return [source for listing in listings for source in listing.files]


def are_complete(listings: Iterable[Listing]) -> bool:
    """Whether nothing is missing from any of them."""
    return all(listing.complete for listing in listings)


def open_sources(settings: Settings) -> dict[str, SourceRoot]:
    """The sources that are served, by name, nearest first."""
    return {one.name: SourceRoot(one, settings) for one in settings.served}


def _joined(parts: Sequence[Listed]) -> tuple[SourceFile, ...]:
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


def _all_of(parts: Iterable[Listed]) -> tuple[bool, bool]:
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
