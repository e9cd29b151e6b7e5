"""What git says of the pages and of the files they are about. Without git it says nothing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from sage.git import ChangedPath, Commit, Repository, find_repository
from sage.paths import KNOWLEDGE_DIR

MONTHS = 12
"""Months that are looked back on."""
# What Python can show as a day; a commit may claim any number.
_LAST_SECOND = 253_402_300_800


class Month(NamedTuple):
    """What became of the pages in a month."""

    month: str
    """2026-11"""
    pages: int
    """How many there were at its end."""
    added: int
    changed: int
    removed: int


@dataclass(frozen=True, slots=True)
class History:
    """The history of the pages, as far as git knows it."""

    last: Mapping[str, Commit] = field(default_factory=dict)
    """The newest commit of each page."""
    months: Sequence[Month] = ()
    """The last twelve, oldest first; none without git."""
    commits: Counter[str] = field(default_factory=Counter)
    """How often each page was committed in these months."""

    def day_of(self, path: str) -> date | None:
        """The day of a page's newest commit."""
        commit = self.last.get(path)
        return day(commit.seconds) if commit else None


def day(seconds: int) -> date | None:
    """The day of a commit; None for a number that is none."""
    return datetime.fromtimestamp(seconds, UTC).date() if seconds < _LAST_SECOND else None


def history_of(root: Path, pages: Sequence[str], today: date) -> History:
    """What git says of these pages and of those that were there before."""
    opened = _opened(root)
    if opened is None:
        return History()
    repository, prefix = opened
    inside = all(path.startswith(f"{KNOWLEDGE_DIR}/") for path in pages)
    folder = f"{prefix}{KNOWLEDGE_DIR}" if inside else prefix.rstrip("/") or "."
    changes = list(_below(repository.changes(folder), prefix))
    known = set(pages) | {one.path for one in changes if _is_page(one.path)}
    return _history([one for one in changes if one.path in known], set(pages), today)


def code_changes(root: Path, pages: Iterable[str]) -> dict[str, Commit]:
    """The newest commit of every other file that changed after the oldest of these pages did."""
    opened = _opened(root)
    if opened is None:
        return {}
    repository, prefix = opened
    waiting = set(pages)
    newest: dict[str, Commit] = {}
    for change in _below(repository.changes(prefix.rstrip("/") or "."), prefix):
        if not waiting:
            break  # everything that follows is older than every page
        waiting.discard(change.path)
        if change.kind != "D":
            newest.setdefault(change.path, change.commit)
    return newest


def _opened(root: Path) -> tuple[Repository, str] | None:
    repository = find_repository(root)
    if repository is None:
        return None
    above = root.relative_to(repository.top).as_posix()
    return repository, "" if above == "." else f"{above}/"


def _below(changes: Iterable[ChangedPath], prefix: str) -> Iterator[ChangedPath]:
    for change in changes:
        if change.path.startswith(prefix):
            yield change._replace(path=change.path.removeprefix(prefix))


def _is_page(path: str) -> bool:
    return path.startswith(f"{KNOWLEDGE_DIR}/") and path.casefold().endswith((".md", ".markdown"))


def _history(changes: Sequence[ChangedPath], pages: set[str], today: date) -> History:
    months = list(_months(today))
    happened: dict[str, Counter[str]] = {month: Counter() for month in months}
    last: dict[str, Commit] = {}
    commits: Counter[str] = Counter()
    later = 0
    for commit, path, kind in changes:
        last.setdefault(path, commit)
        when = day(commit.seconds)
        month = f"{when:%Y-%m}" if when else ""
        if month in happened:
            happened[month][kind] += 1
            commits[path] += path in pages
        elif when and when > today:
            later += (kind == "A") - (kind == "D")
    return History(
        {path: commit for path, commit in last.items() if path in pages},
        _courses(months, happened, len(pages & last.keys()) - later),
        +commits,
    )


def _courses(months: Sequence[str], happened: Mapping[str, Counter[str]], now: int) -> list[Month]:
    """The months with the pages at the end of each, counted back from now."""
    courses = []
    for month in reversed(months):
        kinds = happened[month]
        courses.append(Month(month, max(now, 0), kinds["A"], kinds["M"], kinds["D"]))
        now -= kinds["A"] - kinds["D"]
    return courses[::-1]


def _months(today: date) -> Iterator[str]:
    """The last months, oldest first."""
    last = today.year * 12 + today.month - 1
    for number in range(last - MONTHS + 1, last + 1):
        yield f"{number // 12:04}-{number % 12 + 1:02}"
