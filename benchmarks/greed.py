"""One token at full greed beside nine others: `python -m benchmarks.greed --seconds 60`.

For a while nine clients search, each with a token of its own; then they do so again while a tenth
token uses every way to hold resources at once: answers that nobody reads, bodies that stall, heads
that never end, streams, floods of cheap and of expensive calls. The bar: the p95 of the nine at
most 3 times that of the quiet while, and no error of theirs.
"""

import argparse
import contextlib
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.memory import WORDS, write_base
from sage.http.token_file import TokenFile
from tests.httpkit import NEW, Client, Process, wait_until_ready

OTHERS = 9
PAUSE_SECONDS = 0.2


class Greed:
    """A client that wants everything."""

    def __init__(self, client: Client, token: str) -> None:
        self._address = ("127.0.0.1", client.port)
        self._client = client
        self._token = f"Authorization: Bearer {token}"
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin with all of it."""
        ways: list[Callable[[], None]] = [self._unread, self._stalled, self._heads, self._streams]
        ways += [self._searches] * 6 + [self._reads] * 3 + [self._pings] * 2
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


def searched(client: Client, tokens: list[str], seconds: float) -> tuple[list[float], int]:
    """How long each search of the others took, and how many failed."""
    taken: list[float] = []
    failed: list[object] = []
    until = time.monotonic() + seconds

    def search(token: str, numbers: Iterator[int]) -> None:
        while time.monotonic() < until:
            query = f"{WORDS[next(numbers) * 37 % len(WORDS)]} {WORDS[next(numbers) % 100]}"
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
        threading.Thread(target=search, args=(token, itertools.count(number * 1_000)))
        for number, token in enumerate(tokens)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--flag", action="append", default=[], help="a flag of sage serve")
    parser.add_argument("--port", type=int, help="be greedy there, until killed")
    parser.add_argument("--token", default="")
    given = parser.parse_args()
    if given.port:
        Greed(Client(given.port), given.token).start()
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "base"
        write_base(root, given.pages, 10_000)
        tokens = TokenFile(Path(folder) / "tokens.json")
        greedy, *others = (tokens.create(f"caller-{number}") for number in range(OTHERS + 1))
        with Process(root, "--require-token", "--tokens", str(tokens.path), *given.flag) as process:
            client = Client(process.port)
            wait_until_ready(client)
            searched(client, others, 5)
            quiet, failed = searched(client, others, given.seconds)
            print(f"quiet: {len(quiet)} searches, p95 {p95(quiet) * 1000:.0f} ms, {failed} failed")
            # In a process of its own: it must not slow down the clients that are measured.
            command = [sys.executable, "-m", "benchmarks.greed", "--port", str(client.port)]
            greed = subprocess.Popen([*command, "--token", greedy])
            try:
                time.sleep(3)
                loud, failed = searched(client, others, given.seconds)
            finally:
                greed.kill()
                greed.wait()
            ratio = p95(loud) / p95(quiet)
            print(f"greed: {len(loud)} searches, p95 {p95(loud) * 1000:.0f} ms, {failed} failed")
            print(f"p95 under greed: {ratio:.2f} times quiet (bar 3), {failed} errors")


if __name__ == "__main__":
    main()
