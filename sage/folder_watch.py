"""Whether anything changed in some folders since they were looked at, as the kernel tells it.

To look at every file of a large base takes longer than to search it. Linux tells a process of each
change in the folders that it names (inotify), before the call that made the change returns: as long
as nothing is told, nothing has to be looked at. It tells nothing of writes through another hard
link or a memory map, of mounts, and of what other machines do to a shared drive: who uses this
leaves links out and looks again from time to time, and shared drives are never watched.
"""

import ctypes
import os
import struct
import sys
import weakref
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

# From <sys/inotify.h>.
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x4000_0000
_ONLY_FOLDERS = 0x0100_0000
_WANTED = (
    *(_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE),
    *(_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS),
)
_MASK = sum(_WANTED)
_LOSING = _UNMOUNT | _OVERFLOW | _IGNORED | _IS_FOLDER
"""What may leave a folder unwatched."""
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16
_MOST_READS = 64
LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"})
"""File systems that only this machine changes."""


class FolderWatch:
    """Watches folders while they are walked, and from then on. Its owner locks."""

    def __init__(self) -> None:
        self._process = 0
        self._descriptor = -1
        self._close: Any = None
        self._add: Callable[[int, bytes, int], int] | None = None
        self._device: int | None = None
        self._folders: set[str] = set()
        self._changes = 0

    @property
    def is_on(self) -> bool:
        """Whether it watches what it was given."""
        return self._close is not None

    @property
    def changes(self) -> int:
        """Another number after every change in one of the folders."""
        if self.is_on:
            self._drain()
        return self._changes

    def covers(self, folders: Collection[str]) -> bool:
        """Whether exactly these are watched."""
        return self.is_on and self._folders == folders

    def start(self, root: Path) -> bool:
        """Watch what is added from now on, below a root; false where that cannot be done."""
        self.stop()
        self._device = local_device(root)
        if self._device is None or sys.platform != "linux":
            return False
        library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            return False
        self._process = os.getpid()
        self._add = library.inotify_add_watch
        self._close = weakref.finalize(self, os.close, self._descriptor)
        return True

    def add(self, folder: str, descriptor: int) -> None:
        """Watch an open folder as well, before it is listed; watch nothing where that fails."""
        if self._add is None or folder in self._folders:
            return
        # The folder that is open, whatever its path leads to by now.
        place = b"/proc/self/fd/%d" % descriptor
        same_device = os.fstat(descriptor).st_dev == self._device
        if same_device and self._add(self._descriptor, place, _MASK) >= 0:
            self._folders.add(folder)
        else:
            self.stop()

    def stop(self) -> None:
        """Watch nothing any more."""
        if self._close is not None and self._process == os.getpid():
            self._close()
        self._close = self._add = None
        self._descriptor = -1
        self._folders = set()
        self._changes += 1

    def _drain(self) -> None:
        if self._process != os.getpid():
            # A child has its parent's descriptor: each would take events from the other.
            self.stop()
            return
        for _ in range(_MOST_READS):
            try:
                told = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                return
            except OSError:
                self.stop()
                return
            self._changes += 1
            if _masks(told) & _LOSING:
                self.stop()
                return


def _masks(told: bytes) -> int:
    """What all events together say."""
    masks = at = 0
    while at + _EVENT.size <= len(told):
        _, mask, _, length = _EVENT.unpack_from(told, at)
        masks |= mask
        at += _EVENT.size + length
    return masks


def local_device(root: Path) -> int | None:
    """The device that a folder lies on, when only this machine changes it; else None."""
    try:
        device = root.stat().st_dev
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
    except OSError:
        return None
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split(" ")[2] == wanted:
            return device if rest.split(" ")[0] in LOCAL else None
    return None
