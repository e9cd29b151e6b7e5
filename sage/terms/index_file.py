"""A private folder of the user's, and in it one sealed file of named parts for each root.

What is kept there can be built again, so every doubt is a reason not to use it. The file is data
only, numbers and texts: nothing in it is ever run. It is cut into blocks, and the seal holds for
the checksums of all blocks: a small file is checked as a whole when it is opened, of a large one
each block when something of it is read first.
"""

import errno
import hashlib
import json
import os
import stat
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from sage.atomic import PART, Folder, hold, open_folder, write_file

_NAME = b"SAGEIDX"
_MAGIC = _NAME + b"4"
_DIGEST = 32
_LENGTH = 8
_MAX_HEAD = 1 << 24
MAX_BYTES = 1 << 32
IN_MEMORY = 1 << 25
"""A file up to this size is read whole; of a larger one only what is asked for."""
_BLOCK = 1 << 15
"""To read a number of one that is not checked yet takes 20 us."""
_BLOCK_SUM = 4
_CHUNK = 1 << 20
_STALE_SECONDS = 3600.0
_DEAD_SECONDS = 10.0
"""A file that no writer holds is old by then: it holds it until just before it moves it."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
DAMAGED = "the index file is damaged"
NOT_OURS = "the index file is not one of ours"
OTHER_VERSION = "the index file is of another version of SAGE"
OTHER_ROOT = "the index file is of another root"
OTHER_MAPPING = "the index file is of another mapping of layers"


class UntrustedIndex(Exception):
    """A sealed file must not be used, or its folder not be trusted; the message says why."""


class Part(Protocol):
    """Named bytes, in memory or in a file."""

    @property
    def data(self) -> bytes | None:
        """All of them where they are in memory: whoever knows the bounds may take a slice."""

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, start: int, stop: int) -> bytes:
        """Some of them, exactly as many as asked for.

        Raises:
            UntrustedIndex: there are not so many.
        """

    def part(self, start: int, size: int) -> "Part":
        """A part of them."""


class MemoryPart:
    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, stop: int) -> bytes:
        if not 0 <= start <= stop <= len(self.data):
            raise UntrustedIndex(DAMAGED)
        return self.data[start:stop]

    def part(self, start: int, size: int) -> "MemoryPart":
        return MemoryPart(self.read(start, start + size))


class FilePart:
    """Bytes of an open file. A map would be as fast, but end the process if the file shrank."""

    data = None

    def __init__(self, file: "CheckedFile", offset: int, size: int) -> None:
        self._file = file
        self._offset = offset
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def read(self, start: int, stop: int) -> bytes:
        if not 0 <= start <= stop <= self._size:
            raise UntrustedIndex(DAMAGED)
        return self._file.read(self._offset + start, stop - start)

    def part(self, start: int, size: int) -> "FilePart":
        return FilePart(self._file, self._offset + start, size)


class OpenFile:
    """A file that stays open for as long as somebody may read from it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.close = weakref.finalize(self, os.close, descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at a place, whatever other threads read."""
        try:
            data = _read_at(self._descriptor, size, offset) if size else b""
        except OSError as error:
            raise UntrustedIndex(f"the index file cannot be read ({_reason(error)})") from error
        if len(data) != size:
            raise UntrustedIndex(DAMAGED)
        return data


class WholeFile:
    """A file that was read at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at a place."""
        return self._data[offset : offset + size]


class CheckedFile:
    """The blocks of a sealed file, each compared with what it must be before it is read first."""

    def __init__(self, file: OpenFile | WholeFile, start: int, size: int, sums: bytes) -> None:
        """Args:
        start: where the blocks begin.
        sums: those of all blocks, in order.
        """
        self._file = file
        self._start = start
        self._size = size
        self._sums = sums
        self._is_checked = bytearray(_blocks_in(size))

    def read(self, at: int, size: int) -> bytes:
        """Bytes at a place of the blocks.

        Raises:
            UntrustedIndex: they are not what was written there.
        """
        first, last = at // _BLOCK, (at + size - 1) // _BLOCK
        if 0 not in self._is_checked[first : last + 1]:
            return self._file.read(self._start + at, size)
        start, stop = first * _BLOCK, min((last + 1) * _BLOCK, self._size)
        data = self._file.read(self._start + start, stop - start)
        if _block_sums(data) != self._sums[first * _BLOCK_SUM : (last + 1) * _BLOCK_SUM]:
            raise UntrustedIndex(DAMAGED)
        self._is_checked[first : last + 1] = b"\1" * (last + 1 - first)
        return data[at - start : at - start + size]


class IndexFile:
    """One sealed file for one root in the user's cache folder."""

    def __init__(
        self, cache_dir: Path, root: Path, others: Sequence[Path] = (), suffix: str = ""
    ) -> None:
        """Args:
        others: what is indexed beside the root: with other sources it is another index.
        suffix: tells what else is kept for a root from its index.
        """
        places = b"\0".join(map(os.fsencode, (root, *others)))
        key = hashlib.blake2b(places, digest_size=12).hexdigest()
        self._root = root
        self.folder = cache_dir / "index"
        self.path = self.folder / f"{key}{suffix}.sage"

    def read(self) -> tuple[dict[str, Any], dict[str, Part]] | None:
        """The manifest and the parts last written; None when there are none.

        Raises:
            UntrustedIndex: the folder or the file is not what we would have left.
        """
        self._refuse_repository()
        try:
            with self._opened() as folder:
                file, size = _open_own(self.path.name, folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UntrustedIndex(f"the index file cannot be read ({_reason(error)})") from error
        return _unsealed(file, size)

    def write(self, manifest: Mapping[str, Any], parts: Mapping[str, Part]) -> int:
        """Replace the file in one step and return its size.

        Whoever reads sees the old file or the new one, also after a crash; two writers cannot
        mix theirs.

        Raises:
            UntrustedIndex: it cannot be written safely.
        """
        self._refuse_repository()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                self._sweep(folder)
                return write_file(folder, self.path.name, _sealed(manifest, parts))
        except OSError as error:
            raise UntrustedIndex(
                f"the cache folder cannot be written ({_reason(error)})"
            ) from error

    def _refuse_repository(self) -> None:
        """What lies in a repository may have come with it; and nothing is written there.

        Somebody whose home folder is the root keeps the cache folder in it, as everybody does.
        """
        with suppress(OSError, RuntimeError):
            root = self._root.resolve()
            inside = self.folder.resolve().is_relative_to(root)
            if inside and not Path.home().resolve().is_relative_to(root):
                raise UntrustedIndex(
                    "the cache folder is inside the repository; "
                    "set SAGE_CACHE_DIR to a folder outside of it"
                )

    @contextmanager
    def _opened(self) -> Iterator[Folder]:
        """The folder, held open: what is checked cannot be exchanged for another one."""
        with open_folder(self.folder) as folder:
            if folder.descriptor is None:
                _check(os.lstat(self.folder))
            else:
                _check(os.fstat(folder.descriptor))
                if os.fstat(folder.descriptor).st_mode & 0o077:
                    os.fchmod(folder.descriptor, 0o700)
            yield folder

    def _sweep(self, folder: Folder) -> None:
        """Remove what a killed writer left."""
        now = self.folder.stat().st_mtime
        for part in self.folder.glob(f"*{PART}"):
            with suppress(OSError):
                age = now - part.lstat().st_mtime
                dead = age > _DEAD_SECONDS and _is_unheld(part.name, folder)
                if dead or age > _STALE_SECONDS:
                    os.unlink(folder.place(part.name), dir_fd=folder.descriptor)


def _sealed(manifest: Mapping[str, Any], parts: Mapping[str, Part]) -> Iterator[bytes]:
    """A manifest and parts as bytes that show any change, piece by piece; the seal is the last."""
    listed = {**manifest, "parts": [[name, part.size] for name, part in parts.items()]}
    head = json.dumps(listed, ensure_ascii=True, separators=(",", ":")).encode()
    sizes = (len(head), sum(part.size for part in parts.values()))
    start = _MAGIC + b"".join(size.to_bytes(_LENGTH, "big") for size in sizes) + head
    yield start
    table = waiting = b""
    for piece in _pieces(parts.values()):
        yield piece
        waiting += piece
        whole = len(waiting) - len(waiting) % _BLOCK
        table += _block_sums(waiting[:whole])
        waiting = waiting[whole:]
    table += _block_sums(waiting)
    yield table
    yield _seal(start, table)


def _pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """All parts in pieces of a megabyte or two: there are many small ones."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        for start in range(0, part.size, _CHUNK):
            waiting.append(part.read(start, min(start + _CHUNK, part.size)))
            size += len(waiting[-1])
            if size >= _CHUNK:
                yield b"".join(waiting)
                waiting, size = [], 0
    yield b"".join(waiting)


def _unsealed(file: OpenFile, size: int) -> tuple[dict[str, Any], dict[str, Part]]:
    """What was sealed, and its parts: whatever is read of them is what was written."""
    # Windows can neither read at a place nor replace a file that is open.
    is_small = size <= IN_MEMORY or os.name != "posix"
    source = WholeFile(file.read(0, size)) if is_small else file
    first = len(_MAGIC) + 2 * _LENGTH
    prefix = source.read(0, min(size, first))
    magic = prefix[: len(_MAGIC)]
    if magic != _MAGIC and magic.startswith(_NAME):
        raise UntrustedIndex(OTHER_VERSION)
    if magic != _MAGIC or len(prefix) < first:
        raise UntrustedIndex(NOT_OURS)
    head = int.from_bytes(prefix[len(_MAGIC) : -_LENGTH], "big")
    body = int.from_bytes(prefix[-_LENGTH:], "big")
    table = _blocks_in(body) * _BLOCK_SUM
    start = first + head
    if head > _MAX_HEAD or start + body + table + _DIGEST != size:
        raise UntrustedIndex(DAMAGED)
    said = source.read(first, head)
    sums = source.read(start + body, table)
    if _seal(prefix + said, sums) != source.read(size - _DIGEST, _DIGEST):
        raise UntrustedIndex(DAMAGED)
    blocks = CheckedFile(source, start, body, sums)
    whole = MemoryPart(blocks.read(0, body)) if is_small else FilePart(blocks, 0, body)
    try:
        manifest = json.loads(said)
        return manifest, dict(_listed(manifest["parts"], whole))
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise UntrustedIndex(NOT_OURS) from error


def _seal(start: bytes, sums: bytes) -> bytes:
    return hashlib.blake2b(start + sums, digest_size=_DIGEST).digest()


def _block_sums(data: bytes) -> bytes:
    """The checksums of consecutive blocks; the last one may be short.

    They tell what a disk does to a file. Who could forge them could write the whole file: a
    digest would not be safer, and of a large index it took a tenth of a first search.
    """
    view = memoryview(data)
    blocks = (view[at : at + _BLOCK] for at in range(0, len(data), _BLOCK))
    return b"".join(zlib.crc32(block).to_bytes(_BLOCK_SUM, "big") for block in blocks)


def _blocks_in(size: int) -> int:
    return -(-size // _BLOCK)


def _listed(listed: Iterable[Any], whole: Part) -> Iterator[tuple[str, Part]]:
    at = 0
    for name, size in listed:
        if type(name) is not str or type(size) is not int or not 0 <= size <= whole.size - at:
            raise ValueError("a part lies outside of the file")
        yield name, whole.part(at, size)
        at += size
    if at != whole.size:
        raise ValueError("the parts do not fill the file")


def _open_own(name: str, folder: Folder) -> tuple[OpenFile, int]:
    flags = os.O_RDONLY | _NO_LINK | _BINARY | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(folder.place(name), flags, dir_fd=folder.descriptor)
    file = OpenFile(descriptor)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not _is_ours(status) or status.st_nlink != 1:
        raise UntrustedIndex("the index file is not ours")
    if os.name == "posix" and status.st_mode & 0o022:
        raise UntrustedIndex("others may write to the index file")
    if status.st_size > MAX_BYTES:
        raise UntrustedIndex("the index file is too large")
    return file, status.st_size


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    # Windows, where a file is read once and by one thread.
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def _is_unheld(name: str, folder: Folder) -> bool:
    flags = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(folder.place(name), flags, dir_fd=folder.descriptor)
    try:
        return hold(descriptor)
    finally:
        os.close(descriptor)


def _check(status: os.stat_result) -> None:
    """Whether a folder is one that only we can change."""
    if not stat.S_ISDIR(status.st_mode):
        raise UntrustedIndex("the cache folder is a link or a file")
    if not _is_ours(status):
        raise UntrustedIndex("the cache folder belongs to another user")
    if os.name == "posix" and status.st_mode & 0o022:
        raise UntrustedIndex("others may write to the cache folder")


def _is_ours(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a link or a file is in the way"
    return error.strerror or str(error)
