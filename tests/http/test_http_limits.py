"""What one caller may take, what happens to the others meanwhile, and how the server ends."""

import contextlib
import gc
import json
import logging
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sage.access.limits import HEAR_OUT_BYTES, Limits
from sage.access.token_file import TokenFile
from sage.deadline import Deadline
from sage.http.connections import MAX_PARTS, BoundedProtocol
from sage.http.run import ACCEPTED_AT_ONCE
from sage.knowledge import KnowledgeBase
from sage.settings import Settings
from tests.httpkit import NEW, Client, Reply, read_reply, serving, write_base

# How long a test waits for what must happen, on a machine with ten times more to do than cores.
PATIENCE = 120
SEARCH = {"name": "sage_search", "arguments": {"query": "tests"}}


class Held(KnowledgeBase):
    """A knowledge base whose searches wait until they are let go or given up."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.waiting = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.given_up = threading.Event()

    def search(self, query: str, **options: Any) -> Any:
        deadline: Deadline = options["deadline"]
        self.waiting.release()
        while not self.let_go.wait(0.01):
            if deadline.expired:
                self.given_up.set()
                break
        return super().search(query, **{**options, "deadline": None})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_base(tmp_path / "repo")


def request(params: Any = SEARCH, header: str = "X-Request-Id: 1") -> bytes:
    """A call of a tool as it goes over the transport."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\n{header}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def start(client: Client) -> socket.socket:
    """A connection on which a search was asked for and whose answer nobody reads yet."""
    connection = socket.create_connection(("127.0.0.1", client.port), PATIENCE)
    connection.sendall(request())
    return connection


@contextmanager
def holding(client: Client, calls: int) -> Iterator[list[socket.socket]]:
    """Calls that run and do not end before the block does."""
    held = client.knowledge
    assert isinstance(held, Held)
    connections = [start(client) for _ in range(calls)]
    for _ in connections:
        assert held.waiting.acquire(timeout=PATIENCE)
    try:
        yield connections
    finally:
        held.let_go.set()
        for connection in connections:
            connection.close()


def is_dropped(connection: socket.socket) -> bool:
    """Whether the other end closes within the time of a test."""
    connection.settimeout(PATIENCE)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def raw(client: Client, head: str, body: bytes = b"") -> Reply:
    lines = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n"
    return client.raw(lines.encode() + b"\r\n" + body)


def test_a_request_may_have_256_kilobytes(root: Path) -> None:
    with serving(root) as client:
        full = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "x": ""}).encode()
        fits = full[:-2] + b"x" * (256 * 1024 - len(full)) + full[-2:]
        accepts = "Accept: application/json\r\n"
        assert raw(client, f"{accepts}Content-Length: {len(fits)}", fits).status == 200
        longer = fits + b" "
        refused = raw(client, f"{accepts}Content-Length: {len(longer)}", longer)
        assert (refused.status, refused.headers["connection"]) == (413, "close")
        part = f"{len(longer):x}\r\n".encode() + longer + b"\r\n0\r\n\r\n"
        assert raw(client, "Transfer-Encoding: chunked", part).status == 413
        assert raw(client, "Content-Length: 999999999999").status == 413


def test_slow_senders_and_silent_connections_are_dropped(root: Path) -> None:
    limits = Limits(header_seconds=0.2, body_seconds=0.2)
    with serving(root, limits=limits) as client:
        assert raw(client, "Content-Length: 10", b"12345").status == 408
        address = ("127.0.0.1", client.port)
        with socket.create_connection(address) as silent, socket.create_connection(address) as slow:
            slow.sendall(b"POST /mcp HTTP/1.1\r\nHost: loc")
            assert is_dropped(silent)
            assert is_dropped(slow)
        with socket.create_connection(address) as second:
            second.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_reply(second).status == 200
            second.sendall(b"GET /hea")
            assert is_dropped(second)
        assert client.get("/healthz").status == 200


def test_an_idle_connection_is_closed_after_its_time(root: Path) -> None:
    with (
        serving(root, limits=Limits(idle_seconds=1)) as client,
        socket.create_connection(("127.0.0.1", client.port)) as idle,
    ):
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_reply(idle).status == 200
        assert is_dropped(idle)


def test_an_answer_that_nobody_fetches_is_given_up(root: Path) -> None:
    (root / ".knowledge" / "core" / "large.md").write_text("# Large\n\n" + "word " * 100_000)
    with serving(root, limits=Limits(reader_seconds=0.3)) as client, socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        reader.connect(("127.0.0.1", client.port))
        params = {"layer": "core", "max_tokens": 1_000_000, "timeout_ms": 60_000}
        reader.sendall(request({"name": "sage_get_knowledge", "arguments": params}))
        assert reader.recv(10) == b"HTTP/1.1 2"
        until = time.monotonic() + PATIENCE
        while client.server.server_state.connections and time.monotonic() < until:
            time.sleep(0.02)
        assert not client.server.server_state.connections
        assert client.get("/healthz").status == 200


def test_an_answer_that_is_too_long_says_so(root: Path) -> None:
    with serving(root, limits=Limits(answer_bytes=600)) as client:
        answer = client.call("sage_get_context", {"task_type": "coding"})
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith("INVALID_INPUT: the answer has more than")
        assert "error" in client.ask("resources/list")


def test_a_token_is_limited_in_its_rate(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    busy, other = (f"Authorization: Bearer {tokens.create(name)}" for name in ("busy", "other"))
    limits = Limits(token_rate=0.1, burst=2)
    with serving(root, tokens=tokens.path, require_token=True, limits=limits) as client:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert [client.post(ping, busy).status for _ in range(2)] == [200, 200]
        refused = client.post(ping, busy)
        assert (refused.status, refused.headers["retry-after"]) == (429, "10")
        assert client.post(ping, other).status == 200
        assert client.get("/healthz").status == 200


def test_an_address_is_limited_in_its_rate_before_its_token_is_looked_at(
    root: Path, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    good = f"Authorization: Bearer {tokens.create('good')}"
    options: dict[str, Any] = {
        "tokens": tokens.path,
        "require_token": True,
        "trust_proxies": ("127.0.0.1",),
        "limits": Limits(address_rate=0.1, burst=2),
    }
    with serving(root, **options) as client:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        sent = [client.post(ping, "X-Forwarded-For: 10.0.0.9").status for _ in range(3)]
        assert sent == [401, 401, 429]
        assert client.post(ping, "X-Forwarded-For: 10.0.0.9", good).status == 429
        assert client.post(ping, "X-Forwarded-For: 10.0.0.8", good).status == 200


def test_cheap_calls_do_not_wait_behind_dear_ones(root: Path) -> None:
    with serving(root, Held, limits=Limits(running=2)) as client, holding(client, 2):
        waiting = start(client)
        assert not client.call("sage_info", {}).get("isError")
        assert client.ask("tools/list")["tools"]
        assert client.get("/healthz").status == 200
        assert client.get("/readyz").status == 200
        page = client.get("/metrics").body
        assert b"sage_calls_running 2" in page
        assert b"sage_calls_waiting 1" in page
        waiting.close()


def test_more_calls_than_can_wait_are_told_to_come_again(root: Path) -> None:
    with serving(root, Held, limits=Limits(running=1, waiting=0)) as client, holding(client, 1):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": SEARCH}
        refused = client.post(body)
        assert (refused.status, refused.headers["retry-after"]) == (503, "2")


def test_a_call_ends_when_its_client_goes(root: Path) -> None:
    with serving(root, Held) as client, holding(client, 1) as (connection,):
        connection.close()
        held = client.knowledge
        assert isinstance(held, Held)
        assert held.given_up.wait(PATIENCE)


def test_connections_have_a_bound_and_the_one_idle_for_longest_makes_way(root: Path) -> None:
    with serving(root, Held, limits=Limits(connections=2)) as client, holding(client, 1):
        address = ("127.0.0.1", client.port)
        with socket.create_connection(address) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_reply(idle).status == 200
            with socket.create_connection(address) as silent:
                assert is_dropped(idle)
                with socket.create_connection(address) as newcomer:
                    assert is_dropped(silent)
                    newcomer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert read_reply(newcomer).status == 200


def test_a_newcomer_goes_only_when_every_other_is_being_answered(root: Path) -> None:
    with (
        serving(root, Held, limits=Limits(connections=2)) as client,
        holding(client, 2),
        socket.create_connection(("127.0.0.1", client.port)) as beyond,
    ):
        assert is_dropped(beyond)


def test_a_running_call_is_finished_before_the_end(root: Path) -> None:
    with serving(root, Held) as client, holding(client, 1) as (connection,):
        client.server.end()
        held = client.knowledge
        assert isinstance(held, Held)
        threading.Timer(0.3, held.let_go.set).start()
        reply = read_reply(connection)
        assert reply.json["result"]["structuredContent"]["total"] == 3


def test_a_call_that_never_ends_does_not_hold_up_the_end(root: Path) -> None:
    with serving(root, Held, grace_seconds=1) as client:
        connection = start(client)
        held = client.knowledge
        assert isinstance(held, Held)
        assert held.waiting.acquire(timeout=PATIENCE)
        client.server.end()
        assert read_reply(connection).status == 503
        assert held.given_up.wait(PATIENCE)
        connection.close()


def test_a_client_that_listens_hears_of_a_change_until_the_server_ends(root: Path) -> None:
    with serving(root) as client, listen(client) as listener:
        assert b"text/event-stream" in listener.recv(65536)
        listener.settimeout(0.5)
        heard = b""
        for number in range(2 * PATIENCE):
            (root / ".knowledge" / "core" / f"new-{number}.md").write_text("# New\n")
            with contextlib.suppress(TimeoutError):
                heard += listener.recv(65536)
            if b"list_changed" in heard:
                break
        assert b"list_changed" in heard
        client.server.end()
        assert is_dropped(listener)


def hears(listener: socket.socket) -> bool:
    return b"text/event-stream" in listener.recv(65536)


def test_who_listens_once_too_often_ends_the_own_oldest_stream(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    greedy, modest = (f"Authorization: Bearer {tokens.create(name)}" for name in ("g", "m"))
    limits = Limits(streams=3, caller_streams=2)
    options: dict[str, Any] = {"tokens": tokens.path, "require_token": True, "limits": limits}
    with serving(root, **options) as client, contextlib.ExitStack() as open_streams:
        first, second = (open_streams.enter_context(listen(client, greedy)) for _ in range(2))
        assert hears(first)
        assert hears(second)
        third = open_streams.enter_context(listen(client, greedy))
        assert ends(first)
        assert hears(third)
        # Two others fill the server; who has the most makes way for the second.
        others = [open_streams.enter_context(listen(client, modest)) for _ in range(2)]
        assert all(map(hears, others))
        assert ends(second)


def test_what_is_open_with_a_token_ends_when_it_is_revoked(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    gone, stays = (f"Authorization: Bearer {tokens.create(name)}" for name in ("gone", "stays"))
    options: dict[str, Any] = {"tokens": tokens.path, "require_token": True}
    with (
        serving(root, Held, **options) as client,
        listen(client, gone) as listener,
        listen(client, stays) as other,
        socket.create_connection(("127.0.0.1", client.port), PATIENCE) as calling,
    ):
        assert hears(listener)
        assert hears(other)
        calling.sendall(request(SEARCH, gone))
        held = client.knowledge
        assert isinstance(held, Held)
        assert held.waiting.acquire(timeout=PATIENCE)
        tokens.revoke("gone")
        assert ends(listener)
        assert read_reply(calling).status == 401
        assert held.given_up.wait(PATIENCE)
        assert b"sage_streams 1" in client.get("/metrics", stays).body
        held.let_go.set()


def test_a_stream_ends_with_its_time(root: Path) -> None:
    with serving(root, limits=Limits(stream_seconds=0.2)) as client, listen(client) as listener:
        assert hears(listener)
        assert ends(listener)


def ends(listener: socket.socket) -> bool:
    """Whether a stream of chunks ends."""
    listener.settimeout(PATIENCE)
    heard = b""
    with contextlib.suppress(ConnectionResetError):
        while not heard.endswith(b"0\r\n\r\n") and (part := listener.recv(65536)):
            heard += part
    return True


def test_after_a_refusal_no_endless_body_is_read(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.create("ci")
    with (
        serving(root, tokens=tokens.path, require_token=True) as client,
        socket.create_connection(("127.0.0.1", client.port), PATIENCE) as sender,
    ):
        sender.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert read_reply(sender).status == 401
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 1 << 30:
                sender.sendall(chunk)
                sent += len(chunk)
        # What lies in the buffers of two sockets comes on top of what the server reads.
        assert sent < 32 * HEAR_OUT_BYTES


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("rest", [b"1\r\n \r\n" * 2 * MAX_PARTS, b"zz\r\n", b"-1\r\n"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_body_in_countless_parts_or_none_is_refused_and_no_fault_of_the_server(
    rest: bytes,
    is_known: bool,
    waits: bool,
    root: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token = tokens.create("ci")
    good = f"Authorization: Bearer {token}" if is_known else "X-Request-Id: 1"
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{good}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with (
        serving(root, tokens=tokens.path, require_token=True) as client,
        socket.create_connection(("127.0.0.1", client.port), PATIENCE) as sender,
    ):
        sender.sendall(head.encode() if waits else head.encode() + rest)
        if waits and not is_known:
            assert read_reply(sender).status == 401
        if waits:
            sender.sendall(rest)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := sender.recv(65536):
                received += part
        assert (b" 400 " in received) or not is_known
        assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []
        assert client.get("/healthz").status == 200


def test_a_body_that_is_answered_early_is_heard_out_and_the_connection_kept(
    root: Path, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    good = f"Authorization: Bearer {tokens.create('ci')}"
    with (
        serving(root, tokens=tokens.path, require_token=True) as client,
        socket.create_connection(("127.0.0.1", client.port), PATIENCE) as sender,
    ):
        sender.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        assert read_reply(sender).status == 401
        sender.sendall(b"x" * 100_000)
        whole = request(SEARCH, good)
        sender.sendall(whole[:-10])
        sender.sendall(whole[-10:])
        assert read_reply(sender).status == 200


def test_stalled_bodies_of_one_caller_do_not_keep_another_out(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    greedy, modest = (f"Authorization: Bearer {tokens.create(name)}" for name in ("g", "m"))
    limits = Limits(held_bytes=1024 * 1024, answer_bytes=64 * 1024, body_seconds=PATIENCE)
    options: dict[str, Any] = {"tokens": tokens.path, "require_token": True, "limits": limits}
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{greedy}\r\nContent-Length: 200000\r\n\r\n"
    with serving(root, **options) as client, contextlib.ExitStack() as stalled:
        first, *_ = [stall(stalled, client, head.encode()) for _ in range(8)]
        assert not client.call("sage_search", {"query": "tests"}, modest).get("isError")
        assert read_reply(first).status == 408


def stall(stack: contextlib.ExitStack, client: Client, head: bytes) -> socket.socket:
    """A connection on which half of a request was sent."""
    connection = socket.create_connection(("127.0.0.1", client.port), PATIENCE)
    stack.enter_context(connection)
    connection.sendall(head + b"x" * 100_000)
    return connection


def test_unread_answers_of_one_caller_do_not_keep_another_out(root: Path, tmp_path: Path) -> None:
    (root / ".knowledge" / "core" / "large.md").write_text("# Large\n\n" + "word " * 100_000)
    tokens = TokenFile(tmp_path / "tokens.json")
    greedy, modest = (f"Authorization: Bearer {tokens.create(name)}" for name in ("g", "m"))
    limits = Limits(held_bytes=4 * 1024 * 1024, answer_bytes=2 * 1024 * 1024, running=2)
    options: dict[str, Any] = {"tokens": tokens.path, "require_token": True, "limits": limits}
    arguments = {"layer": "core", "max_tokens": 1_000_000, "timeout_ms": 60_000}
    whole = request({"name": "sage_get_knowledge", "arguments": arguments}, greedy)
    with serving(root, **options) as client, contextlib.ExitStack() as unread:
        for _ in range(6):
            reader = unread.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader.connect(("127.0.0.1", client.port))
            reader.sendall(whole)
        for _ in range(5):
            assert not client.call("sage_search", {"query": "tests"}, modest).get("isError")


def test_silent_connections_do_not_keep_a_newcomer_out(root: Path) -> None:
    with (
        serving(root, limits=Limits(connections=20)) as client,
        contextlib.ExitStack() as silent,
    ):
        for number in range(60):
            connection = socket.create_connection(("127.0.0.1", client.port), PATIENCE)
            silent.enter_context(connection)
            connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: loc")
            if number % 10 == 0:
                assert client.get("/healthz").status == 200


def test_a_method_of_any_length_is_cut_in_the_log(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(root) as client, caplog.at_level("INFO", "sage.requests"):
        assert client.send("eyJ" * 10_000, "/healthz", host="evil.example").status == 421
        assert client.send("GET", "/" + "eyJ" * 10_000).status == 404
    fields = [record.__dict__["fields"] for record in caplog.records if "fields" in record.__dict__]
    assert fields
    assert all(len(str(value)) <= 200 for one in fields for value in one.values())


def listen(client: Client, header: str = "X-Request-Id: 1") -> socket.socket:
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"_meta": meta, "notifications": {"resourcesListChanged": True}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    body = json.dumps(message).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: {NEW}\r\n"
        f"Mcp-Method: subscriptions/listen\r\n{header}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", client.port), PATIENCE)
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.skipif(sys.platform != "linux", reason="UNTESTED: only Linux tells how many may queue")
def test_few_connections_are_taken_at_once_out_of_a_long_queue(root: Path) -> None:
    with serving(root) as client:
        [listening] = [one for server in client.server.servers for one in server.sockets]
        told = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        [may_queue] = struct.unpack_from("=I", told, 28)
        assert client.server.config.backlog == ACCEPTED_AT_ONCE < 64
        assert may_queue > 8 * ACCEPTED_AT_ONCE


def test_a_connection_that_ended_leaves_nothing_to_the_garbage_collector(root: Path) -> None:
    with serving(root) as client:
        gc.collect()
        gc.disable()
        try:
            for _ in range(50):
                client.ask("ping", {})
            left = [one for one in gc.get_objects() if isinstance(one, BoundedProtocol)]
        finally:
            gc.enable()
    assert len(left) < 10
