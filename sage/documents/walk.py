"""The walk of a layer: its folders opened one below the other, unchanged files taken as they are.

Every folder is opened from its parent without following a link, so one that is swapped for a link
meanwhile is not entered. A walk that finds what an earlier one found costs little more than its
system calls; what is new is left to `files`. A walk may serve several calls: those that waited for
it, and in a large layer those before anything changes.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sage.deadline import Deadline
from sage.documents.files import (
    EarlierWalk,
    Rules,
    SourceFile,
    Stamp,
    Walk,
    stamp_of,
    take,
    take_unlisted,
)
from sage.documents.places import LayerPlaces, Places, is_below_any, may_hold
from sage.errors import TimeoutExceeded
from sage.folder_watch import FolderWatch
from sage.paths import KNOWLEDGE_DIR

MAX_DEPTH = 64
LEAST_WATCHED = 2_000
"""Names in a layer above which its folders are watched: fewer are looked at as fast."""
STANDS_SECONDS = 5.0
"""So long a walk stands while nothing is told: some changes are never told."""
NO_WALK = EarlierWalk()
_CHECK_EVERY = 256
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_BY_PARENT = os.open in os.supports_dir_fd


def walk_layer(
    root: Path,
    layer: str,
    rules: Rules,
    deadline: Deadline,
    known: EarlierWalk = NO_WALK,
    where: LayerPlaces | None = None,
    watch: FolderWatch | None = None,
) -> Walk:
    """List the markdown files of a layer, by path; `complete` is false when time ran out.

    Args:
        known: the files of an earlier walk with the same rules. Those whose stamp is still the
            same are taken as they are, which makes a walk cost little more than its system calls.
        watch: given every folder before it is listed.
    """
    where = where or Places((layer,), {}).of_layer(layer)
    walk = Walk(root, layer, rules, deadline, known, where.places, where.address)
    walk.watch = watch
    walk.pause_at = min(_CHECK_EVERY, rules.max_files)
    for place in walk.places:
        if rules.others and is_below_any(rules.others, place.folder):
            message = f"sage.yaml maps {layer} to it; it is another source's"
            walk.leave_out(place.folder, "not-ours", message)
        elif place.folder not in walk.folders:
            _walk_from(walk, place.folder, place.folder)
    # Linked folders come last, so that a folder reached twice is listed under its own name.
    while walk.links and walk.complete:
        walk.links.sort(reverse=True)
        path, real = walk.links.pop()
        if _is_new_folder(walk, path, real):
            _walk_from(walk, path, real)
    walk.found_the_same = walk.unchanged == len(walk.files) == len(known.files)
    walk.files = list(known.files) if walk.found_the_same else sorted(walk.files)
    walk.problems.sort(key=lambda problem: problem.path)
    return walk


def open_folder(root: Path, relative: str) -> int | str:
    """What `os.scandir` takes to list a folder that is no link: a descriptor, or on systems
    without `openat` its path."""
    if not _BY_PARENT:
        return str(root / relative)
    return _descend(root, relative.split("/") if relative else [])


def open_below(folder: int | str, name: str) -> int | str:
    """The same for a folder inside one that is open."""
    if isinstance(folder, str):
        return f"{folder}/{name}"
    return os.open(name, _FOLDER_FLAGS, dir_fd=folder)


def close_folder(folder: int | str) -> None:
    """Give the descriptor of `open_folder` or `open_below` back."""
    # It was only read: nothing is lost when the system says that this failed.
    if isinstance(folder, int):
        try:
            os.close(folder)
        except OSError:
            return


class WatchedWalk:
    """The last walk of a large layer, for as long as nothing changes in its folders. Thread-safe.

    A walk stands when each of its folders was watched before it was listed and nothing was told
    since the walk began.
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
        self._watch = FolderWatch()
        self._is_worth_it = False  # a command looks once: nothing is gained for it
        self._again_at = float("-inf")
        self._walk: Walk | None = None
        self._until = 0.0
        self._since = 0
        self._tops: list[tuple[int, int]] = []

    def expect_calls(self) -> None:
        """Watch from the first walk on: others will ask for the same."""
        self._is_worth_it = True

    def current(self) -> Walk | None:
        """The last walk when another one would find the same; else None."""
        with self._lock:
            known = self._walk
            if known is None:
                return None
            same = self._watch.changes == self._since and self._now() < self._until
            if not same or _identities(self._root, known) != self._tops:
                self._walk = known = None
            return known

    def walk(self, scan: Callable[[FolderWatch | None], Walk]) -> Walk:
        """A new walk, kept if it stands.

        Args:
            scan: given what each folder is to be added to. One walk runs at a time.
        """
        with self._lock:
            self._walk = None  # from here on only the walk asks what is told
            began = self._now()
            watch = self._watch if self._may_watch(began) else None
            since = watch.changes if watch is not None else 0
        walk = scan(watch)
        with self._lock:
            tops = [walk.tops[one.folder] for one in walk.places if one.folder in walk.tops]
            is_worth_it = walk.seen >= self._least and _may_stand(walk)
            if walk.complete:
                self._is_worth_it = is_worth_it
            if watch is None:
                return walk
            if not is_worth_it or not tops:
                watch.stop()
            elif not watch.covers(walk.folders):
                # Refused, or the folders changed meanwhile: each try costs a call for each folder.
                self._again_at = began + STANDS_SECONDS
                watch.stop()
            elif watch.changes == since:
                self._walk, self._since, self._tops = walk, since, tops
                self._until = began + STANDS_SECONDS
        return walk

    def _may_watch(self, now: float) -> bool:
        """Whether the folders are watched, or can be from now on."""
        if not self._is_worth_it or now < self._again_at:
            return False
        return self._watch.is_on or self._watch.start(self._root)


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


def _walk_from(walk: Walk, path: str, real: str) -> None:
    """Walk a folder whose path in the knowledge base is `path` and in the root is `real`."""
    try:
        folder = open_folder(walk.root, real)
    except OSError as error:
        take_unlisted(walk, path, error)
    else:
        _walk_folder(walk, path, real, folder, is_top=True)


def _walk_folder(walk: Walk, path: str, real: str, folder: int | str, is_top: bool = False) -> None:
    """Walk an open folder and everything below it, and close it."""
    walk.folders.add(real)
    if walk.watch is not None and isinstance(folder, int):
        walk.watch.add(real, folder)
    try:
        if is_top and isinstance(folder, int):
            walk.tops[real] = _identity(os.fstat(folder))
        for name in _take_files(walk, path, folder):
            below = _joined(path, name)
            if walk.complete and _may_hold(walk, below):
                _walk_below(walk, below, below if path == real else _joined(real, name), folder)
    except OSError as error:
        take_unlisted(walk, path, error)
    finally:
        close_folder(folder)


def _walk_below(walk: Walk, path: str, real: str, parent: int | str) -> None:
    if path.count("/") > MAX_DEPTH:
        walk.leave_out(path, "too-deep", f"nested deeper than {MAX_DEPTH} folders")
    elif _is_new_folder(walk, path, real):
        try:
            folder = open_below(parent, path.rpartition("/")[2])
        except OSError as error:
            take_unlisted(walk, path, error)
        else:
            _walk_folder(walk, path, real, folder)


def _take_files(walk: Walk, path: str, folder: int | str) -> list[str]:
    """Take the files of an open folder; the names of its folders come back."""
    inner: list[str] = []
    here = walk.known.folders.get(path, {})
    with os.scandir(folder) as entries:
        for entry in entries:
            walk.seen += 1
            if walk.seen > walk.pause_at and not _may_go_on(walk):
                break
            name = entry.name
            before = here.get(name)
            if before is not None and _is_unchanged(walk, entry, before.stamp):
                walk.files.append(before)
                walk.unchanged += 1
            elif _is_known_folder(entry, here) or not take(walk, _joined(path, name), entry):
                inner.append(name)
    return inner


def _is_known_folder(entry: "os.DirEntry[str]", here: Mapping[str, SourceFile | None]) -> bool:
    return entry.name in here and entry.is_dir(follow_symlinks=False)


def _is_unchanged(walk: Walk, entry: "os.DirEntry[str]", stamp: Stamp) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if status.st_nlink != 1:
        walk.linked = True
    same = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamp == same or stamp == stamp_of(status)


def _may_go_on(walk: Walk) -> bool:
    """Whether the limits allow more; asked rarely, since a clock costs as much as a file."""
    limit = walk.rules.max_files
    walk.pause_at = min(walk.pause_at + _CHECK_EVERY, limit)
    if walk.seen > limit:
        walk.leave_out(
            f"{KNOWLEDGE_DIR}/{walk.layer}",
            "too-many-files",
            f"more than {limit} files; the rest is not served (limits.max_files)",
            "error",
        )
        walk.complete = False
    elif walk.deadline.expired:
        walk.complete = False
        walk.unseen = True
    return walk.complete


def _is_new_folder(walk: Walk, path: str, real: str) -> bool:
    if real in walk.folders:
        walk.leave_out(path, "listed-twice", "links to a folder that is served already", "note")
        return False
    return True


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _may_hold(walk: Walk, folder: str) -> bool:
    """Whether to look into a folder: not into another source's, nor where no place reaches."""
    if folder in walk.rules.others:
        return False
    return walk.address is None or may_hold(walk.places, folder)


def _descend(root: Path, folders: list[str]) -> int:
    # The root may itself be reached through a link: it was resolved when it was found.
    current = os.open(root, _FOLDER_FLAGS)
    for name in folders:
        try:
            below = os.open(name, _FOLDER_FLAGS, dir_fd=current)
        finally:
            close_folder(current)
        current = below
    return current


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
    return list(map(_identity, found))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
