"""The rule about pages that nobody has touched for long: `last_updated`, else git's date.

Git is asked once for all pages, and only here; the server never runs it.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from sage.pages import Base, Page
from sage.places import KNOWLEDGE_DIR
from sage.problems import Problem
from sage.rules import FRONT_MATTER, STALE

_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ].*)?")
_TIMEOUT_SECONDS = 20
# A repository's own configuration must not make `git log` run a program of its choice.
_GIT = ("git", "-c", "log.showSignature=false", "-c", "core.fsmonitor=false", "--no-pager")


def check_age(base: Base, months: int, today: date) -> Iterator[Problem]:
    """Pages older than a number of months."""
    undated = [page for page in base.pages if not page.document.meta.last_updated]
    committed = commit_dates(base.settings.root) if undated else {}
    for page in base.pages:
        said = page.document.meta.last_updated
        changed = _parsed(said) if said else committed.get(page.path)
        if said and changed is None:
            message = f"front matter: last_updated: expected a date such as {today}, found {said!r}"
            yield FRONT_MATTER.problem(page.path, message, _line(page))
        elif changed is not None and _age_months(changed, today) >= months:
            source = "last_updated" if said else "the last commit"
            message = f"{source} is of {changed}, more than {months} months ago"
            yield STALE.problem(page.path, message, _line(page) if said else 1)


def commit_dates(root: Path) -> Mapping[str, date]:
    """The day of the last commit of every page; empty without git or a repository."""
    command = [*_GIT, "log", "--format=%x00%cs", "--name-only", "--relative", "-z", "--no-renames"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        answer = subprocess.run(  # noqa: S603 - fixed words; git is found as the user's shell does
            [*command, "--", KNOWLEDGE_DIR],
            cwd=root,
            env=environment,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return _last_days(answer.stdout.decode("utf-8", "replace")) if not answer.returncode else {}


def _last_days(log: str) -> dict[str, date]:
    """The first day at which each path stands in a log that begins with the newest commit."""
    days: dict[str, date] = {}
    day: date | None = None
    for part in log.split("\0"):
        name = part.strip("\n")
        if (changed := _parsed(name)) is not None and "/" not in name:
            day = changed
        elif name and day is not None:
            days.setdefault(name, day)
    return days


def _parsed(text: str) -> date | None:
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    try:
        return date(*map(int, match.groups()))
    except ValueError:
        return None


def _age_months(changed: date, today: date) -> int:
    """Whole months between two days."""
    months = (today.year - changed.year) * 12 + today.month - changed.month
    return months - (today.day < changed.day)


def _line(page: Page) -> int:
    for number, line in enumerate(page.text.splitlines()[:200], 1):
        if line.lstrip("\"'").startswith("last_updated"):
            return number
    return 1
