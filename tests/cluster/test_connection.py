"""The way to a cluster: what is refused, what is said, and that nothing secret is."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sage.cluster.backend import wait_for_cluster
from sage.cluster.connection import Connection, PatientConnection
from sage.cluster.node_errors import Busy, DiskFull, Misconfigured
from sage.cluster.options import cluster_options
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded, Unavailable
from sage.publish.lock import PublishLock
from sage.settings import rootless_settings
from tests.commands import run

__all__ = ["run"]

GONE = "http://127.0.0.1:9"


class Cluster(ThreadingHTTPServer):
    """Says what it is told to, as a cluster would."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.refusals = 0
        """So many requests are refused before one is answered."""
        self.answer: object = {"version": {"distribution": "opensearch", "number": "2.5.0"}}
        self.seen: list[str | None] = []
        self.paths: list[str] = []
        self.let_go = threading.Event()
        self.let_go.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Cluster

    def do_GET(self) -> None:
        self.server.seen.append(self.headers["Authorization"])
        self.server.paths.append(self.path)
        self.server.let_go.wait(30)
        data = json.dumps(self.server.answer).encode()
        is_busy = len(self.server.seen) <= self.server.refusals
        self.send_response(429 if is_busy else self.server.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.let_go.set()
        server.shutdown()
        thread.join()


def ask(*urls: str, limit_ms: float = 20_000) -> None:
    with Connection(cluster_options(urls, "sage", {}), sleep=lambda _: None) as connection:
        connection.check_version(Deadline(limit_ms))


def test_a_node_that_is_gone_is_left_for_another(cluster: Cluster) -> None:
    ask(GONE, cluster.url)
    assert len(cluster.seen) == 1


def test_a_node_that_says_nothing_is_left_for_another(cluster: Cluster) -> None:
    """As a machine that lost its power, and a network that lost its way: nothing is refused."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        urls = (f"http://127.0.0.1:{silent.getsockname()[1]}", cluster.url)
        with Connection(cluster_options(urls, "sage", {})) as connection:
            connection.TRY_SECONDS = 0.2
            connection.get("/", Deadline(60_000))
            connection.get("/", Deadline(60_000))
        assert len(cluster.seen) == 2
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):  # it was not asked again
            silent.accept()


def test_a_cluster_that_is_gone_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        ask(GONE)


def test_a_cluster_that_is_slow_is_a_timeout_at_the_deadline(cluster: Cluster) -> None:
    cluster.let_go.clear()
    with pytest.raises(TimeoutExceeded, match="did not answer in time"):
        ask(cluster.url, limit_ms=300)


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (200, {"version": {"distribution": "opensearch", "number": "9.0.0"}}, "needs OpenSearch"),
        (200, {"version": {"number": "8.1.0"}}, "needs OpenSearch"),
        (401, {}, "refuses these credentials"),
        (200, {"version": "2.5.0"}, "in another form than OpenSearch"),
        (200, {}, "in another form than OpenSearch"),
        (404, {"detail": "Not Found"}, "404 without a reason; look whether --url names"),
        (307, {}, "answers 307, which leads to another address"),
        (403, {"error": {"type": "cluster_block_exception", "reason": "x"}}, "takes no writes"),
        (503, {"error": {"type": "x", "reason": "all shards failed"}}, "the cluster is red"),
        (429, {"error": "busy"}, "says 429"),
        (500, {"error": "broken"}, "says 500"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_said(
    cluster: Cluster, status: int, answer: object, said: str
) -> None:
    cluster.status, cluster.answer = status, answer
    with pytest.raises(Unavailable, match=said):
        ask(cluster.url)


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (400, "", "no handler found for uri [/a/b/] and method [GET]"),
        (405, "", "Incorrect HTTP method for uri [/a/b/] and method [GET], allowed: [PUT]"),
        (404, "index_not_found_exception", "no such index [a]"),
    ],
)
def test_a_wrong_path_of_an_address_is_told_as_that(
    cluster: Cluster, status: int, kind: str, reason: str
) -> None:
    cluster.status = status
    cluster.answer = {"error": {"type": kind, "reason": reason} if kind else reason}
    with pytest.raises(Misconfigured, match=r"; check the path of --url$"):
        ask(f"{cluster.url}/a/b")
    with pytest.raises(Unavailable) as told:
        ask(cluster.url)
    assert "path" not in str(told.value)


def test_a_name_that_cannot_be_looked_up_is_told_as_that() -> None:
    with pytest.raises(Unavailable, match=r"; check the name in --url$"):
        ask("http://nowhere.invalid:9200")


def test_whoever_publishes_waits_for_a_cluster_that_is_busy(cluster: Cluster) -> None:
    cluster.refusals = 7
    pauses: list[float] = []
    options = cluster_options([cluster.url], "sage", {})
    with PatientConnection(options, pauses.append) as connection:
        connection.check_version(Deadline(20_000))
    assert len(cluster.seen) == 8
    assert max(pauses) >= 1.0


def test_nobody_waits_for_a_cluster_that_stays_busy_or_is_gone(cluster: Cluster) -> None:
    cluster.refusals = 1_000
    pauses: list[float] = []
    options = cluster_options([cluster.url], "sage", {})
    with (
        PatientConnection(options, pauses.append) as connection,
        pytest.raises(Unavailable, match="says 429"),
    ):
        connection.check_version(Deadline(20_000))
    assert sum(pauses) < 60
    pauses.clear()
    with (
        PatientConnection(cluster_options([GONE], "sage", {}), pauses.append) as connection,
        pytest.raises(Unavailable, match="cannot be reached"),
    ):
        connection.check_version(Deadline(20_000))
    assert max(pauses) < 1


def test_what_may_not_be_sent_twice_is_sent_once_whatever_stands_before_the_cluster(
    cluster: Cluster,
) -> None:
    cluster.status, cluster.answer = 504, {"error": "a proxy waited for too long"}
    pauses: list[float] = []
    options = cluster_options([cluster.url, cluster.url], "sage", {})
    with (
        PatientConnection(options, pauses.append) as connection,
        pytest.raises(Unavailable, match="says 504"),
    ):
        connection.request("GET", "/", None, Deadline(20_000), again=False)
    assert (len(cluster.seen), pauses) == (1, [])


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "busy"), (503, "cluster_manager_not_discovered_exception")]
)
def test_what_was_not_begun_is_sent_again(cluster: Cluster, status: int, kind: str) -> None:
    cluster.status, cluster.answer = status, {"error": {"type": kind, "reason": "x"}}
    options = cluster_options([cluster.url], "sage", {})
    with (
        Connection(options, sleep=lambda _: None) as connection,
        pytest.raises(Busy, match=kind),
    ):
        connection.request("GET", "/", None, Deadline(20_000), again=False)
    assert len(cluster.seen) == 3


def test_what_may_not_be_sent_twice_goes_past_nodes_that_nobody_reaches(cluster: Cluster) -> None:
    options = cluster_options([GONE, "http://nowhere.invalid:9200", cluster.url], "sage", {})
    with Connection(options) as connection:
        connection.request("GET", "/", None, Deadline(20_000), again=False)
    assert len(cluster.seen) == 1


def test_a_replica_does_not_wait_for_what_no_time_cures(cluster: Cluster) -> None:
    cluster.status, cluster.answer = 401, {}
    with pytest.raises(Unavailable, match="refuses these credentials"):
        wait_for_cluster(cluster_options([cluster.url], "sage", {}), rootless_settings({}))
    assert len(cluster.seen) == 1


def test_a_lock_that_cannot_be_released_hides_no_other_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Connection(cluster_options([GONE], "sage", {}), lambda _: None) as connection:
        PublishLock(connection, "payments").release(Deadline(20_000))
    assert "the lock stays until it runs out" in caplog.text


def test_credentials_are_sent_and_never_shown(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("ada:geheim\n")
    file.chmod(0o600)
    options = cluster_options([cluster.url], "sage", {}, file)
    cluster.status = 401
    with Connection(options) as connection, pytest.raises(Unavailable) as refused:
        connection.check_version(Deadline(20_000))
    assert cluster.seen == ["Basic YWRhOmdlaGVpbQ=="]
    assert "geheim" not in f"{options!r} {refused.value}"


def test_every_request_goes_below_the_path_of_the_address(cluster: Cluster) -> None:
    with Connection(cluster_options([f"{cluster.url}/search/v2/"], "sage", {})) as connection:
        connection.check_version(Deadline(20_000))
        connection.get("/_alias/sage", Deadline(20_000))
    assert cluster.paths == ["/search/v2/", "/search/v2/_alias/sage"]


def test_a_full_disk_is_no_cluster_that_is_busy(cluster: Cluster) -> None:
    reason = "index [x] blocked by: [TOO_MANY_REQUESTS/12/index has read-only-allow-delete block];"
    cluster.status = 429
    cluster.answer = {"error": {"type": "cluster_block_exception", "reason": reason}}
    with pytest.raises(DiskFull, match="free room on its disks"):
        ask(cluster.url)
    assert len(cluster.seen) == 1
