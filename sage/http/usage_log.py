"""What people and agents read and search for, noted in a local file when an operator asks for it.

No line says who asked. The text of a query is noted only when that is asked for as well. What the
file says is `care.usage`'s to tell.
"""

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sage.access.token_file import moment
from sage.care.usage import SEARCH, older_log
from sage.http.metrics import OK, RESOURCE, Observation
from sage.sanitize import commented_paths, heading_sources

logger = logging.getLogger("sage.usage")

CONTEXT = "sage_get_context"
READ = "sage_get_knowledge"
MAX_BYTES = 50 * 1024 * 1024
MAX_PENDING = 1_000
MAX_QUERY = 200


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
        # What people search for is nobody else's to read, whatever the umask says.
        with open(self.path, "a", encoding="utf-8", opener=_open_private) as file:
            file.write(line)
            full = file.tell() > self._max_bytes
        if full:
            self.path.replace(older_log(self.path))


def _line(seen: Observation, with_queries: bool) -> dict[str, Any] | None:
    if seen.outcome != OK or seen.answer is None:
        return None
    answer = seen.answer
    if seen.tool == SEARCH:
        line = {"tool": SEARCH, "pages": _paths(answer["results"]), "found": answer["total"]}
        query = str(seen.arguments.get("query", ""))[:MAX_QUERY]
        return line | {"query": query} if with_queries else line
    if seen.tool == CONTEXT:
        found = (path for _, path in heading_sources(answer["context"]))
        return {"tool": CONTEXT, "pages": list(dict.fromkeys(found))}
    if seen.tool in (READ, RESOURCE):
        return {"tool": seen.tool, "pages": commented_paths(answer["content"])}
    return None


def _paths(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(part["path"] for part in parts))


def _open_private(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    if os.name == "posix" and os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, 0o600)  # one that an earlier version made
    return descriptor
