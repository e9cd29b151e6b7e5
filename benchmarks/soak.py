"""A team's server for a while: mixed calls from several clients, and an edit every second.

Every answer is checked: no error, nothing older than what was written before the call began,
never two versions of one page in one answer. Memory, open files and threads are watched.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.http_load import VERSIONS, free_port, request_bytes, running, serve_command

PAGE = "practices/changing"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sage_get_knowledge", {"layer": "practices", "topic": "changing"}),
    ("sage_get_knowledge", {"layer": "all"}),
    ("sage_search", {"query": "the changing version"}),
    ("sage_get_context", {"task_type": "coding", "task": "the changing version"}),
    ("sage_info", {}),
)
GROWTH_BAR = 0.05
_VERSION = re.compile(r"version v(\d+)x")


@dataclass
class Sample:
    """What the process holds at a moment."""

    seconds: float
    megabytes: float
    files: int
    threads: int


@dataclass
class Report:
    """What was seen."""

    calls: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    edits: int = 0
    samples: list[Sample] = field(default_factory=list)

    @property
    def growth(self) -> float:
        """How much memory grew after the first tenth of the time."""
        settled = [sample.megabytes for sample in self.samples[len(self.samples) // 10 :]]
        return settled[-1] / settled[0] - 1 if settled else 0.0


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
            self._path.write_text(text, "utf-8")
        self.written = number
        self._report.edits += 1

    def run(self, end: threading.Event) -> None:
        """Write until told to stop."""
        while not end.wait(1.0):
            self.write()


def check(tool: str, body: bytes, status: bytes, oldest: int, newest: int) -> str:
    """What is wrong with an answer; empty when nothing is."""
    if b" 200 " not in status:
        return f"{tool}: {status.decode()}"
    result = json.loads(body).get("result", {})
    if result.get("isError") or "structuredContent" not in result:
        return f"{tool}: {body[:200].decode()}"
    seen = {int(number) for number in _VERSION.findall(result["content"][0]["text"])}
    if tool == "sage_info":
        return ""
    if len(seen) != 1:
        return f"{tool}: versions {sorted(seen)} in one answer"
    (version,) = seen
    return "" if oldest <= version <= newest + 1 else f"{tool}: v{version}, written was v{oldest}"


async def client(port: int, number: int, editor: Editor, report: Report, until: float) -> None:
    """One client on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    turn = number
    while time.monotonic() < until:
        tool, arguments = CALLS[turn % len(CALLS)]
        oldest = editor.written
        writer.write(request_bytes((tool, arguments), VERSIONS[turn % 2]))
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        fault = check(tool, body, head.split(b"\r\n")[0], oldest, editor.written)
        report.calls[tool] += 1
        if fault:
            report.faults.append(fault)
        turn += 1
    writer.close()


def sample(pid: int, began: float) -> Sample:
    """What a process holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
    threads = int(status.split("Threads:")[1].split()[0])
    files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return Sample(round(time.monotonic() - began, 1), memory, files, threads)


async def watch(pid: int, report: Report, seconds: float) -> None:
    """Take a hundred samples over the time."""
    began = time.monotonic()
    while True:
        report.samples.append(sample(pid, began))
        await asyncio.sleep(seconds / 100)


async def soak(port: int, pid: int, root: Path, seconds: float, clients: int) -> Report:
    """Let clients call and pages change for a while."""
    report = Report()
    editor, end = Editor(root, report), threading.Event()
    editing = threading.Thread(target=editor.run, args=(end,))
    editing.start()
    watching = asyncio.create_task(watch(pid, report, seconds))
    until = time.monotonic() + seconds
    try:
        await asyncio.gather(
            *(client(port, number, editor, report, until) for number in range(clients))
        )
    finally:
        watching.cancel()
        end.set()
        editing.join()
    return report


def main() -> None:
    """Soak and print; the exit code says whether the bars were kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="the bar is for 15")
    parser.add_argument("--clients", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repo"
        for number in range(200):
            page = root / ".knowledge" / "practices" / f"page-{number}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(f"# Page {number}\n\n## About\n\nText of page {number}.\n", "utf-8")
        port = free_port()
        with running(serve_command(root, port), port, Path(folder) / "cache") as pid:
            report = asyncio.run(soak(port, pid, root, given.minutes * 60, given.clients))
    first, last = report.samples[len(report.samples) // 10], report.samples[-1]
    print(f"{report.calls.total()} calls {dict(report.calls)}, {report.edits} edits")
    print(f"faults {len(report.faults)}", *report.faults[:5], sep="\n  ")
    print(f"memory {first.megabytes:.1f} -> {last.megabytes:.1f} MB ({report.growth:+.1%})")
    print(f"open files {first.files} -> {last.files}, threads {first.threads} -> {last.threads}")
    steady = (first.files, first.threads) == (last.files, last.threads)
    sys.exit(bool(report.faults) or report.growth > GROWTH_BAR or not steady)


if __name__ == "__main__":
    main()
