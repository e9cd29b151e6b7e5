"""Globs in front matter that hold no file: a page that nobody will be given for its files."""

from collections.abc import Iterator

from sage.check.pages import Base
from sage.check.rules import DEAD_SCOPE
from sage.check.structure import key_line
from sage.context.repository import repository_files
from sage.documents.front_matter import SCOPE_KEYS
from sage.documents.problems import Problem
from sage.documents.scopes import MAX_GLOBS, matching_glob

MAX_FILES = 20_000
"""In a larger repository a glob that seems to hold nothing is not reported."""


def check_scopes(base: Base) -> Iterator[Problem]:
    """Globs that match no file of the repository."""
    scoped = [page for page in base.pages if page.document.meta.applies_to]
    files = repository_files(base.settings.root, MAX_FILES) if scoped else None
    if files is None:
        return
    known: dict[str, bool] = {}
    for page in scoped:
        for glob in page.document.meta.applies_to[:MAX_GLOBS]:
            if glob not in known:
                known[glob] = any(matching_glob((glob,), path) for path in files)
            if not known[glob]:
                line = max(key_line(page, key) for key in SCOPE_KEYS)
                yield DEAD_SCOPE.problem(page.path, f"no file matches {glob!r}", line)
