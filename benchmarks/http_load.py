"""A team's server under load, as ratios to a bare FastMCP server and to calls in the process.

Every client has a connection of its own and all ask in the same moment. Both servers are asked
in turns in the same run: the ratio is what the machine and its load leave comparable.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sage.knowledge import open_knowledge
from sage.settings import load_settings

ROOT = Path(__file__).parent.parent
BARE = ROOT / "benchmarks" / "bare_http_server.py"
EMPTY: tuple[str, dict[str, Any]] = ("empty", {})
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sage_info", {}),
    ("sage_get_knowledge", {"layer": "core"}),
    ("sage_search", {"query": "how do we write tests?"}),
    ("sage_get_context", {"task_type": "coding", "task": "add retries to the http client"}),
)
VERSIONS = ("2025-06-18", "2026-07-28")
P99_BAR = 2.0
THROUGHPUT_BAR = 0.5
SECTIONS = 5_000

Call = tuple[str, dict[str, Any]]


@dataclass
class Load:
    """What a number of simultaneous calls took."""

    wall_seconds: float
    latencies: list[float]
    errors: int
    cpu_seconds: float

    @property
    def p99_ms(self) -> float:
        """The time within which 99 of 100 calls were answered."""
        return statistics.quantiles(self.latencies, n=100)[98] * 1000

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.latencies) / self.wall_seconds


@contextmanager
def running(command: Sequence[str], port: int, cache: Path) -> Iterator[int]:
    """A server process that listens."""
    environment = {**os.environ, "SAGE_CACHE_DIR": str(cache), "SAGE_LOG_LEVEL": "warning"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request_bytes(call: Call, version: str) -> bytes:
    """A call as it goes over the wire."""
    tool, arguments = call
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += ["Accept: application/json, text/event-stream", f"Mcp-Protocol-Version: {version}"]
    if version == "2026-07-28":
        lines += ["Mcp-Method: tools/call", f"Mcp-Name: {tool}"]
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}"])
    return head.encode() + b"\r\n\r\n" + body


async def send_all(port: int, pid: int, clients: Sequence[Sequence[bytes]]) -> Load:
    """Let every client send its requests, one after the other, all clients at once."""
    start, latencies, errors = asyncio.Event(), list[float](), [0]
    connected = [0]

    async def client(requests: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        connected[0] += 1
        await start.wait()
        for request in requests:
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
            body = await reader.readexactly(int(length))
            latencies.append(time.perf_counter() - began)
            errors[0] += b" 200 " not in head[:16] or b'"isError":true' in body
        writer.close()

    tasks = [asyncio.create_task(client(requests)) for requests in clients]
    while connected[0] < len(clients):
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0.01)
    cpu, began = cpu_seconds(pid), time.perf_counter()
    start.set()
    await asyncio.gather(*tasks)
    wall = time.perf_counter() - began
    return Load(wall, latencies, errors[0], cpu_seconds(pid) - cpu)


def measure_calls(clients: int, rounds: int, cache: Path) -> bool:
    """All clients call the same tool at once; both servers in turns."""
    print(f"\n{clients} simultaneous calls, median of {rounds} rounds (ms; CPU ms a call)")
    print(f"{'':<34}{'bare p99':>9}{'p99':>8}{'ratio':>8}{'bare CPU':>10}{'CPU':>7}  errors")
    kept = True
    bare_port, port = free_port(), free_port()
    with (
        running([sys.executable, str(BARE), str(bare_port)], bare_port, cache) as bare,
        running(serve_command(ROOT, port), port, cache) as sage,
    ):
        for version in VERSIONS:
            for call in CALLS:
                pairs = [
                    (
                        asyncio.run(
                            send_all(bare_port, bare, [[request_bytes(EMPTY, version)]] * clients)
                        ),
                        asyncio.run(
                            send_all(port, sage, [[request_bytes(call, version)]] * clients)
                        ),
                    )
                    for _ in range(rounds)
                ]
                kept &= _print_pairs(f"{call[0]} ({version})", pairs)
    return kept


def _print_pairs(name: str, pairs: list[tuple[Load, Load]]) -> bool:
    ratio = statistics.median(ours.p99_ms / bare.p99_ms for bare, ours in pairs)
    bare_p99 = statistics.median(bare.p99_ms for bare, _ in pairs)
    p99 = statistics.median(ours.p99_ms for _, ours in pairs)
    bare_cpu, cpu = (
        statistics.median(pair[side].cpu_seconds / len(pair[side].latencies) for pair in pairs)
        * 1000
        for side in (0, 1)
    )
    errors = sum(ours.errors for _, ours in pairs)
    kept = ratio <= P99_BAR and not errors
    print(
        f"{name:<34}{bare_p99:>9.0f}{p99:>8.0f}{ratio:>7.2f}x{bare_cpu:>10.2f}{cpu:>7.2f}"
        f"{errors:>8}  {'ok' if kept else 'MISSED'}"
    )
    return kept


def measure_searches(clients: int, each: int, rounds: int, folder: Path) -> bool:
    """Different searches over a large base: through the server, and called in this process."""
    root, cache = folder / "large", folder / "large-cache"
    words = write_large_base(root, SECTIONS)
    os.environ["SAGE_CACHE_DIR"] = str(cache)
    knowledge = open_knowledge(load_settings({"root": root}))
    knowledge.warm()
    knowledge.close()
    chance, port = random.Random(7), free_port()
    ratios = []
    print(f"\n{clients} concurrent clients, {each} searches each, on {SECTIONS} sections")
    with running(serve_command(root, port), port, cache) as pid:
        asyncio.run(
            send_all(port, pid, [[request_bytes(("sage_search", {"query": "x"}), VERSIONS[0])]])
        )
        for _ in range(rounds):
            queries = [" ".join(chance.choices(words, k=3)) for _ in range(clients * each)]
            requests = [
                request_bytes(("sage_search", {"query": query}), VERSIONS[0]) for query in queries
            ]
            load = asyncio.run(
                send_all(port, pid, [requests[at::clients] for at in range(clients)])
            )
            alone = max(_in_process(knowledge, queries, threads) for threads in (1, 2))
            ratios.append(load.rate / alone)
            print(
                f"  server {load.rate:.0f}/s, in the process {alone:.0f}/s, "
                f"ratio {ratios[-1]:.2f}, p99 {load.p99_ms:.0f} ms, errors {load.errors}"
            )
    ratio = statistics.median(ratios)
    print(f"  median ratio {ratio:.2f}  {'ok' if ratio >= THROUGHPUT_BAR else 'MISSED'}")
    return ratio >= THROUGHPUT_BAR


def _in_process(knowledge: Any, queries: Sequence[str], threads: int) -> float:
    """Searches a second; the blank at the end keeps an answer from being a remembered one."""

    def run(part: Sequence[str]) -> None:
        for query in part:
            knowledge.search(query + " " * threads)

    workers = [threading.Thread(target=run, args=(queries[at::threads],)) for at in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(queries) / (time.perf_counter() - began)


def write_large_base(root: Path, sections: int) -> list[str]:
    """A base of many sections whose words are as unevenly frequent as those of a language."""
    chance = random.Random(1)
    letters = "aeioulnrstmkdp"
    words = sorted({"".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(6_000)})
    weights = [1 / (rank + 1) for rank in range(len(words))]
    layers = ("core", "guidelines", "frameworks", "practices")
    for number in range(sections // 10):
        text = [f"# {' '.join(chance.choices(words, weights, k=3))} {number}\n"]
        for _ in range(10):
            heading = " ".join(chance.choices(words, weights, k=3))
            body = " ".join(chance.choices(words, weights, k=60))
            text.append(f"## {heading}\n\n{body}.\n")
        path = (
            root / ".knowledge" / layers[number % 4] / f"topic-{number // 40}" / f"page-{number}.md"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(text), "utf-8")
    return words


def serve_command(root: Path, port: int) -> list[str]:
    """The command that serves a root over HTTP."""
    return [
        sys.executable,
        "-m",
        "sage",
        "serve",
        "--http",
        "--root",
        str(root),
        "--port",
        str(port),
    ]


def main() -> None:
    """Measure and print; the exit code says whether the bars were kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("calls", "searches"))
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8_192)), hard))
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        if given.only in (None, "calls"):
            kept &= measure_calls(given.clients, given.rounds, Path(folder) / "cache")
        if given.only in (None, "searches"):
            kept &= measure_searches(100, 5, given.rounds, Path(folder))
    sys.exit(not kept)


if __name__ == "__main__":
    main()
