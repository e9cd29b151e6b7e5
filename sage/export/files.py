"""The files of an export as they are and as they should be: compared, and written.

Only our block and files that carry our mark are changed; whatever else has a name of ours is left
alone and reported. Nothing is read or written through a link.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sage.atomic import read_bytes, remove_empty_folder, replace_bytes
from sage.check.pages import Base
from sage.check.rules import EXPORT_DRIFT
from sage.documents.document import Document
from sage.documents.exported import Damaged, find_block, is_exported, whole_mark
from sage.documents.problems import Problem
from sage.documents.walk import close_folder, open_folder
from sage.errors import ConfigError, InvalidInput
from sage.export.hosts import HOST_NAMES, RULES_OF, SKILL_FOLDERS, ExportHost, find_host
from sage.export.selection import ExportSelection, chosen, recorded
from sage.export.texts import WantedFile, overview, rules, skills
from sage.token_counter import TokenCounter

MAX_SHARED = 4 * 1024 * 1024
"""A file that people edit is not larger; one that is, is left alone."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is not as it should be; None stands for no file."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def action(self) -> str:
        """What is done with it."""
        if self.after is None:
            return "removed"
        return "written" if self.before is None else "updated"


@dataclass(frozen=True, slots=True)
class Export:
    """One export: to which host, and which files it needs."""

    host: str
    selection: ExportSelection
    paths: tuple[str, ...]
    changes: tuple[FileChange, ...]


class Exporter:
    """Plans and writes the exports of a repository."""

    def __init__(
        self,
        root: Path,
        layers: Sequence[str],
        documents: Sequence[Document],
        counter: TokenCounter,
    ) -> None:
        self._root, self._layers, self._counter = root, tuple(layers), counter
        self._documents = documents

    def found(self) -> list[str]:
        """The hosts that something is exported to already."""
        return [name for name in HOST_NAMES if self._mark(name) is not None]

    def recorded(self, name: str) -> ExportSelection | None:
        """What was chosen for a host before; None when nothing is exported to it.

        Raises:
            InvalidInput: what its mark says cannot be chosen now.
        """
        mark = self._mark(name)
        try:
            return None if mark is None else recorded(mark, self._layers)
        except InvalidInput as error:
            raise InvalidInput(
                f"what was exported to {name} cannot be made again: {error}; choose anew"
            ) from error

    def plan(self, name: str, selection: ExportSelection, folder: str = "") -> Export:
        """What an export would change.

        Args:
            folder: of skills; the one they are in, or the first that is known.

        Raises:
            InvalidInput: there is no such host.
            ConfigError: a file is not ours, its marks are damaged, or it cannot be read.
        """
        host = find_host(name)
        pages = chosen(self._documents, selection, self._layers)
        wanted = list(self._wanted(host, pages, selection, folder or self._skill_folder()))
        changes = [change for one in wanted for change in self._changed(one)]
        paths = tuple(one.path for one in wanted)
        kept = {*paths, host.main if host else ""}
        gone = [path for path in self._ours(host) if path not in kept]
        changes += [FileChange(path, self._read(path), None) for path in gone]
        return Export(name, selection, paths, tuple(changes))

    def write(self, export: Export) -> None:
        """Make the files what they should be.

        Raises:
            ConfigError: one cannot be written, or was changed meanwhile.
        """
        for change in export.changes:
            path = self._root / change.path
            replace_bytes(path, change.before, change.after, self._root)
            if change.after is None and path.name == "SKILL.md":
                remove_empty_folder(path.parent, self._root)

    def drift(self) -> Iterator[Problem]:
        """What is exported and no longer what the pages say."""
        for name in HOST_NAMES:
            try:
                selection = self.recorded(name)
                changes = self.plan(name, selection).changes if selection else ()
            except (ConfigError, InvalidInput) as error:
                yield EXPORT_DRIFT.problem(self._place(name), str(error))
                continue
            for change in changes:
                message = f"no longer what the pages say; run: sage export {name}"
                yield EXPORT_DRIFT.problem(change.path, message)

    def _wanted(
        self,
        host: ExportHost | None,
        pages: Sequence[Document],
        selection: ExportSelection,
        folder: str,
    ) -> Iterator[WantedFile]:
        if host is None:
            yield from skills(pages, folder, selection, self._counter, self._layers)
        else:
            yield overview(pages, host, selection, self._counter)
            yield from rules(pages, host, selection, self._counter)

    def _changed(self, wanted: WantedFile) -> Iterator[FileChange]:
        before = self._read(wanted.path)
        if wanted.is_block:
            after = _with_block(before, wanted)
        elif before is not None and not is_exported(before):
            raise ConfigError(
                f"{wanted.path} is in the way: sage export did not write it; move it elsewhere"
            )
        else:
            after = wanted.text.encode()
        if after != before:
            yield FileChange(wanted.path, before, after)

    def _mark(self, name: str) -> bytes | None:
        """The mark of what is exported to a host; None when nothing is."""
        host = find_host(name)
        if host is None:
            marks = (whole_mark(self._read(path) or b"") for path in self._ours(None))
            return next((mark for mark in marks if mark), None)
        data = self._read_or_none(host.main)
        if not host.shares_main:
            return whole_mark(data) or None if data else None
        try:
            block = find_block(data or b"")
        except Damaged:
            return b""
        return block.mark if block else None

    def _skill_folder(self) -> str:
        there = next(self._ours(None), f"{SKILL_FOLDERS[0]}//")
        return there.rsplit("/", 2)[0]

    def _ours(self, host: ExportHost | None) -> Iterator[str]:
        """The files of our own that are there."""
        if host is not None:
            names = self._names(host.folder) if host.folder else []
            there = [f"{host.folder}/{name}" for name in names if name.endswith(host.suffix)]
        else:
            there = [
                f"{folder}/{name}/SKILL.md"
                for folder in SKILL_FOLDERS
                for name in self._names(folder)
                if name.startswith(f"{RULES_OF}-")
            ]
        for path in there:
            data = self._read_or_none(path)
            if data is not None and is_exported(data):
                yield path

    def _names(self, folder: str) -> list[str]:
        try:
            opened = open_folder(self._root, folder)
        except OSError:
            return []
        try:
            with os.scandir(opened) as entries:
                return sorted(entry.name for entry in entries)
        except OSError:
            return []
        finally:
            close_folder(opened)

    def _read(self, path: str) -> bytes | None:
        return read_bytes(self._root / path, self._root)

    def _read_or_none(self, path: str) -> bytes | None:
        """What a file holds; None also when it cannot be looked at."""
        try:
            return self._read(path)
        except ConfigError:
            return None

    @staticmethod
    def _place(name: str) -> str:
        host = find_host(name)
        return host.main if host else SKILL_FOLDERS[0]


def exports_of(base: Base, counter: TokenCounter) -> Iterator[Problem]:
    """What a checked base has exported and no longer says."""
    pages = [page.document for page in base.pages]
    settings = base.settings
    return Exporter(settings.root, settings.repository_layers, pages, counter).drift()


def known_host(names: Iterable[str]) -> list[str]:
    """The names, each once.

    Raises:
        InvalidInput: one of them is no host.
    """
    asked = list(dict.fromkeys(names))
    for name in asked:
        find_host(name)
    return asked


def _with_block(before: bytes | None, wanted: WantedFile) -> bytes:
    """The bytes of a file with our block as it should be, and every other byte as it is."""
    data = before or b""
    if len(data) > MAX_SHARED or b"\0" in data or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(f"{wanted.path} is too large, or not UTF-8 text; it stays as it is")
    try:
        block = find_block(data)
    except Damaged as error:
        raise ConfigError(
            f"{wanted.path}: the marks of the export are damaged: {error}; remove them, then "
            "export again"
        ) from error
    newline = _newline(data, block.start if block else 0)
    ours = wanted.text.replace("\n", newline.decode()).encode()
    if block:
        return data[: block.start] + ours + data[block.end :]
    return data + _gap(data, newline) + ours + newline


def _newline(data: bytes, at: int) -> bytes:
    """How lines end where the block begins, or in the file's first line."""
    end = data.find(b"\n", at)
    end = end if end >= 0 else data.find(b"\n")
    return b"\r\n" if end > 0 and data[end - 1 : end] == b"\r" else b"\n"


def _gap(data: bytes, newline: bytes) -> bytes:
    """What parts the block from the text above it: one blank line."""
    bare = data.removeprefix(b"\xef\xbb\xbf")
    if not bare:
        return b""
    if not bare.endswith(b"\n"):
        return newline * 2
    lines = bare.replace(b"\r\n", b"\n")
    return b"" if lines.endswith(b"\n\n") or lines == b"\n" else newline
