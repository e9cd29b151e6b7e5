"""The rule about pages that nobody has touched for long: `last_updated`, else git's date.

Git is asked once for all pages; the server never runs it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from sage.check.pages import Base, CheckedPage
from sage.check.rules import STALE
from sage.documents.problems import Problem
from sage.errors import counted
from sage.git import find_repository
from sage.paths import KNOWLEDGE_DIR

# What Python can show as a day; a commit may claim any number.
_LAST_SECOND = 253_402_300_800


def check_age(base: Base, months: int, today: date) -> Iterator[Problem]:
    """Pages older than a number of months."""
    undated = [page for page in base.pages if not page.document.meta.last_updated]
    committed = commit_dates(base.settings.root, [page.path for page in undated])
    for page in base.pages:
        said = page.document.meta.last_updated
        changed = date.fromisoformat(said) if said else committed.get(page.path)
        if changed is not None and _age_months(changed, today) >= months:
            source = "last_updated" if said else "the last commit"
            message = f"{source} is from {changed}, more than {counted(months, 'month')} ago"
            yield STALE.problem(page.path, message, _line(page) if said else 1)


def commit_dates(root: Path, paths: Iterable[str]) -> Mapping[str, date]:
    """The day of the last commit of each path below a root, as far as git knows it."""
    repository = find_repository(root)
    if repository is None:
        return {}
    above = root.relative_to(repository.top).as_posix()
    prefix = "" if above == "." else f"{above}/"
    wanted = [prefix + path for path in paths]
    inside = all(path.startswith(f"{prefix}{KNOWLEDGE_DIR}/") for path in wanted)
    folder = f"{prefix}{KNOWLEDGE_DIR}" if inside else prefix.rstrip("/") or "."
    found = repository.last_commits(folder, wanted)
    return {
        path.removeprefix(prefix): datetime.fromtimestamp(commit.seconds, UTC).date()
        for path, commit in found.items()
        if commit.seconds < _LAST_SECOND
    }


def _age_months(changed: date, today: date) -> int:
    """Whole months between two days."""
    months = (today.year - changed.year) * 12 + today.month - changed.month
    return months - (today.day < changed.day)


def _line(page: CheckedPage) -> int:
    for number, line in enumerate(page.text.splitlines()[:200], 1):
        if line.lstrip("\"'").startswith("last_updated"):
            return number
    return 1
