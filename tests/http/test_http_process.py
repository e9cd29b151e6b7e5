"""The server as a process: how it starts, what it says, how it ends, and two of them as one."""

import contextlib
import itertools
import json
import signal
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sage.access.token_file import TokenFile
from tests.http.test_run import timeless
from tests.httpkit import Client, Process, wait_until_ready, write_base


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_base(tmp_path / "repo")


def test_a_server_for_others_asks_for_a_token(root: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    TokenFile(tokens).create("ci")
    with Process(root, "--host", "0.0.0.0", "--tokens", str(tokens)) as process:
        assert process.line("listening")["access"] == "asks for a token"
        assert Client(process.port).post({}).status == 401
        assert process.stop(signal.SIGINT) == 0


def test_the_log_has_a_line_for_every_request_and_no_secret(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    value = tokens.create("ci")
    flags = ("--require-token", "--tokens", str(tokens.path))
    with Process(root, *flags, SAGE_LOG_LEVEL="debug") as process:
        client = Client(process.port)
        good = f"Authorization: Bearer {value}"
        client.call("sage_search", {"query": "walrus"}, good, "X-Request-Id: abc-1")
        client.get(f"/metrics?access_token={value}", "X-Request-Id: abc-2")
        client.get(f"/{value}", f"X-Request-Id: {value}", "Authorization: Bearer wrong-value")
        process.stop()
    requests = {line["request_id"]: line for line in process.lines if line["message"] == "request"}
    assert (requests["abc-1"]["status"], requests["abc-1"]["tool"]) == (200, "sage_search")
    assert requests["abc-1"]["caller"] == "ci"
    assert requests["abc-2"]["status"] == 400
    everything = json.dumps(process.lines)
    assert value not in everything
    assert value[18:] not in everything
    assert "wrong-value" not in everything
    assert "walrus" not in everything


def test_it_notes_usage_where_asked_and_ends_with_zero(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "usage.jsonl"
    with Process(root, "--usage-log", str(log)) as process:
        client = Client(process.port)
        client.call("sage_search", {"query": "walrus"})
        client.call("sage_get_knowledge", {"layer": "core"})
        assert process.line("listening")["access"] == "open to this machine"
        assert process.stop() == 0
    assert process.lines[-1]["message"] == "ended"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["tool"] for line in lines] == ["sage_search", "sage_get_knowledge"]
    assert lines[1]["pages"] == [".knowledge/core/principles.md"]
    assert "walrus" not in log.read_text()


class RoundRobin(socketserver.ThreadingTCPServer):
    """A proxy that sends each connection to the next of its servers."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Carry)
        self.turns = itertools.cycle(ports)
        self.used: list[int] = []


class _Carry(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, RoundRobin)
        port = next(self.server.turns)
        self.server.used.append(port)
        with socket.create_connection(("127.0.0.1", port)) as inner:
            there = threading.Thread(target=_pump, args=(self.request, inner))
            there.start()
            _pump(inner, self.request)
            there.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    while data := source.recv(65536):
        sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def balanced(ports: Sequence[int]) -> Iterator[RoundRobin]:
    with RoundRobin(ports) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


def pull(root: Path, version: int) -> None:
    """Change the checkout as a pull does: one page edited, one new, one gone, one moved."""
    practices = root / ".knowledge" / "practices"
    (practices / "changing.md").write_text(f"# Changing\n\nThis is version v{version}x of it.\n")
    (practices / f"new-{version}.md").write_text(f"# New {version}\n\nA page for v{version}x.\n")
    (practices / f"new-{version - 2}.md").unlink(missing_ok=True)
    moved = practices / "deploy.md" if version % 2 else practices / "ops" / "deploy.md"
    before = practices / "ops" / "deploy.md" if version % 2 else practices / "deploy.md"
    moved.parent.mkdir(exist_ok=True)
    if before.exists():
        before.rename(moved)


ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "tools/call",
        {"name": "sage_get_knowledge", "arguments": {"layer": "all", "topic": "changing"}},
    ),
    ("tools/call", {"name": "sage_search", "arguments": {"query": "version"}}),
    (
        "tools/call",
        {"name": "sage_get_context", "arguments": {"task_type": "coding", "task": "the version"}},
    ),
    ("tools/call", {"name": "sage_info", "arguments": {}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "knowledge://practices"}),
)


def test_two_replicas_answer_as_one_while_the_checkout_changes(root: Path) -> None:
    with Process(root) as one, Process(root) as two, balanced([one.port, two.port]) as proxy:
        for process in (one, two):
            wait_until_ready(Client(process.port))
        client = Client(proxy.server_address[1])
        for version in range(4):
            pull(root, version)
            answers = [
                [timeless(client.ask(method, params)) for _ in range(2)] for method, params in ASKED
            ]
            for (first, second), asked in zip(answers, ASKED, strict=True):
                assert first == second, asked
            assert all(f"v{version}x" in json.dumps(pair) for pair in answers[:3])
            assert f"practices/new-{version}" in json.dumps(answers[4])
        assert set(proxy.used) == {one.port, two.port}
