"""One request to one node: over in its time and of a size, whatever the node does."""

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator

import pytest

from sage.cluster import exchange
from sage.cluster.connection import Connection
from sage.cluster.exchange import NodeConnection, from_json
from sage.cluster.options import cluster_options
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded, Unavailable

Say = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"Content-Length: 2\r\n\r\n{}"


class Node(socketserver.ThreadingTCPServer):
    """Says what a test lets it say."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.say: Say = said(WHOLE)
        self.asked = 0
        """Connections that asked for something."""
        self.answered = 0
        """Answers of those that are kept."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.BaseRequestHandler):
    server: Node

    def handle(self) -> None:
        try:
            while b"\r\n\r\n" not in self.request.recv(65_536):
                pass
            self.server.asked += 1
            self.server.say(self.request)
        except OSError:
            """The other side has gone."""


@pytest.fixture
def node() -> Iterator[Node]:
    with running() as one:
        yield one


@pytest.fixture
def other() -> Iterator[Node]:
    with running() as one:
        yield one


class running:  # noqa: N801 - used as a statement
    def __enter__(self) -> Node:
        self.node = Node()
        self.thread = threading.Thread(target=self.node.serve_forever, args=(0.01,))
        self.thread.start()
        return self.node

    def __exit__(self, *_: object) -> None:
        self.node.shutdown()
        self.node.server_close()
        self.thread.join()


def said(data: bytes) -> Say:
    """Says something and closes."""
    return lambda wire: wire.sendall(data)


def said_again(node: Node, data: bytes) -> Say:
    """Answers every request of a connection with the same."""

    def say(wire: socket.socket) -> None:
        while True:
            node.answered += 1
            wire.sendall(data)
            if not wire.recv(65_536):
                return

    return say


def dripped(begin: bytes, drop: bytes, end: bytes) -> Say:
    """Says something byte by byte for three seconds, then the rest of it."""
    pause = threading.Event()

    def say(wire: socket.socket) -> None:
        wire.sendall(begin)
        for _ in range(300):
            wire.sendall(drop)
            pause.wait(0.01)
        wire.sendall(end)

    return say


DRIPPING = {
    "head": dripped(OK + b"X-Slow: ", b"x", b"\r\nContent-Length: 2\r\n\r\n{}"),
    "heads": dripped(b"", b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE),
    "body": dripped(OK + b"Content-Length: 302\r\n\r\n", b" ", b"{}"),
    "chunks": dripped(
        OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", b"2\r\n{}\r\n0\r\n\r\n"
    ),
}


def ask(*urls: str, limit_ms: float = 60_000, try_seconds: float = 3.0) -> object:
    with Connection(cluster_options(urls, "sage", {}), sleep=lambda _: None) as connection:
        connection.TRY_SECONDS = try_seconds
        return connection.get("/", Deadline(limit_ms))


@pytest.mark.parametrize("part", DRIPPING)
def test_an_answer_that_drips_ends_at_the_deadline(node: Node, part: str) -> None:
    node.say = DRIPPING[part]
    with pytest.raises(TimeoutExceeded, match="did not answer in time"):
        ask(node.url, limit_ms=300)


@pytest.mark.parametrize("part", DRIPPING)
def test_a_node_whose_answer_drips_is_left_for_another(node: Node, other: Node, part: str) -> None:
    node.say = DRIPPING[part]
    assert ask(node.url, other.url, try_seconds=0.2) == {}
    assert (node.asked, other.asked) == (1, 1)


def test_a_request_that_is_not_taken_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Connection(cluster_options([url], "sage", {})) as connection:
            large = b" " * 50_000_000
            with pytest.raises(TimeoutExceeded, match="did not answer in time"):
                connection.request("POST", "/_bulk", large, Deadline(300))


@pytest.mark.parametrize(
    "begin",
    [
        OK + b"Content-Length: 900000000000\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 12 + b"\r\n" + b" " * 2_000,
        OK + b"\r\n" + b" " * 2_000,
        OK + b"Content-Length: 2000\r\n\r\n" + b" " * 2_000,
    ],
)
def test_an_answer_that_is_too_large_is_not_read(
    node: Node, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr(exchange, "MOST_BYTES", 1_000)
    node.say = said(begin)
    with pytest.raises(Unavailable, match="its answer has more than"):
        ask(node.url)
    assert node.asked == 1


@pytest.mark.parametrize("form", ["length", "chunks", "close"])
def test_every_form_of_an_answer_is_read_whole(node: Node, form: str) -> None:
    want = {"text": "x" * 3_000_000}
    body = json.dumps(want).encode()
    heads = {
        "length": b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        "chunks": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
        "close": b"\r\n" + body,
    }
    node.say = said(OK + heads[form])
    assert ask(node.url) == want


STRANGE = {
    "a page": OK + b"Content-Length: 6\r\n\r\n<html>",
    "a list": OK + b"Content-Length: 2\r\n\r\n[]",
    "nothing": OK + b"Content-Length: 0\r\n\r\n",
    "no number": OK + b'Content-Length: 9\r\n\r\n{"a":NaN}',
    "a deep object": OK + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000,
    "a long number": OK + b'Content-Length: 5006\r\n\r\n{"a":' + b"9" * 5_000 + b"}",
    "no text": OK + b'Content-Length: 9\r\n\r\n{"a":"\xff"}',
    "another address": b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n",
    "not found": b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nNot Found",
    "not found, of others": b'HTTP/1.1 404 X\r\nContent-Length: 12\r\n\r\n{"error":{}}',
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "another version": b"HTTP/2 200\r\nContent-Length: 2\r\n\r\n{}",
    "a long line": OK + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    "many lines": OK + b"X: x\r\n" * 200 + b"\r\n{}",
    "another coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("answer", STRANGE)
def test_a_node_that_is_none_of_opensearch_is_left_for_another(
    node: Node, other: Node, answer: str
) -> None:
    node.say = said(STRANGE[answer])
    assert ask(node.url, other.url) == {}
    assert (node.asked, other.asked) == (1, 1)
    with pytest.raises(Unavailable, match=f"{node.url} does not answer like OpenSearch: "):
        ask(node.url)


def test_a_node_that_leaves_in_the_middle_is_left_for_another(node: Node, other: Node) -> None:
    node.say = said(OK + b"Content-Length: 1000\r\n\r\n{")
    assert ask(node.url, other.url) == {}
    with pytest.raises(Unavailable, match="left in the middle of its answer"):
        ask(node.url)


KEPT = {
    "the usual": (WHOLE, 1),
    "the usual, in chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 1),
    "one that closes": (OK + b"Connection: Close\r\nContent-Length: 2\r\n\r\n{}", 3),
    "an old version": (WHOLE.replace(b"1.1", b"1.0"), 3),
}


@pytest.mark.parametrize("form", KEPT)
def test_a_connection_is_kept_where_the_node_keeps_it(node: Node, form: str) -> None:
    answer, connections = KEPT[form]
    node.say = said_again(node, answer)
    with Connection(cluster_options([node.url], "sage", {})) as connection:
        for _ in range(3):
            assert connection.get("/", Deadline(60_000)) == {}
    assert (node.asked, node.answered) == (connections, 3)


def test_a_connection_that_was_closed_meanwhile_is_opened_again(node: Node) -> None:
    with Connection(cluster_options([node.url], "sage", {}), sleep=lambda _: None) as connection:
        for _ in range(3):  # it closes after each answer without a word of it
            connection.request("POST", "/x", {}, Deadline(60_000))
    assert node.asked == 3


def test_what_may_not_be_sent_twice_is_not(node: Node, other: Node) -> None:
    node.say = said(STRANGE["a page"])
    options = cluster_options([node.url, other.url], "sage", {})
    with Connection(options) as connection, pytest.raises(Unavailable, match="like OpenSearch"):
        connection.request("PUT", "/x", {"a": 1}, Deadline(60_000), again=False)
    assert other.asked == 0


def test_a_slow_cluster_is_asked_twice_and_no_more() -> None:
    """To ask every node of it would be three times its load, and no answer."""

    def slow(wire: socket.socket) -> None:
        threading.Event().wait(0.5)
        wire.sendall(WHOLE)

    with running() as one, running() as two, running() as three:
        nodes = (one, two, three)
        for node in nodes:
            node.say = slow
        assert ask(*(node.url for node in nodes), try_seconds=0.2) == {}
        assert [node.asked for node in nodes] == [1, 1, 0]


def test_half_a_deadline_is_left_to_the_second_node(node: Node, other: Node) -> None:
    node.say = dripped(b"", b" ", b"")
    assert ask(node.url, other.url, limit_ms=2_000, try_seconds=60.0) == {}


def test_an_address_of_the_sixth_version_needs_no_port() -> None:
    options = cluster_options(["http://[::1]"], "sage", {})
    with Connection(options) as connection:
        opened = connection._opened("http://[::1]")
    assert (opened.host, opened.port) == ("::1", 80)


class _Wire:
    """In place of a socket: what was sent, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.pieces.append(bytes(data))


@pytest.mark.parametrize(("size", "pieces"), [(10, 1), (1_000_000, 2)])
def test_a_request_is_sent_in_one_piece_unless_it_is_large(size: int, pieces: int) -> None:
    connection, wire = NodeConnection("search.example.com"), _Wire()
    connection.sock = wire
    connection.request("POST", "/_msearch", b"x" * size, {"Content-Type": "application/json"})
    assert len(wire.pieces) == pieces
    assert b"".join(wire.pieces).endswith(b"\r\n\r\n" + b"x" * size)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "[" * 200_000, "9" * 5_000, b"\xff"])
def test_what_is_no_json_of_the_standard_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        from_json(text)
