"""Replacing somebody's file: all or nothing, its permissions kept, a dated copy beside it.

A symbolic link is written through to its target. What the new bytes are is up to the caller.
"""

import contextlib
import os
from datetime import datetime
from pathlib import Path

from sage.errors import ConfigError

MAX_BYTES = 64 * 1024 * 1024


def read_bytes(path: Path) -> bytes | None:
    """The bytes of a file; None when there is none yet.

    Raises:
        ConfigError: it is no regular file, too large, or cannot be read.
    """
    try:
        target = _target(path)
        if not target.exists():
            return None
        if not target.is_file():
            raise ConfigError(f"{path} is not a file")
        if target.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES >> 20} MB; edit it by hand")
        return target.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {_reason(error)}") from error


def replace_bytes(
    path: Path, before: bytes | None, after: bytes, now: datetime | None
) -> Path | None:
    """Put `after` in the place of `before`; the path of the dated copy of `before`, if any.

    Without a time no copy is kept.

    Raises:
        ConfigError: the file is no longer what it was, or cannot be written.
    """
    if read_bytes(path) != before:
        raise ConfigError(f"{path} was changed by something else just now; run it again")
    target = _target(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = None if before is None or now is None else _copy(target, before, now)
        _swap(target, after)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {_reason(error)}") from error
    return copy


def create_bytes(path: Path, data: bytes) -> bool:
    """Write a new file; false, and nothing touched, when something has that name already.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            _write_new(path, data)
            return True
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {_reason(error)}") from error
    return False


def _target(path: Path) -> Path:
    """The file that a link leads to; Python tells a loop of links in three ways."""
    with contextlib.suppress(RuntimeError, OSError):
        target = path.resolve()
        if not target.is_symlink():
            return target
    raise ConfigError(f"{path} is a link that leads nowhere")


def _copy(target: Path, data: bytes, now: datetime) -> Path:
    stem = f"{target.name}.{now:%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        copy = target.with_name(f"{stem}.bak" if number == 1 else f"{stem}-{number}.bak")
        with contextlib.suppress(FileExistsError):
            _write_new(copy, data, target)
            return copy
    raise FileExistsError(0, "too many copies of this second", str(target))


def _swap(target: Path, data: bytes) -> None:
    """Write beside the target and rename over it: a reader sees the old bytes or the new."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}.sage")
    try:
        _write_new(fresh, data, target if target.exists() else None)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _write_new(path: Path, data: bytes, like: Path | None = None) -> None:
    """Create a file with the permissions and owner of another, or with the user's own."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666 if like is None else 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    if like is not None:
        _keep_owner(path, like)


def _keep_owner(path: Path, like: Path) -> None:
    status = like.stat()
    path.chmod(status.st_mode & 0o7777)
    if hasattr(os, "chown") and (status.st_uid, status.st_gid) != _owner(path):
        # Only root may give files away; anybody else keeps their own, as every editor does.
        with contextlib.suppress(PermissionError):
            os.chown(path, status.st_uid, status.st_gid)


def _owner(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
