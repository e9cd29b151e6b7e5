"""One token at full greed beside nine others: `python -m benchmarks.greed --seconds 60`.

For a while nine clients search, each with a token of its own; then they do so again while a tenth
token uses every way to hold resources at once: answers that nobody reads, bodies that stall, heads
that never end, streams, floods of cheap and of expensive calls. The bar: the p95 of the nine at
most 3 times that of the quiet while, and no error of theirs.

What is measured is the server: it has a core of its own in both whiles, and all clients share the
other, the greedy one behind the nine. `--way` takes single ways, to see what each of them costs.
"""

import argparse
import contextlib
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.memory import WORDS, write_base
from sage.access.token_file import TokenFile
from tests.httpkit import NEW, Client, Process, wait_until_ready

OTHERS = 9
PAUSE_SECONDS = 0.2
# No two of so many searches of one client are the same, nor any of two clients.
SEARCHES = 40_000
# The clients that are measured go before the greedy one, which has what they leave of their core.
GREEDY_NICENESS = 15
WAYS = {"unread": 1, "stalled": 1, "heads": 1, "streams": 1, "searches": 6, "reads": 3, "pings": 2}


class Greed:
    """A client that wants everything."""

    def __init__(self, client: Client, token: str) -> None:
        self._address = ("127.0.0.1", client.port)
        self._client = client
        self._token = f"Authorization: Bearer {token}"
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, names: Iterable[str]) -> None:
        """Begin with all of these ways."""
        ways: list[Callable[[], None]] = []
        for name in names:
            ways += [getattr(self, f"_{name}")] * WAYS[name]
        self._threads = [threading.Thread(target=self._until_over, args=(way,)) for way in ways]
        for thread in self._threads:
            thread.start()

    def _until_over(self, way: Callable[[], None]) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, ValueError):
                way()

    def _held(self, count: int, data: bytes) -> None:
        """So many connections on which something was sent and nothing is read."""
        with contextlib.ExitStack() as held:
            for _ in range(count):
                connection = held.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                connection.settimeout(5)
                connection.connect(self._address)
                connection.sendall(data)
            self._over.wait(5)

    def _request(self, method: str, params: object, *headers: str, length: int = 0) -> bytes:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = json.dumps(message).encode()
        lines = ["POST /mcp HTTP/1.1", "Host: localhost", self._token, *headers]
        lines += ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        lines += [f"Content-Length: {length or len(body)}", "", ""]
        return "\r\n".join(lines).encode() + body

    def _unread(self) -> None:
        arguments = {"layer": "all", "max_tokens": 1_000_000, "timeout_ms": 20_000}
        self._held(
            24, self._request("tools/call", {"name": "sage_get_knowledge", "arguments": arguments})
        )

    def _stalled(self) -> None:
        self._held(274, self._request("ping", {}, length=250_000) + b" " * 200_000)

    def _heads(self) -> None:
        self._held(700, b"POST /mcp HTTP/1.1\r\nHost: loc")

    def _streams(self) -> None:
        meta = {
            "io.modelcontextprotocol/protocolVersion": NEW,
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"_meta": meta, "notifications": {"resourcesListChanged": True}}
        head = (f"Mcp-Protocol-Version: {NEW}", "Mcp-Method: subscriptions/listen")
        self._held(100, self._request("subscriptions/listen", params, *head))

    def _searches(self) -> None:
        self._client.call(
            "sage_search", {"query": f"word{time.time_ns() % 4_000} word7"}, self._token
        )

    def _reads(self) -> None:
        arguments = {"layer": "all", "max_tokens": 100_000 + time.time_ns() % 9_999}
        self._client.call("sage_get_knowledge", arguments, self._token)

    def _pings(self) -> None:
        self._client.ask("tools/list", {}, self._token)


def searched(
    client: Client, tokens: Mapping[str, Iterator[int]], seconds: float
) -> tuple[list[float], int]:
    """How long each search of the others took, and how many failed.

    Args:
        tokens: with the numbers of the searches to come: a second time an answer is at hand.
    """
    taken: list[float] = []
    failed: list[object] = []
    until = time.monotonic() + seconds

    def search(token: str, numbers: Iterator[int]) -> None:
        while time.monotonic() < until:
            number = next(numbers)
            query = f"{WORDS[number * 37 % len(WORDS)]} {WORDS[number // len(WORDS) % 100]}"
            started = time.perf_counter()
            try:
                answer = client.call(
                    "sage_search", {"query": query}, f"Authorization: Bearer {token}"
                )
                if "structuredContent" not in answer:
                    failed.append(answer)
            except (OSError, ValueError) as error:
                failed.append(error)
            taken.append(time.perf_counter() - started)
            time.sleep(PAUSE_SECONDS)

    threads = [
        threading.Thread(target=search, args=(token, numbers)) for token, numbers in tokens.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in failed[:3]:
        print(f"  failed: {one!r}"[:200], file=sys.stderr)
    return taken, len(failed)


def p95(taken: list[float]) -> float:
    """What nineteen of twenty stayed under."""
    return statistics.quantiles(taken, n=20)[-1]


@contextlib.contextmanager
def core(place: int) -> Iterator[None]:
    """Start whatever is started meanwhile on one core, where a process can be kept to one."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cores)[place % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextlib.contextmanager
def greedy_client(port: int, token: str, ways: Sequence[str]) -> Iterator[None]:
    """Greed in a process of its own: it must not slow down the clients that are measured."""
    command = [sys.executable, "-m", "benchmarks.greed", "--port", str(port), "--token", token]
    command += [part for way in ways for part in ("--way", way)]
    greed = subprocess.Popen(command)
    try:
        yield
    finally:
        greed.kill()
        greed.wait()


def said(name: str, taken: list[float], failed: int) -> None:
    median = statistics.median(taken) * 1000
    print(
        f"{name}: {len(taken)} searches, median {median:.0f} ms, p95 {p95(taken) * 1000:.0f} ms, "
        f"{failed} failed",
        flush=True,
    )


def compare(
    client: Client,
    others: Mapping[str, Iterator[int]],
    greedy: str,
    ways: Sequence[str],
    seconds: float,
) -> None:
    """Search under greed, and as long without: half of it before and half after."""
    quiet, failed = searched(client, others, seconds / 2)
    with greedy_client(client.port, greedy, ways):
        time.sleep(3)
        loud, loud_failed = searched(client, others, seconds)
    time.sleep(6)
    later, later_failed = searched(client, others, seconds / 2)
    said("quiet", quiet + later, failed + later_failed)
    said(" ".join(ways), loud, loud_failed)
    ratio = p95(loud) / p95(quiet + later)
    print(f"p95 under greed: {ratio:.2f} times quiet (bar 3), {loud_failed} errors", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--flag", action="append", default=[], help="a flag of sage serve")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this; each may be named")
    parser.add_argument("--each", action="store_true", help="each way by itself, then all")
    parser.add_argument("--port", type=int, help="be greedy there, until killed")
    parser.add_argument("--token", default="")
    given = parser.parse_args()
    ways = given.way or list(WAYS)
    if given.port:
        os.nice(GREEDY_NICENESS)
        Greed(Client(given.port), given.token).start(ways)
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "base"
        write_base(root, given.pages, 10_000)
        tokens = TokenFile(Path(folder) / "tokens.json")
        greedy = tokens.create("greedy")
        others = {
            tokens.create(f"caller-{number}"): itertools.count(number * SEARCHES)
            for number in range(OTHERS)
        }
        flags = ("--require-token", "--tokens", str(tokens.path), *given.flag)
        with core(0):
            process = Process(root, *flags)
        with process, core(1):
            client = Client(process.port)
            wait_until_ready(client)
            searched(client, others, 5)
            for chosen in [*([[way] for way in ways] if given.each else []), ways]:
                compare(client, others, greedy, chosen, given.seconds)


if __name__ == "__main__":
    main()
