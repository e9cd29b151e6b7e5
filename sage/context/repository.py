"""What the repository around the base tells: its language, a file's imports and a file's pages.

Looked at are the names of a bounded number of files and the first bytes of a few; nothing of them
is ever shown, and no link is followed.
"""

import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sage.answers import ScopedPage
from sage.documents.containment import close, open_inside
from sage.documents.languages import is_guest, languages_of_files
from sage.documents.scopes import matching_glob, path_parts
from sage.search.catalog import DocumentEntry
from sage.values import DEFAULT_LANGUAGE

MAX_NAMES = 5_000
"""Names looked at to tell the language; the folders near the root come first."""
MAX_DEPTH = 6
MAX_FILES = 5
"""Files whose first lines are read."""
FIRST_BYTES = 4_096
MAX_IMPORTS = 16
# Folders that hold what others wrote or what was made by a tool.
_OTHERS_CODE = frozenset(
    (
        *("node_modules", "bower_components", "vendor", "third_party", "site-packages", "Pods"),
        *("venv", "env", "dist", "build", "target", "out", "deps", "__pycache__"),
    )
)
_VERSION_CONTROL = frozenset((".git", ".hg", ".svn", ".jj"))
_IMPORT = re.compile(
    r"""^[ \t]{0,12}(?:
        (?:from|import|use|using|require|require_relative|\#include|include|mod)\b[ \t(]{0,8}["'<]?
            (?:static[ \t])?([\w@][\w.@/:-]{0,120})
        | (?:import|export|const|let|var|\})[^\n'"]{0,200}?(?:from|require\()[ \t]{0,4}["']
            ([\w@.][\w@./-]{0,120})
        | (?:[\w.]{1,40}[ \t])?"([\w.-]+/[\w./-]{1,120})"[ \t]*$
    )""",
    re.MULTILINE | re.VERBOSE,
)
_PART = re.compile(r"[^\W\d_][\w-]{2,40}")
_OWNERS = frozenset(("com", "org", "net", "io", "dev", "github", "golang", "google", "www"))
# So many files import these that they say nothing about one.
_SAYS_NOTHING = frozenset(
    (
        *(
            "typing",
            "collections",
            "dataclasses",
            "functools",
            "itertools",
            "pathlib",
            "contextlib",
        ),
        *("sys", "time", "json", "datetime", "java", "javax", "kotlin", "std", "core", "alloc"),
        *("crate", "self", "super", "system", "fmt", "errors", "strings", "react", "node", "type"),
        *("src", "lib", "app", "utils", "util", "common", "index", "main", "const", "static"),
    )
)


def repository_language(root: Path) -> str:
    """The language that most source files of a repository are in; Python when there are none."""
    counts: Counter[str] = Counter()
    for name in _names(root):
        counts.update(one for one in languages_of_files((name,)) if not is_guest(one))
    # Of two that are equally frequent the first in the alphabet, so that the answer is one.
    return min(counts, key=lambda one: (-counts[one], one), default=DEFAULT_LANGUAGE)


def repository_files(root: Path, most: int) -> list[str] | None:
    """The paths of a repository's files below its root; None when there are more than so many."""
    paths: list[str] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        with suppress(OSError), os.scandir(root / folder) as listed:
            for one in listed:
                if one.is_dir(follow_symlinks=False):
                    if one.name not in _OTHERS_CODE and one.name not in _VERSION_CONTROL:
                        folders.append(f"{folder}{one.name}/")
                elif len(paths) == most:
                    return None
                else:
                    paths.append(folder + one.name)
    return paths


def imports_of(root: Path, files: Sequence[str]) -> tuple[str, ...]:
    """The names that the first lines of source files import, each once."""
    found: dict[str, None] = {}
    for name in files[:MAX_FILES]:
        for match in _IMPORT.finditer(_first_text(root, name)):
            module = next(filter(None, match.groups()))
            for part in _telling_parts(module):
                if part not in _SAYS_NOTHING and not (root / part).exists():
                    found.setdefault(part)
    return tuple(found)[:MAX_IMPORTS]


def _telling_parts(module: str) -> list[str]:
    """The parts of a module's name that name a library; none for a file of the same project."""
    if module.startswith("."):
        return []
    parts = [part.casefold() for part in _PART.findall(module)]
    named = [part for part in parts if part not in _OWNERS]
    return named[-2:] if "/" in module else named[:1]


def below_root(root: Path, name: str) -> str:
    """A file as it is called below the root; one outside keeps its name."""
    path = name.replace("\\", "/")
    top = root.as_posix().rstrip("/") + "/"
    return path.removeprefix(top) if path.startswith(top) else path


def _names(root: Path) -> Iterator[str]:
    """Names of files, those near the root first."""
    folders = deque([(root, 0)])
    left = MAX_NAMES
    while folders and left > 0:
        folder, depth = folders.popleft()
        with suppress(OSError), os.scandir(folder) as listed:
            for one in listed:
                left -= 1
                if left <= 0:
                    return
                if one.name.startswith(".") or one.is_symlink():
                    continue
                if one.is_dir(follow_symlinks=False):
                    if depth < MAX_DEPTH and one.name not in _OTHERS_CODE:
                        folders.append((Path(one.path), depth + 1))
                else:
                    yield one.name


def _first_text(root: Path, name: str) -> str:
    """The first bytes of a source file below the root; empty for everything else."""
    parts = path_parts(below_root(root, name))
    if not parts or any(part.startswith(".") for part in parts) or not languages_of_files(parts):
        return ""
    try:
        descriptor = open_inside(root, "/".join(parts))
    except (OSError, ValueError):
        return ""
    try:
        return os.read(descriptor, FIRST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        close(descriptor)


def pages_of_file(entries: Iterable[DocumentEntry], name: str) -> list[ScopedPage]:
    """The pages whose front matter holds a file, by topic; those not in force say so."""
    pages: list[ScopedPage] = []
    for entry in entries:
        glob = matching_glob(entry.applies_to, name) if entry.applies_to else ""
        if glob:
            page = ScopedPage(topic=entry.topic, title=entry.title, glob=glob)
            if entry.status != "published" or entry.superseded_by:
                page["status"] = "superseded" if entry.superseded_by else entry.status
            pages.append(page)
    return sorted(pages, key=lambda page: page["topic"])
