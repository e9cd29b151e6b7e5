"""What a session was given already, and the log of hooks that failed: in the private cache folder.

Nothing of a prompt or a page is kept: topics, and the reasons of failures.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_KEYS = 2_000
MAX_SESSIONS = 200
MAX_LOG_BYTES = 64 * 1024
_MAX_FILE_BYTES = 512 * 1024
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_LOG = "hooks.log"


class PrivateFolder:
    """The folder of the hooks in the user's cache: only its owner may write there."""

    def __init__(self, cache_dir: Path) -> None:
        self.path = cache_dir / "hooks"

    def made(self) -> Path:
        """The folder, made if need be.

        Raises:
            OSError: it cannot be made, or others could write to it.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(self.path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError("the folder of the hooks is a link or a file")
        if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise PermissionError("others may write to the folder of the hooks")
        return self.path

    def log(self, line: str) -> None:
        """Add a line to the log, which starts again when it has grown."""
        with contextlib.suppress(OSError):
            path = self.made() / _LOG
            grown = path.exists() and path.lstat().st_size > MAX_LOG_BYTES
            with _opened(path, os.O_WRONLY | (os.O_TRUNC if grown else os.O_APPEND)) as file:
                stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                os.write(file, f"{stamp} {line[:500]}\n".encode("utf-8", "replace"))


class HookSession:
    """What one conversation in one repository was given."""

    def __init__(self, folder: PrivateFolder, root: Path, session: str) -> None:
        self._folder = folder
        # Not the host: VS Code runs the hooks in Claude Code's file beside its own.
        key = "\0".join((str(root), session)).encode("utf-8", "surrogatepass")
        self._name = hashlib.blake2b(key, digest_size=16).hexdigest() + ".given"
        self.is_known = bool(session)

    def given(self) -> frozenset[str]:
        """The keys of what was delivered; nothing where nothing can be read."""
        if not self.is_known:
            return frozenset()
        try:
            with _opened(self._folder.made() / self._name, os.O_RDONLY, create=False) as file:
                return frozenset(_lines(file))
        except OSError:
            return frozenset()

    def claim(self, keys: Sequence[str]) -> frozenset[str]:
        """Note keys as delivered and return those that were not yet: each goes to one caller.

        Raises:
            OSError: nothing can be noted.
        """
        if not self.is_known:
            return frozenset(keys)
        path = self._folder.made() / self._name
        if not path.exists():
            self._sweep()
        with _opened(path, os.O_RDWR | os.O_APPEND) as file:
            _lock(file)
            known = _lines(file)
            fresh = [key for key in dict.fromkeys(keys) if key not in known]
            if len(known) + len(fresh) > MAX_KEYS:
                return frozenset()
            os.write(file, "".join(f"{key}\n" for key in fresh).encode("utf-8", "replace"))
        return frozenset(fresh)

    def forget(self) -> None:
        """Begin anew: what was delivered is no longer before the model."""
        with contextlib.suppress(OSError):
            (self._folder.made() / self._name).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Keep the sessions that were used last."""
        sessions = sorted(self._folder.path.glob("*.given"), key=_age)
        for old in sessions[MAX_SESSIONS - 1 :]:
            with contextlib.suppress(OSError):
                old.unlink()


@contextlib.contextmanager
def _opened(path: Path, flags: int, *, create: bool = True) -> Iterator[int]:
    descriptor = os.open(path, flags | _NO_LINK | (os.O_CREAT if create else 0), 0o600)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            raise OSError("not a file of the hooks")
        yield descriptor
    finally:
        os.close(descriptor)


def _lines(descriptor: int) -> set[str]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = os.read(descriptor, _MAX_FILE_BYTES)
    return set(data.decode("utf-8", "replace").splitlines())


def _lock(descriptor: int) -> None:
    """Hold the file until it is closed: parallel tools of one session must not both take a page."""
    try:
        import fcntl
    except ImportError:  # Windows: two at once may deliver a page twice
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _age(path: Path) -> float:
    with contextlib.suppress(OSError):
        return -path.lstat().st_mtime
    return 0.0
