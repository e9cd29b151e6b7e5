"""Searches a second with one worker and with two, on a machine with two cores.

Both servers run all the time and are asked in turns, for so many seconds each. Every query is a new
one, so that no answer is a remembered one. Only a quiet machine has two cores to give: on a busy
one look at the processor time of a search, which must not rise with the workers.
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.http_capacity import until_ready
from benchmarks.http_load import (
    SECTIONS,
    VERSIONS,
    cpu_seconds,
    free_port,
    request_bytes,
    running,
    serve_command,
    write_large_base,
)

BAR = 1.7
WORKERS = (1, 2)


async def searches_in(port: int, clients: int, seconds: float, queries: Iterator[str]) -> int:
    """How many searches all clients together get answered in that time."""
    answered = [0]
    ends = time.monotonic() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        while time.monotonic() < ends:
            writer.write(request_bytes(("sage_search", {"query": next(queries)}), VERSIONS[0]))
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
            body = await reader.readexactly(int(length))
            if b" 200 " not in head[:16] or b'"isError":true' in body:
                raise SystemExit(f"a search failed: {body[:200]!r}")
            answered[0] += time.monotonic() < ends
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return answered[0]


def new_queries(words: Sequence[str]) -> Iterator[str]:
    """Queries without end, hardly any two alike."""
    chance = random.Random(11)
    while True:
        yield " ".join(chance.choices(words, k=3))


def main() -> int:
    """Print a line a round and the median of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--clients", type=int, default=40)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, cache = Path(folder) / "base", Path(folder) / "cache"
        queries = new_queries(write_large_base(root, SECTIONS))
        ports = [free_port() for _ in WORKERS]
        commands = [
            [*serve_command(root, port), "--workers", str(workers)]
            for port, workers in zip(ports, WORKERS, strict=True)
        ]
        with (
            running(commands[0], ports[0], cache) as one,
            running(commands[1], ports[1], cache) as two,
        ):
            servers = list(zip(ports, (one, two), strict=True))
            for port in ports:
                until_ready(port)
                asyncio.run(searches_in(port, chosen.clients, 2.0, queries))
            ratios = [_round(servers, chosen, queries) for _ in range(chosen.rounds)]
    ratio = statistics.median(ratios)
    print(f"median {ratio:.2f} x  (>= {BAR})  {'ok' if ratio >= BAR else 'MISSED'}")
    return ratio < BAR


def _round(
    servers: Sequence[tuple[int, int]], chosen: argparse.Namespace, queries: Iterator[str]
) -> float:
    rates: list[float] = []
    costs: list[float] = []
    for port, pid in servers:
        before = _cpu_of_all(pid)
        found = asyncio.run(searches_in(port, chosen.clients, chosen.seconds, queries))
        rates.append(found / chosen.seconds)
        costs.append((_cpu_of_all(pid) - before) / max(found, 1) * 1000)
    print(
        f"one worker {rates[0]:.0f}/s, two {rates[1]:.0f}/s, {rates[1] / rates[0]:.2f} x; "
        f"CPU a search {costs[0]:.1f} and {costs[1]:.1f} ms (load {os.getloadavg()[0]:.1f})",
        flush=True,
    )
    return rates[1] / rates[0]


def _cpu_of_all(pid: int) -> float:
    """Processor time of a server's process and of its workers."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return sum(map(cpu_seconds, (pid, *map(int, below))))


if __name__ == "__main__":
    raise SystemExit(main())
