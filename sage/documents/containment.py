"""Opening one file so that nothing outside the root can be reached, whatever moves meanwhile.

Every component of a path is opened from its parent without following a link, so a folder that
is swapped for a link between the walk and the read makes the read fail instead of escape.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from sage.documents.files import Escape, Stamp, link_target, stamp_of
from sage.documents.walk import close_folder, open_folder
from sage.paths import MARKDOWN_SUFFIXES

# A FIFO opened without O_NONBLOCK waits for a writer for ever.
_FILE_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


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


def _read_all(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0:
        part = os.read(descriptor, min(most, 1 << 20))
        if not part:
            break
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _open_without_links(root: Path, relative: str) -> int:
    folder, _, name = relative.rpartition("/")
    parent = open_folder(root, folder)
    if isinstance(parent, str):
        if os.path.realpath(root / relative) != str(root / relative):
            raise Escape("a symbolic link")
        return os.open(root / relative, _FILE_FLAGS)
    try:
        return os.open(name, _FILE_FLAGS, dir_fd=parent)
    finally:
        close_folder(parent)
