"""Cold start, round trip, memory and end of `sage serve`, as ratios to a bare FastMCP server.

Both are processes on pipes, spoken to by the same few lines, in turns in the same run: the ratio
is what the machine and its load leave comparable. Needs /proc (Linux).
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BARE = [sys.executable, "-m", "benchmarks.bare_server"]
SECTIONS = 5_000
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
EMPTY: tuple[str, dict[str, Any]] = ("empty", {})
CALLS: dict[str, dict[str, Any]] = {
    "sage_info": {},
    "sage_get_knowledge": {"layer": "core"},
    "sage_search": {"query": "how do we write tests?"},
    "sage_get_context": {"task_type": "coding", "task": "add retries to the http client"},
}
WARM_BARS = {"sage_info": 1.3, "sage_get_knowledge": 2.0, "sage_search": 2.0}
COLD_BAR, COLD_LARGE_BAR = 1.25, 1.4
UNCOUNTED_MB, COUNTED_MB = 40, 90
IDLE_SECONDS, BUSY_SECONDS = 0.5, 2.0


class Server:
    """A server process and the few lines of protocol that a benchmark needs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._id = 0

    def greet(self) -> None:
        """Do the handshake."""
        self.request("initialize", INITIALIZE)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Call a tool; an error is no measurement."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise SystemExit(f"{tool}: {answer['content'][0]['text']}")

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._id:
                result: dict[str, Any] = message["result"]
                return result
        raise SystemExit(f"the server ended before it answered {method}")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    @property
    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        """Resident memory now."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def hang_up(self) -> float:
        """Close our end; seconds until the process is gone."""
        assert self._process.stdin is not None
        return self._gone_after(self._process.stdin.close)

    def signal(self, number: signal.Signals) -> float:
        """Send a signal; seconds until the process is gone."""
        return self._gone_after(lambda: self._process.send_signal(number))

    def _gone_after(self, ask: Callable[[], None]) -> float:
        started = time.perf_counter()
        ask()
        self._process.wait(30)
        return time.perf_counter() - started


@dataclass
class Row:
    """One line of the table: a figure of the bare server, ours, and how they must compare."""

    what: str
    bare: float
    sage: float
    unit: str
    bar: float | None = None

    @property
    def difference(self) -> float:
        """What is compared with the bar: a ratio, added memory, or the time itself."""
        if self.unit == "MB":
            return self.sage - self.bare
        return self.sage / self.bare if self.bare else self.sage

    def __str__(self) -> str:
        form = {"MB": "+{:.0f} MB"}.get(self.unit, "{:.2f} x" if self.bare else "{:.2f} s")
        bar = "" if self.bar is None else f"<= {form.format(self.bar)}"
        verdict = "" if self.bar is None else "ok" if self.difference <= self.bar else "MISSED"
        bare = f"{self.bare:.2f}" if self.bare else ""
        return (
            f"{self.what:<50}{bare:>9}{self.sage:>9.2f} {self.unit:<3}"
            f"{form.format(self.difference):>10}  {bar:<12}{verdict}"
        )


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=7, help="cold starts of each kind")
    parser.add_argument("--calls", type=int, default=300, help="warm calls of each tool")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), chosen.starts, chosen.calls)
        print(f"{'':<50}{'bare':>9}{'sage':>9}")
        for measure in (bench.cold, bench.cold_large, bench.warm, bench.memory, bench.ending):
            for row in measure():
                print(row, flush=True)


class Bench:
    """The measurements, each a few rows."""

    def __init__(self, folder: Path, starts: int, calls: int) -> None:
        self._folder = folder
        self._starts = starts
        self._calls = calls
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SAGE_CACHE_DIR": str(folder / "cache"),
        }

    def cold(self) -> list[Row]:
        """From the start of the process to its first answer, on our own base."""
        rows = []
        for tool in CALLS:
            bar = COLD_BAR if tool == "sage_search" else None
            rows += self._cold_rows(ROOT, tool, "our base", bar)
        return rows

    def cold_large(self) -> list[Row]:
        """The same on a large base whose index was built before."""
        large = self._folder / "large"
        write_sections(large, SECTIONS)
        server = self._sage(large)
        server.greet()
        server.call("sage_search", CALLS["sage_search"])
        server.hang_up()
        return self._cold_rows(large, "sage_search", f"{SECTIONS:,} sections", COLD_LARGE_BAR)

    def warm(self) -> list[Row]:
        """The round trip of each tool, one call of each in turn."""
        bare, sage = self._bare(), self._sage(ROOT)
        bare.greet()
        sage.greet()
        ways = {"empty": (bare, *EMPTY)} | {tool: (sage, tool, CALLS[tool]) for tool in CALLS}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(self._calls):
            for name, (server, tool, arguments) in ways.items():
                started = time.perf_counter()
                server.call(tool, arguments)
                times[name].append((time.perf_counter() - started) * 1000)
        bare.hang_up()
        sage.hang_up()
        # The first calls warm up: files are read, words counted, code specialised.
        middle = {name: statistics.median(all_[len(all_) // 10 :]) for name, all_ in times.items()}
        return [
            Row(f"round trip {tool}", middle["empty"], middle[tool], "ms", WARM_BARS.get(tool))
            for tool in CALLS
        ]

    def memory(self) -> list[Row]:
        """Resident memory before and after something had to be counted."""
        bare, sage = self._bare(), self._sage(ROOT)
        for server in (bare, sage):
            server.greet()
        bare.call(*EMPTY)
        sage.call("sage_search", CALLS["sage_search"])
        rows = [Row("memory after a search", bare.megabytes, sage.megabytes, "MB", UNCOUNTED_MB)]
        for tool, arguments in CALLS.items():
            sage.call(tool, arguments)
        rows.append(
            Row("memory after every tool", bare.megabytes, sage.megabytes, "MB", COUNTED_MB)
        )
        bare.hang_up()
        sage.hang_up()
        return rows

    def ending(self) -> list[Row]:
        """From the wish to the end: idle, and in the middle of calls."""
        rows = []
        for name, busy, limit in (("idle", False, IDLE_SECONDS), ("busy", True, BUSY_SECONDS)):
            for how, end in (
                ("end of input", Server.hang_up),
                ("SIGINT", lambda server: server.signal(signal.SIGINT)),
                ("SIGTERM", lambda server: server.signal(signal.SIGTERM)),
            ):
                server = self._sage(ROOT)
                server.greet()
                if busy:
                    keep_busy(server)
                rows.append(Row(f"{how}, {name}", 0, end(server), "s", limit))
        return rows

    def _cold_rows(self, root: Path, tool: str, where: str, bar: float | None) -> list[Row]:
        bare: list[tuple[float, float]] = []
        sage: list[tuple[float, float]] = []
        for _ in range(self._starts):
            bare.append(first_answer(self._bare, *EMPTY))
            sage.append(first_answer(lambda: self._sage(root), tool, CALLS[tool]))
        return [
            Row(
                f"first {tool}, {where}, {kind}",
                statistics.median(one[position] for one in bare),
                statistics.median(one[position] for one in sage),
                "s",
                bar,
            )
            for position, kind in enumerate(("wall", "CPU"))
        ]

    def _bare(self) -> Server:
        return Server(BARE, self._environment)

    def _sage(self, root: Path) -> Server:
        command = [sys.executable, "-m", "sage", "serve", "--root", str(root)]
        return Server(command, self._environment)


def first_answer(
    start: Callable[[], Server], tool: str, arguments: Mapping[str, Any]
) -> tuple[float, float]:
    """Wall and CPU seconds from the start of a process to its first answer."""
    started = time.perf_counter()
    server = start()
    server.greet()
    server.call(tool, arguments)
    wall, cpu = time.perf_counter() - started, server.cpu_seconds
    server.hang_up()
    return wall, cpu


def keep_busy(server: Server) -> None:
    """Ask for much without waiting for any of it."""
    arguments = {"task_type": "coding", "token_budget": 100_000}
    for number in range(40):
        params = {"name": "sage_get_context", "arguments": arguments | {"task": f"task {number}"}}
        server.send(
            {"jsonrpc": "2.0", "id": f"b{number}", "method": "tools/call", "params": params}
        )


def write_sections(root: Path, count: int) -> None:
    """A knowledge base of so many sections, the same in every run."""
    chance = random.Random(1)
    words = [f"{one}{two}" for one in ("re", "un", "de", "co", "pre") for two in _STEMS]
    for number in range(count // 20):
        page = root / ".knowledge" / "practices" / f"area-{number % 25}" / f"page-{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        sections = [f"# Page {number}\n"]
        for section in range(19):
            text = " ".join(chance.choices(words, k=70))
            sections.append(f"## {chance.choice(words)} {section}\n\nHow we write tests: {text}.\n")
        page.write_text("\n".join(sections))


_STEMS = [
    "build",
    "test",
    "deploy",
    "merge",
    "review",
    "branch",
    "commit",
    "index",
    "search",
    "cache",
    "parse",
    "format",
    "release",
    "package",
    "import",
    "export",
    "client",
    "server",
    "token",
    "query",
    "result",
    "layer",
    "document",
    "section",
    "budget",
]


if __name__ == "__main__":
    main()
