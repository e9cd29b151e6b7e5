"""The walk of one layer and the read of one file: what is there, what is left out, and why.

Nothing here raises for a bad file: it becomes a problem, and the healthy ones are listed.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sage.deadline import Deadline
from sage.documents.containment import (
    Escape,
    close,
    close_folder,
    kind_of,
    link_target,
    may_pass,
    open_below,
    open_folder,
    open_inside,
)
from sage.documents.places import LayerPlaces, Place, Places, is_below_any, may_hold, topic_of
from sage.documents.problems import Level, Problem
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.sanitize import is_readable, shown_name
from sage.values import OWN

MAX_DEPTH = 64
_CHECK_EVERY = 256
_LAST_SECOND = 253_402_300_799  # of the year 9999, the last that a date can say


class Stamp(NamedTuple):
    """What changes when a file changes; ctime catches edits that keep size and mtime."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def day(self) -> str:
        """The day of the last edit."""
        seconds = min(max(self.mtime_ns // 10**9, 0), _LAST_SECOND)
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()


class SourceFile(NamedTuple):
    """A markdown file that is served."""

    path: str
    layer: str
    stamp: Stamp
    address: str = ""
    """Its topic where that is not its path."""
    source: str = OWN
    """The name of the source that it comes from."""
    overrides: tuple[str, ...] = ()
    """The sources behind it that have a page of the same topic."""

    @property
    def topic(self) -> str:
        """Its public address: its layer and path without the suffix."""
        return self.address or topic_of(self.path)


class EarlierWalk(NamedTuple):
    """The files of an earlier walk, and the same by folder and name: None there is a folder."""

    files: tuple[SourceFile, ...]
    folders: Mapping[str, Mapping[str, SourceFile | None]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the walk leaves out."""

    max_file_bytes: int
    max_files: int
    ignores: Callable[[str], bool]
    within: str = ""
    """The folder below the root that no link may leave; empty for the root."""
    others: frozenset[str] = frozenset()
    """Folders that belong to other sources."""


@dataclass(slots=True)
class Walk:
    """What one walk of a layer found so far."""

    root: Path
    layer: str
    rules: Rules
    deadline: Deadline
    known: EarlierWalk
    places: tuple[Place, ...]
    address: Callable[[str], str | None] | None = None
    """Gives a path its topic, None to what is not the layer's; itself None when all is."""
    files: list[SourceFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    """Where the folders walked so far really lie, relative to the root."""
    links: list[tuple[str, str]] = field(default_factory=list)
    unchanged: int = 0
    """How many of the files are those of the earlier walk."""
    seen: int = 0
    pause_at: int = 0
    """At how many names the limits are looked at again."""
    complete: bool = True
    unseen: bool = False
    """Whether something could not be looked at that may well be there the next time."""
    linked: bool = False
    """Whether something in it may be changed by another name than its own."""

    def leave_out(self, path: str, rule: str, message: str, level: Level = "warning") -> None:
        """Report a path that is not served, unless it is not this layer's to serve."""
        is_top = any(path == place.folder for place in self.places)
        if not is_top and self.address is not None and self.address(path) is None:
            return
        self.problems.append(Problem(shown_name(path), rule, message, level=level))

    def leave_unseen(self, path: str, error: OSError, message: str) -> None:
        """Report a path that cannot be looked at, for now or for good."""
        self.leave_out(path, "unreadable", f"{message}: {error.strerror}")
        self.unseen = self.unseen or may_pass(error)

    @property
    def found_the_same(self) -> bool:
        """Whether the files are exactly those of the earlier walk."""
        return self.unchanged == len(self.files) == len(self.known.files)


def walk_layer(
    root: Path,
    layer: str,
    rules: Rules,
    deadline: Deadline,
    known: EarlierWalk = EarlierWalk((), {}),  # noqa: B008 - immutable
    where: LayerPlaces | None = None,
) -> Walk:
    """List the markdown files of a layer, by path; `complete` is false when time ran out.

    Args:
        known: the files of an earlier walk with the same rules. Those whose stamp is still the
            same are taken as they are, which makes a walk cost little more than its system calls.
    """
    where = where or Places((layer,), {}).of_layer(layer)
    walk = Walk(root, layer, rules, deadline, known, where.places, where.address)
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
    walk.files = list(known.files) if walk.found_the_same else sorted(walk.files)
    walk.problems.sort(key=lambda problem: problem.path)
    return walk


def earlier_walk(files: tuple[SourceFile, ...]) -> EarlierWalk:
    """What a later walk may take as it is."""
    folders: dict[str, dict[str, SourceFile | None]] = {}
    for source in files:
        folder, _, name = source.path.rpartition("/")
        below: SourceFile | None = source
        while folder and name not in (here := folders.setdefault(folder, {})):
            here[name] = below
            below = None
            folder, _, name = folder.rpartition("/")
    return EarlierWalk(files, folders)


def _walk_from(walk: Walk, path: str, real: str) -> None:
    """Walk a folder whose path in the knowledge base is `path` and in the root is `real`."""
    try:
        folder = open_folder(walk.root, real)
    except OSError as error:
        _folder_problem(walk, path, error)
    else:
        _walk_folder(walk, path, real, folder)


def _walk_folder(walk: Walk, path: str, real: str, folder: int | str) -> None:
    """Walk an open folder and everything below it, and close it."""
    walk.folders.add(real)
    try:
        for name in _take_files(walk, path, folder):
            if walk.complete and _may_hold(walk, _joined(path, name)):
                _walk_below(walk, _joined(path, name), _joined(real, name), name, folder)
    except OSError as error:
        _folder_problem(walk, path, error)
    finally:
        close_folder(folder)


def _walk_below(walk: Walk, path: str, real: str, name: str, parent: int | str) -> None:
    if path.count("/") > MAX_DEPTH:
        walk.leave_out(path, "too-deep", f"nested deeper than {MAX_DEPTH} folders")
    elif _is_new_folder(walk, path, real):
        try:
            folder = open_below(parent, name)
        except OSError as error:
            _folder_problem(walk, path, error)
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
            elif _is_known_folder(entry, here) or not _take(walk, _joined(path, name), entry):
                inner.append(name)
    return inner


def _folder_problem(walk: Walk, path: str, error: OSError) -> None:
    if any(path == place.folder for place in walk.places):
        _layer_problem(walk, path, error)
    elif not isinstance(error, FileNotFoundError):  # deleted while we looked
        walk.leave_unseen(path, error, "the folder cannot be listed")


def _layer_problem(walk: Walk, path: str, error: OSError) -> None:
    """The folder of a layer, or the knowledge base itself, may be a link within the root."""
    try:
        kind = kind_of(walk.root / path)
    except OSError as reason:
        kind, error = 0, reason
    if kind is None and walk.address is not None:
        walk.leave_out(path, "no-folder", f"sage.yaml maps {walk.layer} to it; it is not there")
    elif kind is None:
        walk.leave_out(path, "no-folder", "this layer has no folder yet", "note")
    elif error.errno not in (errno.ENOTDIR, errno.ELOOP):
        walk.leave_unseen(path, error, "the folder cannot be listed")
    elif kind == stat.S_IFDIR:
        _take_link(walk, path)
    else:
        walk.leave_out(path, "not-a-folder", "a layer must be a folder")


def _is_known_folder(entry: "os.DirEntry[str]", here: Mapping[str, SourceFile | None]) -> bool:
    return entry.name in here and entry.is_dir(follow_symlinks=False)


def _is_unchanged(walk: Walk, entry: "os.DirEntry[str]", stamp: Stamp) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if status.st_nlink != 1:
        walk.linked = True
    return stamp == (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _take(walk: Walk, path: str, entry: "os.DirEntry[str]") -> bool:
    """File what one name stands for; false for a folder to walk."""
    if _left_out_by_name(walk, path, entry.name):
        return True
    if entry.is_symlink():
        _take_link(walk, path)
        return True
    if entry.is_dir(follow_symlinks=False):
        return False
    status = _status(walk, path, entry)
    if status is not None:
        _take_file(walk, path, status)
    return True


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


def _left_out_by_name(walk: Walk, path: str, name: str) -> bool:
    if not is_readable(name):
        walk.leave_out(path, "unreadable-name", "the name is not readable text; rename the file")
    elif name.startswith("."):
        walk.leave_out(path, "hidden", "hidden", "note")
    elif walk.rules.ignores(path.removeprefix(f"{KNOWLEDGE_DIR}/")):
        walk.leave_out(path, "ignored", "matches a pattern of `ignore`", "note")
    else:
        return False
    return True


def _status(walk: Walk, path: str, entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted while we looked: as if it had never been there
    except OSError as error:
        walk.leave_unseen(path, error, "cannot be read")
        return None


def _is_new_folder(walk: Walk, path: str, real: str) -> bool:
    if real in walk.folders:
        walk.leave_out(path, "listed-twice", "links to a folder that is served already", "note")
        return False
    return True


def _take_link(walk: Walk, path: str) -> None:
    walk.linked = True
    try:
        target = link_target(walk.root, path, walk.rules.within)
        status = os.stat(walk.root / target, follow_symlinks=False)
    except Escape as error:
        walk.leave_out(path, "link-leaves-root", f"left out: {error}")
    except OSError as error:
        walk.leave_out(path, "broken-link", f"a symbolic link to nothing: {error.strerror}")
        walk.unseen = walk.unseen or may_pass(error)
    else:
        if stat.S_ISLNK(status.st_mode):
            walk.leave_out(path, "broken-link", "a symbolic link that leads back to itself")
        elif stat.S_ISDIR(status.st_mode):
            walk.links.append((path, target))
        elif target.lower().endswith(MARKDOWN_SUFFIXES):
            _take_file(walk, path, status)
        else:
            walk.leave_out(
                path, "link-leaves-root", "left out: a symbolic link to a file that is not markdown"
            )


def _take_file(walk: Walk, path: str, status: os.stat_result) -> None:
    address = walk.address(path) if walk.address is not None else ""
    if address is None:
        return  # another layer's, or not what the glob names
    if not stat.S_ISREG(status.st_mode):
        walk.leave_out(path, "not-a-file", "not a regular file")
    elif not path.lower().endswith(MARKDOWN_SUFFIXES):
        walk.leave_out(path, "not-markdown", "not a markdown file", "note")
    elif status.st_size > walk.rules.max_file_bytes:
        size, most = status.st_size, walk.rules.max_file_bytes
        walk.leave_out(path, "too-large", f"{size:,} bytes, at most {most:,} are served; split it")
    else:
        walk.linked = walk.linked or status.st_nlink != 1
        walk.files.append(SourceFile(path, walk.layer, stamp_of(status), address))


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _may_hold(walk: Walk, folder: str) -> bool:
    """Whether to look into a folder: not into another source's, nor where no place reaches."""
    if folder in walk.rules.others:
        return False
    return walk.address is None or may_hold(walk.places, folder)


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp in the status of a file."""
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def read_file(
    root: Path, path: str, max_bytes: int, within: str = ""
) -> tuple[bytes, Stamp] | None:
    """A file's bytes and their stamp; None when it was written to meanwhile.

    Args:
        within: the folder below the root that no link may leave; empty for the root.

    Raises:
        OSError: it cannot be opened, is not a regular file, or lies outside the root.
    """
    descriptor = open_inside(root, path, within)
    try:
        before = stamp_of(os.fstat(descriptor))
        data = _read_all(descriptor, max_bytes + 1)
        status = os.fstat(descriptor)
    finally:
        close(descriptor)
    after = stamp_of(status)
    # ext4 shows a file that is being truncated without a size, but with its blocks and old times.
    emptied = not after.size and getattr(status, "st_blocks", 0) > 0
    torn = emptied or before != after or len(data) != after.size
    return None if torn else (data, after)


def _read_all(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0:
        part = os.read(descriptor, min(most, 1 << 20))
        if not part:
            break
        parts.append(part)
        most -= len(part)
    return b"".join(parts)
