"""A large base on one machine: `python -m benchmarks.large_base --root FOLDER`.

The server is a process on pipes, as a client starts it. First without a kept index: when the first
results come, how long until all is indexed, the most memory. Then with the kept one: processor time
of the first search and the first context, the median of warm calls, an edit until it is found.
Without `--root` a base of `--files` synthetic pages is written. Needs /proc (Linux).
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serve import ROOT, Server

QUERIES = (
    "how do I roll back a deployment",
    "css grid template areas",
    "asynchronous stream cancellation",
    "configure network policy for pods",
    "array sort comparator",
    "certificate renewal",
    "logging best practices",
    "memory limits of a container",
)
TASK = {"task_type": "coding", "task": "add retries to the http client"}
WORDS = [f"{one}{two}" for one in ("ka", "re", "so", "mi", "tu") for two in range(800)]
PATIENCE_SECONDS = 1_800


class Measured(Server):
    """A server whose answers and memory are looked at."""

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a tool answers, errors included."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            return {"error": result["content"][0]["text"]}
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def memory(self, name: str) -> float:
        """A line of the process's memory in megabytes: VmRSS or VmHWM."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = next(line for line in status.splitlines() if line.startswith(name))
        return int(found.split()[1]) / 1024


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, help="a repository with a large .knowledge")
    parser.add_argument("--files", type=int, default=2_000, help="pages to write without --root")
    parser.add_argument("--cache", type=Path, help="a cache folder to use and keep")
    parser.add_argument("--skip-cold", action="store_true", help="go on with the kept index")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = chosen.root or Path(folder) / "base"
        if chosen.root is None:
            write_pages(root, chosen.files)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SAGE_CACHE_DIR": str(chosen.cache or Path(folder) / "cache"),
            "SAGE_LIMITS_MAX_FILES": "1000000",
        }
        bench = LargeBase(root, environment)
        if not chosen.skip_cold:
            bench.cold()
        bench.kept()
        bench.commands()
    return 0


class LargeBase:
    """The measurements of one base."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment

    def cold(self) -> None:
        """From nothing: the first results, and until everything is indexed."""
        started = time.perf_counter()
        server = self._start()
        first = False
        while True:
            for query in QUERIES:
                answer = server.answer("sage_search", {"query": query})
                if not first and answer.get("results"):
                    first = True
                    wall, cpu = time.perf_counter() - started, server.cpu_seconds
                    said = "incomplete" if answer.get("complete") is False else "complete"
                    print(f"first results after {wall:.1f} s, {cpu:.1f} CPU s, {said}", flush=True)
            info = server.answer("sage_info", {})
            if info["index"]["state"] == "ready" or time.perf_counter() - started > 1_800:
                break
            time.sleep(2)
        print(
            f"all indexed after {time.perf_counter() - started:.0f} s, "
            f"{server.cpu_seconds:.0f} CPU s; {json.dumps(info['index'])}"
        )
        self._tell_memory(server)
        server.hang_up()

    def kept(self) -> None:
        """With the kept index: first calls in a process each, then warm ones."""
        floor = self._first("sage_info", {})
        for tool, arguments in (
            ("sage_search", {"query": QUERIES[0]}),
            ("sage_get_context", TASK),
            ("sage_get_knowledge", {"layer": "all", "topic": "no-such-page-at-all"}),
        ):
            self._first(tool, arguments, floor)
        server = self._start()
        self._warm(server, "sage_search", [{"query": query} for query in QUERIES])
        self._warm(server, "sage_get_context", [TASK | {"task": query} for query in QUERIES])
        self._warm(server, "sage_get_knowledge", [{"layer": "core"}])
        self._warm(server, "sage_get_knowledge", [{"layer": "all", "topic": "no-such-page"}])
        self._warm(server, "sage_info", [{}])
        self._edit(server)
        self._resources(server)
        self._tell_memory(server)
        server.hang_up()

    def commands(self) -> None:
        """What the command line takes."""
        for arguments in (
            ("search", QUERIES[0]),
            ("context", "coding", "--task", "add retries"),
            ("info",),
            ("get", "core"),
        ):
            before = os.times()
            command = [sys.executable, "-m", "sage", *arguments, "--root", str(self._root)]
            ended = subprocess.run(command, env=self._environment, capture_output=True, check=False)
            after = os.times()
            cpu = after.children_user + after.children_system
            cpu -= before.children_user + before.children_system
            print(f"sage {arguments[0]}: {cpu:.2f} CPU s, exit {ended.returncode}", flush=True)

    def _start(self) -> Measured:
        command = [sys.executable, "-m", "sage", "serve", "--root", str(self._root)]
        server = Measured(command, self._environment)
        server.greet()
        return server

    def _first(self, tool: str, arguments: Mapping[str, Any], floor: float = 0.0) -> float:
        started = time.perf_counter()
        server = self._start()
        answer = server.answer(tool, arguments)
        wall, cpu = time.perf_counter() - started, server.cpu_seconds
        print(
            f"first {tool}: {wall:.2f} s, {cpu:.2f} CPU s, {cpu - floor:+.2f} to sage_info alone, "
            f"{server.memory('VmRSS'):.0f} MB; {_outcome(answer)}",
            flush=True,
        )
        server.hang_up()
        return cpu

    def _warm(self, server: Measured, tool: str, all_: Sequence[Mapping[str, Any]]) -> None:
        """The median of calls after the first of each kind; none is answered from the cache."""
        server.answer(tool, all_[0])
        times = []
        for number in range(24):
            arguments = dict(all_[number % len(all_)])
            if "query" in arguments:
                arguments["limit"] = 3 + number // len(all_)
            if "task" in arguments:
                arguments["token_budget"] = 4_000 + number
            before, started = server.cpu_seconds, time.perf_counter()
            answer = server.answer(tool, arguments)
            times.append((time.perf_counter() - started, server.cpu_seconds - before))
        wall, cpu = (statistics.median(one[at] for one in times) * 1000 for at in (0, 1))
        most = max(one[0] for one in times) * 1000
        print(
            f"warm {tool}: {wall:.0f} ms, {cpu:.0f} ms CPU, at most {most:.0f} ms; "
            f"{_outcome(answer)}",
            flush=True,
        )

    def _edit(self, server: Measured) -> None:
        """A new page until it is found."""
        word = f"zebrafish{random.randrange(10**9)}"
        page = self._root / ".knowledge" / "core" / "edited-by-the-benchmark.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        try:
            for kind in ("new", "edited"):
                page.write_text(f"# {word}{kind}\n\nA page about {word}{kind}.\n", "utf-8")
                started = time.perf_counter()
                answer = server.answer("sage_search", {"query": f"{word}{kind}"})
                wall = time.perf_counter() - started
                found = bool(answer.get("results"))
                print(f"{kind} page: {wall * 1000:.0f} ms, {'found' if found else 'NOT FOUND'}")
        finally:
            page.unlink()
        server.answer("sage_search", {"query": word})

    def _resources(self, server: Measured) -> None:
        before, started = server.cpu_seconds, time.perf_counter()
        pages = 0
        cursor: dict[str, str] = {}
        while pages < 3:
            listed = server.request("resources/list", cursor)
            pages += 1
            if not listed.get("nextCursor"):
                break
            cursor = {"cursor": listed["nextCursor"]}
        wall = time.perf_counter() - started
        print(f"{pages} pages of resources: {wall:.2f} s, {server.cpu_seconds - before:.2f} CPU s")

    def _tell_memory(self, server: Measured) -> None:
        now, most = server.memory("VmRSS"), server.memory("VmHWM")
        print(f"memory: {now:.0f} MB resident, at most {most:.0f}")


def _outcome(answer: Mapping[str, Any]) -> str:
    """What came of a call, in a few words."""
    if "error" in answer:
        return str(answer["error"])[:60]
    incomplete = ", incomplete" if answer.get("complete") is False else ""
    return f"{len(answer.get('results', answer.get('sections', answer)))} parts{incomplete}"


def write_pages(root: Path, count: int) -> None:
    """So many small pages, the same in every run."""
    chance = random.Random(3)
    for number in range(count):
        layer = ("core", "guidelines", "frameworks", "practices")[number % 4]
        page = root / ".knowledge" / layer / f"area-{number % 400}" / f"page-{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        parts = [
            f"## {chance.choice(WORDS)} {part}\n\n{' '.join(chance.choices(WORDS, k=40))}.\n"
            for part in range(3)
        ]
        page.write_text(f"# Page {number} {chance.choice(WORDS)}\n\n" + "\n".join(parts), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
