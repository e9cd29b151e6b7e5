"""Calls and edits at the same time, for a few seconds on each transport; `make soak` goes on."""

import asyncio
from pathlib import Path

from benchmarks.soak import Report, soak, soak_stdio
from benchmarks.soak_lines import http_lines
from benchmarks.soak_report import Sample, write_report
from tests.httpkit import Client, Process, wait_until_ready, write_base

TOOLS = {"sage_get_knowledge", "sage_search", "sage_get_context", "sage_info"}


def test_answers_are_whole_and_fresh_while_pages_change(tmp_path: Path) -> None:
    root = write_base(tmp_path / "repo")

    async def scenario(process: Process) -> Report:
        async with http_lines(process.port, 4) as lines:
            return await soak(lines, process.popen.pid, root, seconds=4)

    with Process(root) as process:
        wait_until_ready(Client(process.port))
        report = asyncio.run(scenario(process))
    assert report.faults == []
    assert report.edits >= 3
    assert set(report.calls) == TOOLS


def test_answers_over_stdio_are_as_whole_and_fresh(tmp_path: Path) -> None:
    root = write_base(tmp_path / "repo")
    report = asyncio.run(soak_stdio(root, tmp_path / "cache", seconds=4, clients=4))
    assert report.faults == []
    assert report.edits >= 3
    assert set(report.calls) == TOOLS


def held(number: int, megabytes: float = 100.0, files: int = 9) -> Sample:
    return Sample(number * 6.0, megabytes, files, threads=5, calls=10, median_ms=2.0, p99_ms=9.0)


def test_a_process_that_holds_ever_more_does_not_keep_the_bars() -> None:
    assert Report(samples=[held(number) for number in range(100)]).keeps_the_bars
    assert not Report(samples=[held(n, megabytes=100 + n / 10) for n in range(100)]).keeps_the_bars
    assert not Report(samples=[held(n, files=9 + n // 50) for n in range(100)]).keeps_the_bars
    assert Report(samples=[held(n, files=9 + (n % 7 != 0)) for n in range(100)]).keeps_the_bars
    assert not Report(faults=["sage_search: stale"]).keeps_the_bars


def test_the_report_is_a_table_and_a_picture(tmp_path: Path) -> None:
    samples = [held(number) for number in range(1, 101)]
    page = write_report(tmp_path / "build", "A minute", "No fault.", samples).read_text("utf-8")
    assert page.count("\n| ") == 11
    assert "| 10.0 | 100 | 100 | 9 | 5 | 2 | 9 |" in page
    picture = (tmp_path / "build" / "soak.svg").read_text("utf-8")
    assert picture.startswith("<svg ")
    assert picture.count("<polyline ") == 5
