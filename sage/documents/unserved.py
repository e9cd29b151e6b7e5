"""What lies in the knowledge folder and is not served: by folder and reason, with counts.

Folders that are no layer, a layer's name misspelt, pages of kinds that are not read, and what the
walk of a layer left out although somebody may have meant to share it.
"""

import difflib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from sage.deadline import Deadline
from sage.documents.problems import Problem
from sage.documents.walk import MAX_DEPTH, close_folder, open_below, open_folder
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.sanitize import shown_name

OTHER_PAGES = (".rst", ".adoc", ".asciidoc", ".txt", ".org", ".html", ".htm", ".ipynb", ".pdf",
               ".docx", ".odt", ".tex", ".wiki", ".textile")  # fmt: skip
"""Kinds of pages that people keep beside markdown and that are not read."""
MAX_SEEN = 20_000
_LINKED = frozenset({"link-leaves-root", "broken-link"})


class Unserved(NamedTuple):
    """So many files of a folder that are not served, and why."""

    folder: str
    reason: str
    files: int


def left_out(
    root: Path,
    layers: Sequence[str],
    ignores: Callable[[str], bool],
    problems: Iterable[Problem],
    deadline: Deadline,
) -> list[Unserved]:
    """What is not served, the most files first.

    Args:
        problems: what the walks of the layers left out.
    """
    counts = Counter(_reasons(problems))
    try:
        top = open_folder(root, KNOWLEDGE_DIR)
    except OSError:
        return []
    try:
        counts.update(_outside(top, layers, ignores, deadline))
    except OSError:
        pass  # gone since, or not ours to list: the walks of the layers say so
    finally:
        close_folder(top)
    found = [Unserved(folder, reason, files) for (folder, reason), files in counts.items()]
    return sorted(found, key=lambda one: (-one.files, one))


def _reasons(problems: Iterable[Problem]) -> Iterator[tuple[str, str]]:
    for problem in problems:
        folder = "/".join(problem.path.split("/")[:2])
        suffix = PurePosixPath(problem.path).suffix.lower()
        if problem.rule == "not-markdown" and suffix in OTHER_PAGES:
            yield folder, f"{suffix} pages are not read"
        elif problem.level != "note":
            yield folder, _words(problem)


def _words(problem: Problem) -> str:
    """A reason without what is special to one file."""
    if problem.rule == "too-large":
        return "too large" if "bytes" in problem.message else "not searched to its end"
    if problem.rule in _LINKED:
        return "a link that leads nowhere or outside"
    return problem.rule.replace("-", " ")


def _outside(
    top: int | str, layers: Sequence[str], ignores: Callable[[str], bool], deadline: Deadline
) -> Iterator[tuple[str, str]]:
    served = set(layers)
    with os.scandir(top) as entries:
        names = sorted(entries, key=lambda entry: entry.name)
    for entry in names:
        if entry.name.startswith(".") or entry.name in served or ignores(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            reason = f"not a layer{_meant(entry.name, layers)}"
            folder = f"{KNOWLEDGE_DIR}/{shown_name(entry.name)}"
            yield from ((folder, reason) for _ in _pages(top, entry.name, deadline))
        elif entry.name.lower().endswith(MARKDOWN_SUFFIXES) and entry.is_file(
            follow_symlinks=False
        ):
            yield KNOWLEDGE_DIR, "in no layer's folder"


def _meant(name: str, layers: Sequence[str]) -> str:
    """The layer whose name was misspelt; its folder is then missing."""
    near = difflib.get_close_matches(name.casefold(), layers, n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def _pages(parent: int | str, name: str, deadline: Deadline) -> Iterator[str]:
    """The markdown files below a folder, as far as the limits allow."""
    waiting = [(open_below(parent, name), 0)]
    seen = 0
    try:
        while waiting and seen < MAX_SEEN and not deadline.expired:
            folder, depth = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        seen += 1
                        if entry.name.startswith("."):
                            continue
                        if entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
                            waiting.append((open_below(folder, entry.name), depth + 1))
                        elif entry.name.lower().endswith(MARKDOWN_SUFFIXES):
                            yield entry.name
            except OSError:
                continue
            finally:
                close_folder(folder)
    finally:
        for folder, _ in waiting:
            close_folder(folder)
