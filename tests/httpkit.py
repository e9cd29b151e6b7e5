"""A team's server on a real socket of this machine, and a client that sends what it is told."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sage.access.auth import Access
from sage.access.options import HttpOptions
from sage.http.run import TeamServer, addresses_of, bound_sockets, serve_sockets
from sage.http.tracing import Tracing
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.settings import Settings, load_settings
from tests.processes import PATIENCE_SECONDS, clean_environment

NEW = "2026-07-28"
OLD = "2025-06-18"
_META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """A client of one server."""

    port: int
    running: tuple[TeamServer, KnowledgeBase] | None = None
    address: str = "127.0.0.1"

    @property
    def server(self) -> TeamServer:
        assert self.running is not None
        return self.running[0]

    @property
    def knowledge(self) -> KnowledgeBase:
        assert self.running is not None
        return self.running[1]

    def raw(self, data: bytes, timeout: float = PATIENCE_SECONDS) -> Reply:
        """Send bytes as they are and read one answer."""
        with socket.create_connection((self.address, self.port), timeout) as connection:
            connection.sendall(data)
            return read_reply(connection)

    def get(self, path: str, *headers: str, host: str | None = "127.0.0.1") -> Reply:
        return self.send("GET", path, *headers, host=host)

    def send(
        self,
        method: str,
        target: str,
        *headers: str,
        host: str | None = "127.0.0.1",
        body: bytes = b"",
    ) -> Reply:
        lines = [f"{method} {target} HTTP/1.1", *([f"Host: {host}"] if host is not None else [])]
        lines += [*headers, f"Content-Length: {len(body)}", "Connection: close"]
        return self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def post(self, message: object, *headers: str, host: str | None = "127.0.0.1") -> Reply:
        kind = ("Content-Type: application/json", "Accept: application/json, text/event-stream")
        body = json.dumps(message).encode()
        return self.send("POST", "/mcp", *kind, *headers, host=host, body=body)

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *headers: str, era: str = OLD
    ) -> Any:
        """The result of a request; an error is returned as it is."""
        sent = dict(params or {})
        lines = [f"Mcp-Protocol-Version: {era}", *headers]
        if era == NEW:
            sent["_meta"] = _META
            lines.append(f"Mcp-Method: {method}")
            name = sent.get("name") or sent.get("uri")
            lines += [f"Mcp-Name: {name}"] if name else []
        reply = self.post({"jsonrpc": "2.0", "id": 7, "method": method, "params": sent}, *lines)
        answer = reply.json
        return answer.get("result", answer)

    def call(self, tool: str, arguments: Mapping[str, Any], *headers: str, era: str = OLD) -> Any:
        """What a tool answers."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments}, *headers, era=era)


def read_reply(connection: socket.socket) -> Reply:
    """One answer from a connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError(f"closed after {data!r}")
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    length = int(headers.get("content-length", 0))
    while len(body) < length and (part := connection.recv(65536)):
        body += part
    return Reply(int(first.split()[1]), headers, body)


@contextmanager
def serving(
    root: Path,
    kind: Callable[[Settings], KnowledgeBase] = open_knowledge,
    address: str = "127.0.0.1",
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Client]:
    """A server of a root in a thread of its own, ready to be asked."""
    sockets = bound_sockets(address, 0)
    # So small that an answer nobody fetches is soon in nobody's buffer but ours.
    sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    variables = {"SAGE_CACHE_DIR": str(root.parent / "cache"), **(environment or {})}
    knowledge = kind(load_settings({"root": root}, variables))
    ready, failure = threading.Event(), []
    found: list[TeamServer] = []

    def on_ready(server: TeamServer) -> None:
        found.append(server)
        ready.set()

    def run() -> None:
        try:
            given = HttpOptions(**options)
            access = Access.at(addresses_of(sockets), given, knowledge.settings)
            asyncio.run(
                serve_sockets(lambda: knowledge, given, access, sockets, on_ready, Tracing())
            )
        except BaseException as error:
            failure.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(PATIENCE_SECONDS)
    try:
        if failure:
            raise failure[0]
        client = Client(sockets[0].getsockname()[1], (found[0], knowledge), address)
        wait_until_ready(client)
        yield client
    finally:
        for server in found:
            server.end()
        thread.join(PATIENCE_SECONDS)
        for listening in sockets:
            listening.close()


def wait_until_ready(client: Client) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while client.get("/readyz").status != 200:
        assert time.monotonic() < until
        time.sleep(0.02)


def write_base(root: Path) -> Path:
    """A small knowledge base of three layers, each with words that no other has."""
    pages = {
        "core/principles.md": "# Principles\n\nEverybody writes zebra tests first.\n",
        "practices/testing.md": "# Testing\n\n## Fixtures\n\nUse the walrus fixture in tests.\n",
        "practices/deploy.md": "# Deploying\n\nAsk before you deploy on a Friday.\n",
        "guidelines/secret-salaries.md": "# Salaries\n\nThe narwhal table of tests and pay.\n",
    }
    for name, text in pages.items():
        path = root / ".knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def command(root: Path, *flags: str) -> list[str]:
    """The command that an operator starts a server with."""
    return [
        sys.executable,
        "-m",
        "sage",
        "serve",
        "--http",
        "--port",
        "0",
        "--root",
        str(root),
        *flags,
    ]


class Process:
    """A server in a process of its own, and the lines that it logs."""

    def __init__(self, root: Path, *flags: str, **environment: str) -> None:
        variables = clean_environment(root, **environment)
        self.popen = subprocess.Popen(
            command(root, *flags), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=variables
        )
        self.lines: list[dict[str, Any]] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def port(self) -> int:
        return int(self.line("listening")["url"].rsplit(":", 1)[1].split("/")[0])

    def line(self, message: str) -> dict[str, Any]:
        """The first line that says this, once it is there."""
        with self._said:
            if not self._said.wait_for(lambda: self._find(message), PATIENCE_SECONDS):
                raise AssertionError(f"no line {message!r} in {self.lines}")
            return self._find(message)[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it as an operator does; its exit code."""
        self.popen.send_signal(number)
        code = self.popen.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return code

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        assert self.popen.stderr is not None
        self.popen.stderr.close()

    def _find(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["message"] == message]

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for text in self.popen.stderr:
            with self._said:
                try:
                    self.lines.append(json.loads(text))
                except ValueError:
                    self.lines.append({"message": text.decode().strip()})
                self._said.notify_all()
