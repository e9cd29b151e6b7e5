"""The one way to write a file: beside its place, flushed, then renamed over it in one step.

A reader sees the old bytes or the new, also after a crash. A folder is held open while it is
written to, so that it cannot be exchanged for another; below a repository no link is followed, and
one that is in the way is named with where it leads. What the new bytes are is up to the caller.
A file that holds a secret is read here too, where nobody else can read it.
"""

import contextlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from sage.errors import ConfigError

MAX_BYTES = 64 * 1024 * 1024
PART = ".part"
"""How the name of a file ends that is not finished yet."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | _NO_LINK | _NO_WAIT | getattr(os, "O_DIRECTORY", 0)
_UNNAMED = getattr(os, "O_TMPFILE", 0)
_LEFT = re.compile(rf"\.[0-9a-f]{{16}}{re.escape(PART)}")
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
LOCK_SECONDS = 10.0
# Others may not even read a secret, and a group may only read: that is how a mounted one looks.
_TOO_OPEN = 0o037


class Folder(NamedTuple):
    """An opened folder; without a descriptor where the system knows no paths below one."""

    path: Path
    descriptor: int | None

    def place(self, name: str) -> str:
        """How a file in it is called beside the descriptor."""
        return name if self.descriptor is not None else str(self.path / name)

    def status(self, name: str) -> os.stat_result | None:
        """What has that name, a link itself and not its target; None when nothing has."""
        with suppress(FileNotFoundError):
            return os.stat(self.place(name), dir_fd=self.descriptor, follow_symlinks=False)
        return None


@contextmanager
def open_folder(path: Path) -> Iterator[Folder]:
    """A folder, held open; a link in its place is not followed.

    Raises:
        OSError: it cannot be opened, or is no folder.
    """
    if not _BY_DESCRIPTOR:
        yield Folder(path, None)
        return
    descriptor = os.open(path, _FOLDER)
    try:
        yield Folder(path, descriptor)
    finally:
        with suppress(OSError):
            os.close(descriptor)


def write_file(
    folder: Folder,
    name: str,
    data: bytes | Iterable[bytes],
    like: os.stat_result | None = None,
    mode: int = 0o600,
) -> int:
    """Put a file in its place in one step, with the permissions and owner of another if given.

    The bytes may come in pieces; their number is returned.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    part = f".{secrets.token_hex(8)}{PART}"
    try:
        size = _write_unnamed(folder, part, data, like, mode)
        if size is None:
            size = _write_new(folder, part, data, like, mode)
        os.replace(
            folder.place(part),
            folder.place(name),
            src_dir_fd=folder.descriptor,
            dst_dir_fd=folder.descriptor,
        )
    except BaseException:  # whatever ends it, nothing is left behind
        with suppress(OSError):
            os.unlink(folder.place(part), dir_fd=folder.descriptor)
        raise
    _flush_folder(folder)
    return size


def hold(descriptor: int) -> bool:
    """Lock an open file for as long as it stays open, where that is possible."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def wait_for_lock(descriptor: int, refusal: str) -> None:
    """The same, when another process holds it now.

    Raises:
        ConfigError: with these words, when it holds it for too long.
    """
    until = time.monotonic() + LOCK_SECONDS
    while not hold(descriptor):
        if time.monotonic() > until:
            raise ConfigError(refusal)
        time.sleep(0.02)


def file_of(descriptor: int, mode: str) -> IO[bytes]:
    """A file object that owns a descriptor, also when it cannot be made."""
    try:
        return os.fdopen(descriptor, mode)
    except BaseException:  # whatever ends it, the descriptor is closed
        with suppress(OSError):
            os.close(descriptor)
        raise


def read_private(path: Path, limit_bytes: int) -> bytes | None:
    """What a file holds that holds a secret; None when there is none.

    Raises:
        ConfigError: it cannot be read, or others can, or it is no longer the file of that name.
    """
    try:
        # Without waiting: a pipe in its place would hold up everybody who asks.
        with file_of(os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{path} is not a file")
            if os.name == "posix" and status.st_mode & _TOO_OPEN:
                raise ConfigError(f"{path} is open to others; close it: chmod 600 {path}")
            if not status.st_nlink:
                # Mounted alone and then replaced outside: what changes there is never seen here.
                raise ConfigError(
                    f"{path} was replaced by another file that is not visible here; mount its "
                    "folder in place of the file, and restart the server"
                )
            return file.read(limit_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def read_bytes(path: Path, root: Path | None = None) -> bytes | None:
    """The bytes of a file; None when there is none yet.

    Args:
        root: the repository below which no link is followed.

    Raises:
        ConfigError: it is no regular file, too large, a link, or cannot be read.
    """
    with _named(path, "read"):
        try:
            with _opened(path, root, make=False) as (folder, name):
                return _read(folder, name, path)
        except FileNotFoundError:
            return None


def replace_bytes(
    path: Path, before: bytes | None, after: bytes | None, root: Path | None = None
) -> None:
    """Put `after` in the place of `before`; None stands for no file.

    Raises:
        ConfigError: the file is no longer what it was, or cannot be written.
    """
    with (
        _named(path, "written"),
        _opened(path, root, make=True) as (folder, name),
        _locked(folder, path),
    ):
        _sweep(folder)
        if _read(folder, name, path) != before:
            raise ConfigError(f"{path} was changed by something else just now; run it again")
        if after is not None:
            write_file(folder, name, after, folder.status(name), mode=0o666)
        elif before is not None:
            os.unlink(folder.place(name), dir_fd=folder.descriptor)


def create_bytes(path: Path, data: bytes, root: Path | None = None) -> bool:
    """Write a new file; false, and nothing touched, when something has that name already.

    Raises:
        ConfigError: it cannot be written.
    """
    with _named(path, "written"), _opened(path, root, make=True) as (folder, name):
        try:
            _write_new(folder, name, data, None, 0o666)
        except FileExistsError:
            return False
        _flush_folder(folder)
        return True


def remove_empty_folder(path: Path, root: Path) -> None:
    """Remove a folder of a repository when nothing is left in it."""
    with suppress(OSError), _opened(path, root, make=False) as (folder, name):
        os.rmdir(folder.place(name), dir_fd=folder.descriptor)


@contextmanager
def _named(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be {done}: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path, root: Path | None, make: bool) -> Iterator[tuple[Folder, str]]:
    """The folder of a file, made when one is wanted.

    Raises:
        FileNotFoundError: there is none, and none was wanted.
    """
    if root is None:
        # The user's own file: a link is theirs, such as one into a folder of dotfiles.
        path = _resolved(path)
        root = path.parent
        if make:
            root.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(open_folder(root.resolve()))
        for part in path.relative_to(root).parts[:-1]:
            folder = _step(folder, part, make)
            if folder.descriptor is not None:
                stack.callback(os.close, folder.descriptor)
        _refuse_link(folder, path.name)
        yield folder, path.name


def _step(folder: Folder, name: str, make: bool) -> Folder:
    """The folder of that name in another."""
    _refuse_link(folder, name)
    if make and folder.status(name) is None:
        with suppress(FileExistsError):
            os.mkdir(folder.place(name), dir_fd=folder.descriptor)
    if folder.descriptor is None:
        return Folder(folder.path / name, None)
    return Folder(folder.path / name, os.open(name, _FOLDER, dir_fd=folder.descriptor))


def _refuse_link(folder: Folder, name: str) -> None:
    status = folder.status(name)
    if status is None or not stat.S_ISLNK(status.st_mode):
        return
    link = folder.path / name
    try:
        target = link.resolve()
    except (OSError, RuntimeError):
        raise ConfigError(f"{link} is a link that leads nowhere; remove it") from None
    raise ConfigError(
        f"{link} is a link to {target}: in a repository nothing is read or written through a "
        f"link here; put a file or folder of its own in its place, or edit {target} by hand"
    )


def _resolved(path: Path) -> Path:
    """The file that a link leads to; Python tells a loop of links in three ways."""
    with suppress(RuntimeError, OSError):
        target = path.resolve()
        if not target.is_symlink():
            return target
    raise ConfigError(f"{path} is a link that leads nowhere")


def _read(folder: Folder, name: str, path: Path) -> bytes | None:
    try:
        flags = os.O_RDONLY | _NO_LINK | _NO_WAIT | _BINARY
        descriptor = os.open(folder.place(name), flags, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return None
    # Before anything else: Python makes no file object of a folder.
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ConfigError(f"{path} is not a file")
    with file_of(descriptor, "rb") as file:
        if status.st_size > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES >> 20} MB; edit it by hand")
        return file.read(MAX_BYTES + 1)


def _write_new(
    folder: Folder,
    name: str,
    data: bytes | Iterable[bytes],
    like: os.stat_result | None,
    mode: int,
) -> int:
    """Create a file with the permissions and owner of another, or with a mode of the user's own."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
    mode = 0o600 if like is not None else mode
    descriptor = os.open(folder.place(name), flags, mode, dir_fd=folder.descriptor)
    with file_of(descriptor, "wb") as file:
        hold(descriptor)
        return _fill(file, data, like)


def _write_unnamed(
    folder: Folder,
    name: str,
    data: bytes | Iterable[bytes],
    like: os.stat_result | None,
    mode: int,
) -> int | None:
    """The same, with a name only once all is written: who is killed before leaves nothing.

    None where the system, or the file system, has no files without a name. What comes in pieces
    cannot be written twice, and is not tried.
    """
    if not _UNNAMED or folder.descriptor is None or not isinstance(data, bytes):
        return None
    mode = 0o600 if like is not None else mode
    try:
        descriptor = os.open(".", os.O_WRONLY | _UNNAMED, mode, dir_fd=folder.descriptor)
    except OSError:
        return None
    with file_of(descriptor, "wb") as file:
        size = _fill(file, data, like)
        try:
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder.descriptor)
        except OSError:
            return None
        return size


def _fill(file: IO[bytes], data: bytes | Iterable[bytes], like: os.stat_result | None) -> int:
    size = sum(map(file.write, (data,) if isinstance(data, bytes) else data))
    file.flush()
    if like is not None:
        _keep_owner(file.fileno(), like)
    os.fsync(file.fileno())
    return size


def _sweep(folder: Folder) -> None:
    """Remove what killed writers left in a locked folder: nobody else writes there now."""
    if folder.descriptor is None:
        return
    for name in os.listdir(folder.descriptor):  # noqa: PTH208 - of the folder that is held
        if _LEFT.fullmatch(name):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder.descriptor)


def _keep_owner(descriptor: int, like: os.stat_result) -> None:
    if not hasattr(os, "fchown"):  # Windows
        return
    made = os.fstat(descriptor)
    if (like.st_uid, like.st_gid) != (made.st_uid, made.st_gid):
        # Only root may give files away; anybody else keeps their own, as every editor does.
        with suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    # Last: giving a file away clears some of its bits.
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _flush_folder(folder: Folder) -> None:
    """Make a rename last through a loss of power, where folders can be flushed."""
    if folder.descriptor is not None:
        with suppress(OSError):
            os.fsync(folder.descriptor)


@contextmanager
def _locked(folder: Folder, path: Path) -> Iterator[None]:
    """Let one process at a time change files of a folder; one that waits too long is told."""
    if folder.descriptor is None:
        yield
        return
    descriptor = os.open(".", _FOLDER, dir_fd=folder.descriptor)
    try:
        wait_for_lock(descriptor, f"{path} is being changed by another process; run it again")
        yield
    finally:
        os.close(descriptor)
