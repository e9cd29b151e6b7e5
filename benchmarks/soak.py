"""A server for a while: mixed calls from several clients, and an edit every second.

Every answer is checked: no error, nothing older than what was written before the call began,
never two versions of one page in one answer. Memory, open files and threads are watched.
"""

import argparse
import asyncio
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.http_load import ROOT, Call, free_port, running, serve_command
from benchmarks.soak_lines import Line, http_lines, stdio_line
from benchmarks.soak_report import Sample, tenths, write_report

PAGE = "practices/changing"
# On a busy machine the first call after the start may take longer than the two seconds after
# which it would be answered in part.
PATIENT = {"timeout_ms": 30_000}
CALLS: tuple[Call, ...] = (
    ("sage_get_knowledge", {"layer": "practices", "topic": "changing", **PATIENT}),
    ("sage_get_knowledge", {"layer": "all", **PATIENT}),
    ("sage_search", {"query": "the changing version"}),
    ("sage_get_context", {"task_type": "coding", "task": "the changing version"}),
    ("sage_info", {}),
)
GROWTH_BAR = 0.05
PAUSE_SECONDS = 0.05
"""Between two calls of one client: it is time that wears a server out here, not load."""
_VERSION = re.compile(r"version v(\d+)x")


@dataclass
class Report:
    """What was seen."""

    calls: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    edits: int = 0
    samples: list[Sample] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Of the calls since the last sample."""

    @property
    def settled(self) -> list[Sequence[Sample]]:
        """The samples of each tenth but the first."""
        return [part for part in tenths(self.samples)[1:] if part]

    @property
    def growth(self) -> float:
        """How much memory grew after the first tenth of the time."""
        parts = [statistics.median(one.megabytes for one in part) for part in self.settled]
        return parts[-1] / parts[0] - 1 if parts else 0.0

    def is_constant(self, measure: Callable[[Sample], int]) -> bool:
        """Whether the process holds as many in every tenth; a file being read does not count.

        What is held for good is there in every sample, so the least of them is compared.
        """
        return len({min(map(measure, part)) for part in self.settled}) <= 1

    @property
    def keeps_the_bars(self) -> bool:
        """Whether nothing was wrong and nothing grew."""
        return (
            not self.faults
            and self.growth <= GROWTH_BAR
            and self.is_constant(lambda one: one.files)
            and self.is_constant(lambda one: one.threads)
        )


class Editor:
    """Writes a new version of one page every second, in the two ways in which programs save."""

    def __init__(self, root: Path, report: Report) -> None:
        self._path = root / ".knowledge" / f"{PAGE}.md"
        self._report = report
        self.written = 0
        self.write()

    def write(self) -> None:
        """The next version; from now on an older one is stale."""
        number = self.written + 1
        line = f"This is version v{number}x of the page.\n\n"
        text = f"# Changing\n\n{line}## Details\n\n{'Filler. ' * 200}\n\n## End\n\n{line}"
        if number % 2:
            draft = self._path.with_suffix(".draft")
            draft.write_text(text, "utf-8")
            draft.replace(self._path)
        else:
            # Two calls and nothing between: this process must not halt with the file empty.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(descriptor, text.encode())
            os.close(descriptor)
        self.written = number
        self._report.edits += 1

    def run(self, end: threading.Event) -> None:
        """Write until told to stop."""
        while not end.wait(1.0):
            self.write()


def check(tool: str, message: dict[str, Any], oldest: int, newest: int) -> str:
    """What is wrong with an answer; empty when nothing is."""
    result = message.get("result", {})
    if result.get("isError") or "structuredContent" not in result:
        return f"{tool}: {str(message)[:200]}"
    seen = {int(number) for number in _VERSION.findall(result["content"][0]["text"])}
    if tool == "sage_info":
        return ""
    if len(seen) != 1:
        return f"{tool}: versions {sorted(seen)} in one answer, written was v{oldest}"
    (version,) = seen
    return "" if oldest <= version <= newest + 1 else f"{tool}: v{version}, written was v{oldest}"


async def client(line: Line, number: int, editor: Editor, report: Report, until: float) -> None:
    """One client that keeps calling."""
    turn = number
    while time.monotonic() < until:
        call = CALLS[turn % len(CALLS)]
        oldest, began = editor.written, time.perf_counter()
        answer = await line.ask(call)
        report.latencies.append((time.perf_counter() - began) * 1000)
        report.calls[call[0]] += 1
        if fault := check(call[0], answer, oldest, editor.written):
            report.faults.append(fault)
        turn += 1
        await asyncio.sleep(PAUSE_SECONDS)


def sample(pid: int, began: float, latencies: Sequence[float]) -> Sample:
    """What a process holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    times = [*latencies, *latencies] or [0.0, 0.0]  # a quantile needs two
    return Sample(
        seconds=round(time.monotonic() - began, 1),
        megabytes=int(status.split("VmRSS:")[1].split()[0]) / 1024,
        files=sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        threads=int(status.split("Threads:")[1].split()[0]),
        calls=len(latencies),
        median_ms=statistics.median(times),
        p99_ms=statistics.quantiles(times, n=100, method="inclusive")[98],
    )


async def watch(pid: int, report: Report, seconds: float) -> None:
    """Take a hundred samples over the time."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(seconds / 100)
        report.samples.append(sample(pid, began, report.latencies))
        report.latencies.clear()


async def soak(lines: Sequence[Line], pid: int, root: Path, seconds: float) -> Report:
    """Let a client on each line call, and pages change, for a while."""
    report = Report()
    editor, end = Editor(root, report), threading.Event()
    editing = threading.Thread(target=editor.run, args=(end,))
    editing.start()
    watching = asyncio.create_task(watch(pid, report, seconds))
    until = time.monotonic() + seconds
    try:
        await asyncio.gather(
            *(client(line, number, editor, report, until) for number, line in enumerate(lines))
        )
    finally:
        watching.cancel()
        end.set()
        editing.join()
    return report


async def soak_http(root: Path, cache: Path, seconds: float, clients: int) -> Report:
    """Soak a team's server, with a connection for each client."""
    port = free_port()
    with running(serve_command(root, port), port, cache) as pid:
        async with http_lines(port, clients) as lines:
            return await soak(lines, pid, root, seconds)


async def soak_stdio(root: Path, cache: Path, seconds: float, clients: int) -> Report:
    """Soak the server of one host that makes several calls at a time."""
    async with stdio_line(root, cache) as (line, pid):
        return await soak([line] * clients, pid, root, seconds)


def write_pages(root: Path) -> None:
    """Two hundred pages that stay as they are."""
    for number in range(200):
        page = root / ".knowledge" / "practices" / f"page-{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# Page {number}\n\n## About\n\nText of page {number}.\n", "utf-8")


def summary(report: Report) -> str:
    """What was seen, in a few lines."""
    counts = ", ".join(f"{count} {tool}" for tool, count in sorted(report.calls.items()))
    faults = "".join(f"\n- {fault}" for fault in report.faults[:20])
    return (
        f"{report.calls.total()} calls ({counts}), {report.edits} edits, "
        f"{len(report.faults)} faults, memory {report.growth:+.1%} after the first tenth: "
        f"{'every bar kept' if report.keeps_the_bars else 'NOT every bar kept'}.{faults}"
    )


def main() -> None:
    """Soak and report; the exit code says whether the bars were kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=("http", "stdio"), default="http")
    parser.add_argument("--minutes", type=float, default=1.0, help="the bar is for 15")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "soak")
    given = parser.parse_args()
    soaked = {"http": soak_http, "stdio": soak_stdio}[given.transport]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repo"
        write_pages(root)
        report = asyncio.run(
            soaked(root, Path(folder) / "cache", given.minutes * 60, given.clients)
        )
    title = f"{given.minutes:g} minutes over {given.transport}, {given.clients} clients"
    page = write_report(given.report / given.transport, title, summary(report), report.samples)
    print(f"{title}\n{summary(report)}\n{page.read_text('utf-8').partition('|')[2]}\n{page}")
    sys.exit(not report.keeps_the_bars)


if __name__ == "__main__":
    main()
