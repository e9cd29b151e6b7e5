"""The files of a layer: what a name must be to stand for one, and why others are left out.

A link is followed to see where it leads, and nothing is opened. Nothing here raises for a bad file:
it becomes a problem, and the healthy ones are listed.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sage.deadline import Deadline
from sage.documents.places import Place, topic_of
from sage.documents.problems import Level, Problem
from sage.folder_watch import FolderWatch
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.sanitize import is_readable, shown_name
from sage.values import OWN

_LAST_SECOND = 253_402_300_799  # of the year 9999, the last that a date can say


_LEAST, _MOST = -(2**63), 2**63 - 1


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


class EarlierWalk:
    """The files of an earlier walk."""

    def __init__(self, files: tuple[SourceFile, ...] = ()) -> None:
        self.files = files

    @cached_property
    def folders(self) -> Mapping[str, Mapping[str, SourceFile | None]]:
        """The same by folder and name; None is a folder. Only another walk needs it."""
        folders: dict[str, dict[str, SourceFile | None]] = {}
        for source in self.files:
            folder, _, name = source.path.rpartition("/")
            below: SourceFile | None = source
            while folder and name not in (here := folders.setdefault(folder, {})):
                here[name] = below
                below = None
                folder, _, name = folder.rpartition("/")
        return folders


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
    found_the_same: bool = False
    """Whether the files are exactly those of the earlier walk."""
    seen: int = 0
    pause_at: int = 0
    """At how many names the limits are looked at again."""
    complete: bool = True
    unseen: bool = False
    """Whether something could not be looked at that may well be there the next time."""
    linked: bool = False
    """Whether something in it may be changed by another name than its own."""
    watch: FolderWatch | None = None
    """What is told of every folder before it is listed."""
    tops: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Which folders it began with, by their real path: device and inode of what was opened."""

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


class Escape(OSError):
    """A path leads somewhere that is not served."""


def take(walk: Walk, path: str, entry: "os.DirEntry[str]") -> bool:
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


def take_unlisted(walk: Walk, path: str, error: OSError) -> None:
    """Report a folder that cannot be listed; the one of a layer may be a link, or missing."""
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


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp in the status of a file; every number of it fits into 64 bits."""
    inode, times = status.st_ino, (status.st_mtime_ns, status.st_ctime_ns)
    # A file system of its own kind; a date before 1678 or behind 2262.
    if inode > _MOST or max(times) > _MOST or min(times) < _LEAST:
        inode, times = inode & _MOST, (_in_range(times[0]), _in_range(times[1]))
    return Stamp(inode, status.st_size, *times)


def _in_range(number: int) -> int:
    return max(_LEAST, min(number, _MOST))


def link_target(root: Path, relative: str, within: str = "") -> str:
    """Where a path really lies, relative to the root; links are allowed within it.

    Args:
        within: the folder below the root that no link may leave; empty for the root.

    Raises:
        Escape: outside, or below a hidden folder other than the knowledge base.
        OSError: that cannot be found out.
    """
    real = Path(_real_path(root / relative))
    if not real.is_relative_to(root):
        raise Escape("a symbolic link that leaves the repository")
    if within and not real.is_relative_to(root / within):
        raise Escape("a symbolic link that leaves its source")
    parts = real.relative_to(root).parts
    if any(part.startswith(".") and part != KNOWLEDGE_DIR for part in parts):
        raise Escape("a symbolic link to a hidden place")
    return "/".join(parts)


def _real_path(path: Path) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except OSError as error:
        # Without `strict` every error would pass for the end of the path.
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return os.path.realpath(path)


def kind_of(path: Path) -> int | None:
    """The kind of file that a path leads to: 0 for none, None when it is not there itself.

    Raises:
        OSError: that cannot be found out now.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError as error:
        if may_pass(error):
            raise
        return 0


def may_pass(error: OSError) -> bool:
    """Whether an error says nothing about a file, so that another look may succeed."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError, PermissionError, Escape)):
        return False
    return error.errno not in (errno.ELOOP, errno.ENAMETOOLONG)
