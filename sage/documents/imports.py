"""What a CLAUDE.md imports: pages that its writers put elsewhere and that belong to it.

An import is `@path` in the text, not in code. It is read when it is markdown within the source and
of no other layer; so are the imports of an imported page, a few steps far.
"""

import posixpath
import re
from collections.abc import Callable, Iterable

from sage.documents.files import SourceFile, Stamp
from sage.documents.problems import Problem
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.sources import HOST_FOLDERS

IMPORTING = frozenset({"CLAUDE.md", "CLAUDE.local.md"})
MAX_STEPS = 5
"""As many as Claude Code follows."""
MAX_IMPORTS = 64
_MAX_KEPT = 1_000
_IMPORT = re.compile(r"(?<![\w@`/.-])@((?:~|\.{1,2})?[\w./-]{1,200}[\w-])")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_SPAN = re.compile(r"`[^`\r\n]{0,300}`")


Look = Callable[[str], Stamp | None]
Read = Callable[[str], str]
"""The text of a file; empty when it cannot be had."""


def imports_in(text: str) -> list[str]:
    """The paths that a text imports, as they are written there."""
    found: list[str] = []
    in_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and "@" in line:
            found += _IMPORT.findall(_SPAN.sub(" ", line))
    return list(dict.fromkeys(found))[:MAX_IMPORTS]


def importing(files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    """The files whose imports are read."""
    return tuple(one for one in files if one.path.rpartition("/")[2] in IMPORTING)


class Imports:
    """Finds the imported pages of the files of a layer; what a page says is read once."""

    def __init__(self, look: Look, read: Read, is_taken: Callable[[str], bool]) -> None:
        """Args:
        look: the stamp of a file within the source; None when it may not be served.
        is_taken: whether a path is served or left out anyway.
        """
        self._look = look
        self._read = read
        self._is_taken = is_taken
        self._known: dict[str, tuple[Stamp, list[str]]] = {}
        self._layers: dict[str, str] = {}
        """The layer that an imported page is served in: the first that imports it."""

    def of(self, files: Iterable[SourceFile], layer: str) -> tuple[list[SourceFile], list[Problem]]:
        """The pages that some files import, and what could not be."""
        self._layers = {path: one for path, one in self._layers.items() if one != layer}
        found: dict[str, SourceFile] = {}
        problems: list[Problem] = []
        waiting = [(one, 0) for one in importing(files)]
        while waiting and len(found) < MAX_IMPORTS:
            page, steps = waiting.pop(0)
            for target in self._targets(page) if steps < MAX_STEPS else ():
                path = _resolved(page.path, target)
                if path and (path in self._layers or self._is_taken(path)):
                    continue
                stamp = self._look(path) if path else None
                if stamp is not None:
                    topic = f"{layer}/{path.rpartition('.')[0]}"
                    found[path] = SourceFile(path, layer, stamp, topic)
                    self._layers[path] = layer
                    waiting.append((found[path], steps + 1))
                elif target.lower().endswith(MARKDOWN_SUFFIXES):
                    problems.append(_not_read(page, target))
        return list(found.values()), problems

    def _targets(self, page: SourceFile) -> list[str]:
        known = self._known.get(page.path)
        if known is None or known[0] != page.stamp:
            if len(self._known) >= _MAX_KEPT:
                self._known.clear()
            known = self._known[page.path] = (page.stamp, imports_in(self._read(page.path)))
        return known[1]


def _resolved(page: str, target: str) -> str:
    """Where an import leads below the root; empty when that is no markdown within it."""
    if target.startswith(("/", "~")) or not target.lower().endswith(MARKDOWN_SUFFIXES):
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    return "" if path.startswith("../") or _is_hidden(path) else path


def _is_hidden(path: str) -> bool:
    allowed = (KNOWLEDGE_DIR, *HOST_FOLDERS)
    return any(part.startswith(".") and part not in allowed for part in path.split("/"))


def _not_read(page: SourceFile, target: str) -> Problem:
    message = f"@{target} is not read: it is not there, or not within the repository"
    return Problem(page.path, "dead-import", message)
