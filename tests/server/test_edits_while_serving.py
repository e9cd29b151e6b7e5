"""Edits while eight clients call: no error, no stale answer, no torn text."""

import os
import re
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.processes import PATIENCE_SECONDS, Process, serving, write_base

CLIENTS = 8
EDITS = 12
BODY = "word " * 4_000
STRUCTURED = "structuredContent"
# Eight servers start on what may be two cores: none is to give up early.
PAGE = {"layer": "core", "topic": "page", "timeout_ms": 30_000}


def text_of(edition: int) -> str:
    """A page whose first and last line name the edition: torn text would name two."""
    return f"# Edition {edition}\n\n{BODY}\n\nEnd of edition {edition}.\n"


def save(page: Path, edition: int) -> None:
    """Save as editors do: truncated and written, or written beside and renamed."""
    beside = page.with_suffix(".tmp")
    beside.write_text(text_of(edition))
    if edition % 2:
        # Truncates, then writes. A process of its own: this one, full of threads, may halt between
        # the two for longer than an empty file is doubted.
        subprocess.run(["cp", beside, page], check=True)
    else:
        os.replace(beside, page)


class Reader(threading.Thread):
    """A client that keeps asking for the page and for what the search knows of it."""

    def __init__(self, server: Process, saved: list[int], done: threading.Event) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._saved = saved
        self._done = done
        self.calls = 0
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._done.is_set() and not self.failures:
            self._check("sage_get_knowledge", PAGE, "content")
            self._check("sage_search", {"query": "edition", "layer": "core"}, "results")

    def _check(self, tool: str, arguments: dict[str, Any], field: str) -> None:
        newest = self._saved[-1]
        result = self._server.call(tool, arguments)
        if result.get("isError"):
            self.failures.append(result["content"][0]["text"])
            return
        answer = result[STRUCTURED]
        if answer.get("complete") is False:
            return  # a starved machine: it says so, and has not answered yet
        self.calls += 1
        editions = {int(one) for one in re.findall(r"dition (\d+)", str(answer[field]))}
        if len(editions) != 1 or min(editions) < newest:
            note = answer.get("note")
            self.failures.append(f"{tool}: editions {editions} after {newest} was saved ({note})")


def test_eight_clients_see_every_edit_whole_and_at_once(tmp_path: Path) -> None:
    root = write_base(tmp_path)
    page = root / ".knowledge" / "core" / "page.md"
    save(page, 0)
    saved, done = [0], threading.Event()
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(root)) for _ in range(CLIENTS)]
        for server in servers:
            server.greet()
        readers = [Reader(server, saved, done) for server in servers]
        for reader in readers:
            reader.start()
        for edition in range(1, EDITS + 1):
            wait_for_calls(readers, edition * 3)
            save(page, edition)
            saved.append(edition)
        wait_for_calls(readers, (EDITS + 1) * 3)
        done.set()
        for reader in readers:
            reader.join(PATIENCE_SECONDS)
    assert [failure for reader in readers for failure in reader.failures] == []


def wait_for_calls(readers: list[Reader], least: int) -> None:
    """Let every reader get some calls in between two edits."""
    while any(reader.calls < least and not reader.failures for reader in readers):
        readers[0].join(0.02)
