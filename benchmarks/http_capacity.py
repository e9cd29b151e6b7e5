"""What a team's server costs on bases of three sizes: processor time and memory, as a table.

Processor time of the server's process, not time on the clock: it hardly depends on who else is
busy. Every call is a different one, so that no answer is a remembered one.
"""

import asyncio
import random
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.http_load import (
    ROOT,
    VERSIONS,
    Call,
    cpu_seconds,
    free_port,
    request_bytes,
    running,
    send_all,
    serve_command,
    write_large_base,
)

PAGES = (500, 2_000)
SECTIONS_A_PAGE = 10
CLIENTS = 8
CALLS = 200
HEAD = ("base", "first / later start", "memory at start / under load")
TOOLS = ("sage_info", "sage_get_knowledge", "sage_search", "sage_get_context")


def different_calls(tool: str, words: Sequence[str], count: int) -> list[Call]:
    """So many calls of a tool, no two alike."""
    chance = random.Random(tool)
    return [(tool, _arguments(tool, words, chance, number)) for number in range(count)]


def _arguments(
    tool: str, words: Sequence[str], chance: random.Random, number: int
) -> dict[str, Any]:
    text = " ".join(chance.choices(words, k=3))
    if tool == "sage_get_knowledge":
        return {"layer": "core", "max_tokens": 8_000 - number, "timeout_ms": 30_000}
    if tool == "sage_search":
        return {"query": text}
    return {"task_type": "coding", "task": text} if tool == "sage_get_context" else {}


def until_ready(port: int) -> None:
    """Wait until a server says that its index is."""
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60):
                return
        except OSError:
            time.sleep(0.1)


def megabytes(pid: int) -> float:
    """The memory that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def start_seconds(root: Path, cache: Path) -> float:
    """The processor time until a server is ready."""
    port = free_port()
    with running(serve_command(root, port), port, cache) as pid:
        until_ready(port)
        return cpu_seconds(pid)


def measure(root: Path, cache: Path, words: Sequence[str]) -> list[str]:
    """The cells of one line: starts, memory, and milliseconds a call of each tool."""
    first = start_seconds(root, cache)
    port = free_port()
    with running(serve_command(root, port), port, cache) as pid:
        until_ready(port)
        later, before = cpu_seconds(pid), megabytes(pid)
        for tool in TOOLS:  # the first context loads every document, the others none
            _cost_ms(port, pid, different_calls(tool, words[::-1], 1))
        costs = [_cost_ms(port, pid, different_calls(tool, words, CALLS)) for tool in TOOLS]
        after = megabytes(pid)
    return [
        f"{first:.1f} / {later:.1f} CPU s",
        f"{before:.0f} / {after:.0f} MB",
        *(f"{cost:.2g} ms" for cost in costs),
    ]


def _cost_ms(port: int, pid: int, calls: Sequence[Call]) -> float:
    requests = [request_bytes(call, VERSIONS[0]) for call in calls]
    load = asyncio.run(send_all(port, pid, [requests[at::CLIENTS] for at in range(CLIENTS)]))
    if load.errors:
        raise SystemExit(f"{load.errors} of {len(calls)} calls of {calls[0][0]} failed")
    return load.cpu_seconds / len(calls) * 1000


def main() -> None:
    """Measure and print."""
    print(f"| {' | '.join([*HEAD, *(f'`{tool}`' for tool in TOOLS)])} |")
    print("|---" * (len(HEAD) + len(TOOLS)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "own"
        shutil.copytree(ROOT / ".knowledge", own / ".knowledge")
        pages = sorted(own.rglob("*.md"))
        words = sorted({word for page in pages for word in page.read_text("utf-8").split()})
        cells = measure(own, Path(folder) / "own-cache", words)
        print(_line(f"{len(pages)} pages, our own", cells))
        for count in PAGES:
            root = Path(folder) / str(count)
            words = write_large_base(root, count * SECTIONS_A_PAGE)
            name = f"{count:,} pages, {count * SECTIONS_A_PAGE:,} sections"
            print(_line(name, measure(root, Path(folder) / f"{count}-cache", words)), flush=True)


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([name, *cells])} |"


if __name__ == "__main__":
    main()
