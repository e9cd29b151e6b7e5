"""What people and agents read and search for, noted in a local file when an operator asks for it.

No line says who asked. The text of a query is noted only when that is asked for as well.
"""

import json
import logging
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sage.access import moment
from sage.observing import OK, RESOURCE, Observation

logger = logging.getLogger("sage.usage")

SEARCH = "sage_search"
CONTEXT = "sage_get_context"
READ = "sage_get_knowledge"
MAX_BYTES = 50 * 1024 * 1024
MAX_PENDING = 1_000
MAX_QUERY = 200

# The line that stands above each document in content: see `reading`.
_MARK = re.compile(r"^<!-- (\S.*?)(?::\d+-\d+)? -->$", re.MULTILINE)


class UsageLog:
    """A file that grows by a line for each call; the writing never holds up a call."""

    def __init__(
        self,
        path: Path,
        with_queries: bool = False,
        now: Callable[[], float] = time.time,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.path = path
        self._with_queries = with_queries
        self._now = now
        self._max_bytes = max_bytes
        self._pending: queue.Queue[str | None] = queue.Queue(MAX_PENDING)
        self._writer = threading.Thread(target=self._write, name="sage-usage", daemon=True)
        self._writer.start()

    def note(self, seen: Observation) -> None:
        """Note a call that was answered."""
        line = _line(seen, self._with_queries)
        if line is None:
            return
        try:
            self._pending.put_nowait(json.dumps({"time": moment(self._now()), **line}) + "\n")
        except queue.Full:
            logger.warning("the usage log cannot keep up; a line is left out")

    def close(self, timeout_seconds: float = 1.0) -> None:
        """Write what is pending, within a time."""
        try:
            self._pending.put(None, timeout=timeout_seconds)
        except queue.Full:
            return
        self._writer.join(timeout_seconds)

    def _write(self) -> None:
        while (line := self._pending.get()) is not None:
            try:
                self._append(line)
            except OSError as error:
                logger.warning("the usage log cannot be written: %s", error.strerror)

    def _append(self, line: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            full = file.tell() > self._max_bytes
        if full:
            self.path.replace(_older(self.path))


@dataclass(frozen=True, slots=True)
class PageUse:
    """How often a page was read, and how often a search showed it."""

    path: str
    read: int
    shown: int


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """What a usage log says."""

    since: str
    calls: Mapping[str, int]
    most_used: Sequence[PageUse]
    empty_searches: int
    empty_queries: Sequence[tuple[str, int]]
    """The most frequent queries that found nothing; empty unless their text was noted."""
    never_read: Sequence[str]


def read_usage(path: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of a usage log, oldest first; a damaged line is left out."""
    for part in (_older(path), path):
        if not part.is_file():
            continue
        with part.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    noted = json.loads(line)
                except ValueError:
                    continue
                if isinstance(noted, dict):
                    yield noted


def summarise(lines: Iterable[Mapping[str, Any]], paths: Sequence[str], top: int) -> UsageSummary:
    """What was used most, what was looked for in vain, and what nobody read.

    Args:
        paths: every page there is now.
    """
    calls: Counter[str] = Counter()
    read: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    empty: Counter[str] = Counter()
    since = ""
    for line in lines:
        since = since or str(line.get("time", ""))
        tool = str(line.get("tool", ""))
        calls[tool] += 1
        (shown if tool == SEARCH else read).update(_texts(line.get("pages")))
        if tool == SEARCH and line.get("found") == 0:
            empty[str(line.get("query", ""))] += 1
    known = set(paths)
    used = sorted(
        known & (read.keys() | shown.keys()), key=lambda path: (-read[path], -shown[path], path)
    )
    queries = [(query, count) for query, count in empty.most_common() if query]
    return UsageSummary(
        since=since,
        calls=dict(calls),
        most_used=[PageUse(path, read[path], shown[path]) for path in used[:top]],
        empty_searches=empty.total(),
        empty_queries=queries[:top],
        never_read=[path for path in paths if not read[path]],
    )


def _line(seen: Observation, with_queries: bool) -> dict[str, Any] | None:
    if seen.outcome != OK or seen.answer is None:
        return None
    answer = seen.answer
    if seen.tool == SEARCH:
        line = {"tool": SEARCH, "pages": _paths(answer["results"]), "found": answer["total"]}
        query = str(seen.arguments.get("query", ""))[:MAX_QUERY]
        return line | {"query": query} if with_queries else line
    if seen.tool == CONTEXT:
        return {"tool": CONTEXT, "pages": _paths(answer["sources"])}
    if seen.tool in (READ, RESOURCE):
        return {"tool": seen.tool, "pages": list(dict.fromkeys(_MARK.findall(answer["content"])))}
    return None


def _paths(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(part["path"] for part in parts))


def _texts(value: object) -> list[str]:
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []


def _older(path: Path) -> Path:
    return path.with_name(path.name + ".1")
