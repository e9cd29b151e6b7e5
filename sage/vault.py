"""A private folder of the user's, and sealed files in it: read whole, only if nothing changed.

What is kept there can be built again, so every doubt is a reason not to read it. An index holds
pickles: bytes reach Whoosh only after their seal was checked, and they are the very bytes checked.
"""

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

_MAGIC = b"SAGEIDX1"
_DIGEST = 32
_LENGTH = 8
MAX_BYTES = 1 << 30
_PART = ".part"
_STALE_SECONDS = 3600.0
_DEAD_SECONDS = 10.0
"""A file that no writer holds is old by then: it holds it until just before it moves it."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class Doubtful(Exception):
    """A sealed file must not be used, or its folder not be trusted; the message says why."""


class Folder(NamedTuple):
    """An opened folder; without a descriptor where the system knows no paths below one."""

    path: Path
    descriptor: int | None

    def place(self, name: str) -> str:
        """How a file in it is called beside the descriptor."""
        return name if self.descriptor is not None else str(self.path / name)


class Vault:
    """One sealed file for one root in the user's cache folder."""

    def __init__(self, cache_dir: Path, root: Path) -> None:
        key = hashlib.blake2b(os.fsencode(root), digest_size=12).hexdigest()
        self.folder = cache_dir / "index"
        self.path = self.folder / f"{key}.sage"

    def read(self) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """The manifest and the files last written; None when there are none.

        Raises:
            Doubtful: the folder or the file is not what we would have left.
        """
        try:
            with self._opened() as folder:
                data = _read_own(self.path.name, folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Doubtful(f"the index file cannot be read ({_reason(error)})") from error
        return unsealed(data)

    def write(self, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> int:
        """Replace the file in one step and return its size.

        Whoever reads sees the old file or the new one, also after a crash; two writers cannot
        mix theirs.

        Raises:
            Doubtful: it cannot be written safely.
        """
        data = sealed(manifest, files)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                self._sweep(folder)
                _replace(self.path.name, data, folder)
        except OSError as error:
            raise Doubtful(f"the cache folder cannot be written ({_reason(error)})") from error
        return len(data)

    @contextmanager
    def _opened(self) -> Iterator[Folder]:
        """The folder, held open: what is checked cannot be exchanged for another one."""
        if os.open not in os.supports_dir_fd:
            _check(os.lstat(self.folder))
            yield Folder(self.folder, None)
            return
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            _check(os.fstat(descriptor))
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o700)
            yield Folder(self.folder, descriptor)
        finally:
            with suppress(OSError):
                os.close(descriptor)

    def _sweep(self, folder: Folder) -> None:
        """Remove what a killed writer left."""
        now = self.folder.stat().st_mtime
        for part in self.folder.glob(f"*{_PART}"):
            with suppress(OSError):
                age = now - part.lstat().st_mtime
                dead = age > _DEAD_SECONDS and _is_unheld(part.name, folder)
                if dead or age > _STALE_SECONDS:
                    os.unlink(folder.place(part.name), dir_fd=folder.descriptor)


def sealed(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """A manifest and files as one block of bytes that shows any change."""
    names = sorted(files)
    listed = {**manifest, "files": [[name, len(files[name])] for name in names]}
    head = json.dumps(listed, ensure_ascii=True, separators=(",", ":")).encode()
    body = b"".join((len(head).to_bytes(_LENGTH, "big"), head, *(files[name] for name in names)))
    return b"".join((_MAGIC, hashlib.blake2b(body, digest_size=_DIGEST).digest(), body))


def unsealed(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What was sealed.

    Raises:
        Doubtful: not a byte may differ.
    """
    start = len(_MAGIC) + _DIGEST
    if data[: len(_MAGIC)] != _MAGIC:
        raise Doubtful("the index file is of another format")
    body = memoryview(data)[start:]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != data[len(_MAGIC) : start]:
        raise Doubtful("the index file is damaged")
    return _opened(body)


def _opened(body: memoryview) -> tuple[dict[str, Any], dict[str, bytes]]:
    length = int.from_bytes(body[:_LENGTH], "big")
    at = _LENGTH + length
    manifest: dict[str, Any] = json.loads(bytes(body[_LENGTH:at]))
    files: dict[str, bytes] = {}
    for name, size in manifest["files"]:
        files[name] = bytes(body[at : at + size])
        at += size
    return manifest, files


def _replace(name: str, data: bytes, folder: Folder) -> None:
    part = f"{secrets.token_hex(8)}{_PART}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
    descriptor = os.open(folder.place(part), flags, 0o600, dir_fd=folder.descriptor)
    try:
        with _file(descriptor, "wb") as file:
            _hold(file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(
            folder.place(part),
            folder.place(name),
            src_dir_fd=folder.descriptor,
            dst_dir_fd=folder.descriptor,
        )
    except BaseException:
        with suppress(OSError):
            os.unlink(folder.place(part), dir_fd=folder.descriptor)
        raise


def _read_own(name: str, folder: Folder) -> bytes:
    flags = os.O_RDONLY | _NO_LINK | _BINARY | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(folder.place(name), flags, dir_fd=folder.descriptor)
    with _file(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_ours(status) or status.st_nlink != 1:
            raise Doubtful("the index file is not ours")
        if os.name == "posix" and status.st_mode & 0o022:
            raise Doubtful("others may write to the index file")
        if status.st_size > MAX_BYTES:
            raise Doubtful("the index file is too large")
        return file.read()


def _hold(descriptor: int) -> bool:
    """Lock a file for as long as this process lives and keeps it open, where that is possible."""
    try:
        import fcntl
    except ImportError:  # Windows: a rest is removed when it is old
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_unheld(name: str, folder: Folder) -> bool:
    flags = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(folder.place(name), flags, dir_fd=folder.descriptor)
    try:
        return _hold(descriptor)
    finally:
        os.close(descriptor)


def _file(descriptor: int, mode: str) -> IO[bytes]:
    """A file object that owns a descriptor, also when it cannot be made."""
    try:
        return os.fdopen(descriptor, mode)
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def _check(status: os.stat_result) -> None:
    """Whether a folder is one that only we can change."""
    if not stat.S_ISDIR(status.st_mode):
        raise Doubtful("the cache folder is a link or a file")
    if not _is_ours(status):
        raise Doubtful("the cache folder belongs to another user")
    if os.name == "posix" and status.st_mode & 0o022:
        raise Doubtful("others may write to the cache folder")


def _is_ours(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a link or a file is in the way"
    return error.strerror or str(error)
