"""Calls and edits at the same time, for a few seconds; `python -m benchmarks.soak` goes on."""

import asyncio
from pathlib import Path

from benchmarks.soak import soak
from tests.httpkit import Client, Process, wait_until_ready, write_base


def test_answers_are_whole_and_fresh_while_pages_change(tmp_path: Path) -> None:
    root = write_base(tmp_path / "repo")
    with Process(root) as process:
        wait_until_ready(Client(process.port))
        report = asyncio.run(soak(process.port, process.popen.pid, root, seconds=4, clients=4))
    assert report.faults == []
    assert report.edits >= 3
    assert set(report.calls) == {
        "sage_get_knowledge", "sage_search", "sage_get_context", "sage_info",
    }  # fmt: skip
