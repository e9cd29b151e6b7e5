"""Files that only their owner may read: written whole, read only while nobody else can."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sage.errors import ConfigError

# Others may not even read it, and a group may only read: that is how a mounted secret looks.
_TOO_OPEN = 0o037


def read_private(path: Path, limit_bytes: int) -> bytes | None:
    """What a file holds; None when there is none.

    Raises:
        ConfigError: it cannot be read, or others can.
    """
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & _TOO_OPEN:
                raise ConfigError(f"{path} is open to others; close it: chmod 600 {path}")
            return file.read(limit_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def write_private(path: Path, data: bytes) -> None:
    """Write a file that a reader sees whole and nobody else can open.

    Raises:
        ConfigError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file, whose folder is made when there is none.

    Raises:
        ConfigError: the folder cannot be written to.
    """
    try:
        import fcntl
    except ImportError:  # Windows: two changes at the same moment are not expected there
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.with_suffix(".lock").open("a")
    except OSError as error:
        raise ConfigError(f"{path.parent} cannot be written to: {error.strerror}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """What changes when a file does; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
