"""What the usage log of a team's server says: what was read, asked, found and not found."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

SEARCH = "sage_search"
MAX_DAYS = 60
"""The last days of which the calls are counted one by one."""


@dataclass(frozen=True, slots=True)
class PageUse:
    """How often a page was read, and how often a search showed it."""

    path: str
    read: int
    shown: int


class Question(NamedTuple):
    """What was searched for."""

    query: str
    asked: int
    found: int
    """Of these, how often something was found."""


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """What a usage log says."""

    since: str
    calls: Mapping[str, int]
    days: Sequence[tuple[str, int]]
    """Calls on each of the last days on which there were any, oldest first."""
    most_used: Sequence[PageUse]
    questions: Sequence[Question]
    """The most frequent queries; empty unless their text was noted."""
    empty_searches: int
    empty_queries: Sequence[tuple[str, int]]
    """The most frequent queries that found nothing; empty unless their text was noted."""
    never_read: Sequence[str]


def older_log(path: Path) -> Path:
    """Where a log goes that has become too long."""
    return path.with_name(path.name + ".1")


def read_usage(path: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of a usage log, oldest first; a damaged line is left out."""
    for part in (older_log(path), path):
        if not part.is_file():
            continue
        with part.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    noted = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(noted, dict):
                    yield noted


def summarise(lines: Iterable[Mapping[str, Any]], paths: Sequence[str], top: int) -> UsageSummary:
    """What was used most, what was searched for and not found, and what nobody read.

    Args:
        paths: every page there is now.
    """
    calls: Counter[str] = Counter()
    days: Counter[str] = Counter()
    read: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    empty: Counter[str] = Counter()
    since = ""
    for line in lines:
        time, tool = str(line.get("time", "")), str(line.get("tool", ""))
        since = since or time
        calls[tool] += 1
        days[time[:10]] += 1
        (shown if tool == SEARCH else read).update(_texts(line.get("pages")))
        if tool == SEARCH:
            query = str(line.get("query", ""))
            asked[query] += 1
            empty[query] += line.get("found") == 0
    known = set(paths)
    used = sorted(
        known & (read.keys() | shown.keys()), key=lambda path: (-read[path], -shown[path], path)
    )
    return UsageSummary(
        since=since,
        calls=dict(calls),
        days=sorted(days.items())[-MAX_DAYS:],
        most_used=[PageUse(path, read[path], shown[path]) for path in used[:top]],
        questions=[
            Question(query, count, count - empty[query])
            for query, count in asked.most_common()
            if query
        ][:top],
        empty_searches=empty.total(),
        empty_queries=[(query, n) for query, n in (+empty).most_common() if query][:top],
        never_read=[path for path in paths if not read[path]],
    )


def _texts(value: object) -> list[str]:
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []
