"""Opening files so that nothing outside the root can be reached, whatever moves meanwhile.

Every component of a path is opened from its parent without following a link, so a folder that
is swapped for a link between the walk and the read makes the read fail instead of escape.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES

_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# A FIFO opened without O_NONBLOCK waits for a writer for ever.
_FILE_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_BY_PARENT = os.open in os.supports_dir_fd


class Escape(OSError):
    """A path leads somewhere that is not served."""


def open_inside(root: Path, relative: str, within: str = "") -> int:
    """A descriptor of the regular file at a path below the root.

    Args:
        within: the folder below the root that no link may leave; empty for the root.

    Raises:
        Escape: a link leads outside, to a hidden place or to something not markdown.
        OSError: it cannot be opened or is not a regular file.
    """
    if not {"", ".", ".."}.isdisjoint(relative.split("/")):
        raise Escape("not a path below the root")
    try:
        descriptor = _open_without_links(root, relative)
    except OSError:
        target = link_target(root, relative, within)
        if target == relative:
            raise
        if not target.lower().endswith(MARKDOWN_SUFFIXES):
            raise Escape("a symbolic link to a file that is not markdown") from None
        descriptor = _open_without_links(root, target)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        raise Escape("not a regular file")
    except OSError:
        close(descriptor)
        raise


def close(descriptor: int) -> None:
    """Close what was only read: nothing is lost when the system says that this failed."""
    with suppress(OSError):
        os.close(descriptor)


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
    if isinstance(folder, int):
        close(folder)


def _real_path(path: Path) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except OSError as error:
        # Without `strict` every error would pass for the end of the path.
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return os.path.realpath(path)


def _open_without_links(root: Path, relative: str) -> int:
    *folders, name = relative.split("/")
    if not _BY_PARENT:
        if os.path.realpath(root / relative) != str(root / relative):
            raise Escape("a symbolic link")
        return os.open(root / relative, _FILE_FLAGS)
    parent = _descend(root, folders)
    try:
        return os.open(name, _FILE_FLAGS, dir_fd=parent)
    finally:
        close(parent)


def _descend(root: Path, folders: list[str]) -> int:
    # The root may itself be reached through a link: it was resolved when it was found.
    current = os.open(root, _FOLDER_FLAGS)
    for name in folders:
        try:
            below = os.open(name, _FOLDER_FLAGS, dir_fd=current)
        finally:
            close(current)
        current = below
    return current
