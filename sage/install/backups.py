"""Copies of clients' files from before we changed them, in the user's own cache folder.

Not beside the files: those may stand in a repository, and may hold secrets. A dated copy is for the
user; the original, from before our first entry, lets an uninstall leave no trace.
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sage.atomic import open_folder, write_file
from sage.errors import ConfigError

_ORIGINAL = "original"
_ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was before our first entry."""

    data: bytes | None
    """None when there was no file."""
    first_folder: Path | None = None
    """The uppermost folder that was made for it."""


class Backups:
    """The copies of one user; those made for hooks are apart from those for servers."""

    def __init__(self, cache_dir: Path, kind: str = "servers") -> None:
        self._folder = cache_dir / "backups" / kind

    def copy(self, path: Path, data: bytes, now: datetime) -> Path:
        """Keep a dated copy of a file's bytes; its path.

        Raises:
            ConfigError: it cannot be written.
        """
        name = f"{now:%Y%m%d-%H%M%S-%f}-{path.name.removeprefix('.')}"
        self._write(path, name, data)
        return self._of(path) / name

    def remember(self, path: Path) -> None:
        """Keep a file as it is now as its original, or that there is none.

        Raises:
            ConfigError: it cannot be written.
        """
        self.forget(path)
        try:
            self._write(path, _ORIGINAL, path.read_bytes())
        except FileNotFoundError:
            missing = [folder for folder in path.parents if not folder.exists()]
            self._write(path, _ABSENT, str(missing[-1] if missing else "").encode())

    def original(self, path: Path) -> Original | None:
        """What a file was before our first entry; None when that is not known."""
        with suppress(OSError):
            return Original((self._of(path) / _ORIGINAL).read_bytes())
        with suppress(OSError, UnicodeDecodeError):
            made = (self._of(path) / _ABSENT).read_text("utf-8")
            return Original(None, Path(made) if made else None)
        return None

    def forget(self, path: Path) -> None:
        """Keep no original of a file any longer."""
        for name in (_ORIGINAL, _ABSENT):
            with suppress(OSError):
                (self._of(path) / name).unlink()

    def _of(self, path: Path) -> Path:
        """One folder for each file, whatever its name."""
        return self._folder / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]

    def _write(self, path: Path, name: str, data: bytes) -> None:
        folder = self._of(path)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_folder(folder) as opened:
                write_file(opened, name, data)
        except OSError as error:
            raise ConfigError(
                f"no copy of {path} can be kept in {folder}: {error.strerror or error}; "
                "name another folder with SAGE_CACHE_DIR"
            ) from error


def remove_empty_folders(folder: Path, first: Path | None) -> None:
    """Remove the folders that were made for a file, as far as they are empty."""
    while first is not None and folder.is_relative_to(first):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
