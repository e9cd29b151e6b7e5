"""Several processes behind one port."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sage.access.limits import Limits
from sage.access.token_file import TokenFile
from sage.http.metrics import CounterMetric, Histogram, added_up, gauge, rendered
from sage.http.workers import SharedMemory, Siblings, WorkerSlot, divided
from tests.commands import Run, run
from tests.httpkit import Client, Process, wait_until_ready, write_base
from tests.processes import clean_environment

__all__ = ["run"]

PATIENCE = 120


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_base(tmp_path / "repo")


def until(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.05)


def workers_of(process: Process) -> list[int]:
    parent = process.popen.pid
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def another(process: Process, known: set[int]) -> int:
    """The worker that is none of these, once there is one."""
    until(lambda: not known.issuperset(workers_of(process)))
    return next(one for one in workers_of(process) if one not in known)


def metric(client: Client, line: str, *headers: str) -> bool:
    with contextlib.suppress(ConnectionError):
        return line in client.get("/metrics", *headers).body.decode().splitlines()
    return False


def asked(client: Client, query: str) -> bool:
    """Whether a search is answered; one that a dying worker had accepted is asked again."""
    with contextlib.suppress(ConnectionError):
        return "structuredContent" in client.call("sage_search", {"query": query})
    return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="UNTESTED: no /proc here")
def test_two_workers_are_one_server_and_one_that_dies_is_replaced(root: Path) -> None:
    with Process(root, "--workers", "2") as process:
        client = Client(process.port)
        wait_until_ready(client)
        until(lambda: metric(client, "sage_workers 2"))
        for number in range(20):
            assert asked(client, f"walrus {number}")
        answered = 'sage_calls_total{tool="sage_search",outcome="ok"} 20'
        until(lambda: metric(client, answered))
        before = workers_of(process)
        os.kill(before[0], signal.SIGKILL)
        process.line("a worker ended and is replaced")
        until(lambda: asked(client, "walrus"))
        until(lambda: metric(client, "sage_workers 2"))
        after = workers_of(process)
        assert len(after) == 2
        assert before[0] not in after
        # What the dead one had counted still counts.
        until(lambda: metric(client, 'sage_calls_total{tool="sage_search",outcome="ok"} 21'))
        assert process.stop() == 0
    assert process.lines[-1]["message"] == "ended"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="UNTESTED: no /proc here")
def test_a_worker_that_ends_again_and_again_ends_no_other(root: Path) -> None:
    with Process(root, "--workers", "2") as process:
        client = Client(process.port)
        until(lambda: metric(client, "sage_workers 2"))
        healthy, victim = workers_of(process)
        for _ in range(6):
            os.kill(victim, signal.SIGKILL)
            victim = another(process, {healthy, victim})
        until(lambda: metric(client, "sage_workers 2"))
        assert healthy in workers_of(process)
        assert process.stop() == 0


def test_the_next_worker_waits_longer_until_one_has_served_for_a_while() -> None:
    slot, pauses = WorkerSlot(), []
    for _ in range(8):
        slot.end(now=100.0)
        pauses.append(round(slot.starts_at - 100, 1))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    slot.serves_since = 100.0
    slot.end(now=111.0)
    assert (slot.starts_at, slot.short_lives) == (111.0, 0)


def test_what_a_worker_cannot_start_with_ends_the_server(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("none")
    command = [sys.executable, "-m", "sage", "serve", "--http", "--port", "0"]
    command += ["--engine", "opensearch", "--url", "https://127.0.0.1:1"]
    command += ["--ca-file", str(authority)]
    environment = clean_environment(tmp_path)
    alone, several = (
        subprocess.run(
            [*command, *more],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        for more in ((), ("--workers", "2"))
    )
    assert (alone.returncode, alone.stderr.count("\n")) == (4, 1)
    assert "holds no certificates" in alone.stderr
    assert (several.returncode, several.stderr) == (4, alone.stderr)


def test_a_token_that_is_revoked_is_revoked_in_every_worker(root: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    good = f"Authorization: Bearer {tokens.create('ci')}"
    stays = f"Authorization: Bearer {tokens.create('stays')}"
    flags = ("--workers", "2", "--require-token", "--tokens", str(tokens.path))
    with Process(root, *flags) as process:
        client = Client(process.port)
        wait_until_ready(client)
        until(lambda: metric(client, "sage_workers 2", stays))
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert {client.post(ping, good).status for _ in range(8)} == {200}
        tokens.revoke("ci")
        assert {client.post(ping, good).status for _ in range(8)} == {401}
        assert process.stop() == 0


def test_the_page_of_a_worker_holds_what_all_of_them_counted() -> None:
    memory = SharedMemory(2)
    first, second = (page(calls, ready=1) for calls in (3, 4))
    memory.publish(0, first)
    memory.publish(1, second)
    assert b'calls{tool="a"} 7' in Siblings(memory, 0).added_up(first)
    memory.retire(1)
    shown = Siblings(memory, 0).added_up(first)
    assert b'calls{tool="a"} 7' in shown
    assert b"sage_streams 5\n" in shown  # of those who live
    assert b"sage_ready 1\n" in shown
    memory.publish(1, page(10, ready=0))
    assert b'calls{tool="a"} 17' in Siblings(memory, 0).added_up(first)


def page(calls: int, ready: int) -> bytes:
    counter, seconds = CounterMetric("calls", "Calls.", ("tool",)), Histogram("took", "Seconds.")
    counter.add("a", by=calls)
    seconds.observe(0.2)
    gauges = [gauge("sage_streams", "Streams.", 5), gauge("sage_ready", "Ready.", ready)]
    return rendered([counter.lines(), seconds.lines(), *gauges])


def test_pages_are_added_line_by_line() -> None:
    both = added_up([page(1, 1), page(2, 0)])
    assert b'took_bucket{le="+Inf"} 2' in both
    assert b"took_sum 0.4" in both
    assert b"sage_streams 10" in both
    assert both.count(b"# HELP calls") == 1
    assert added_up([b"", page(2, 0)], only_counters=True).count(b"sage_ready") == 2  # its head


def test_a_page_that_is_being_written_is_not_read() -> None:
    memory = SharedMemory(1)
    memory.publish(0, b"whole")
    memory._pages[8:9] = b"W"
    assert memory.page(0) == b""
    memory.publish(0, b"x" * 10**6)
    assert memory.page(0) == b""


def test_limits_are_divided_and_rates_are_not() -> None:
    whole = Limits()
    parts = divided(whole, 3)
    assert [part.running for part in parts] == [3, 3, 2]
    for name in ("running", "waiting", "connections", "address_connections"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name)
    for name in ("streams", "caller_streams", "held_bytes"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name)
    for part in parts:
        assert (part.token_rate, part.answer_bytes) == (whole.token_rate, whole.answer_bytes)


def test_of_few_streams_every_worker_has_one() -> None:
    parts = divided(Limits(running=64, caller_streams=32), 64)
    assert {part.caller_streams for part in parts} == {1}
    assert {part.held_bytes for part in parts} == {Limits().answer_bytes}


def test_fewer_calls_than_workers_are_refused(run: Run) -> None:
    code, out, err = run("serve", "--http", "--running", "1", "--workers", "2", "--port", "0")
    assert (code, out) == (2, "")
    assert "--running 1 is less than --workers 2" in err


def test_who_signs_in_with_one_worker_is_known_to_all_until_the_token_goes(
    root: Path, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token = tokens.create("ana")
    flags = ("--workers", "2", "--page", "--require-token", "--tokens", str(tokens.path))
    with Process(root, *flags) as process:
        client = Client(process.port)
        wait_until_ready(client)
        until(lambda: metric(client, "sage_workers 2", f"Authorization: Bearer {token}"))
        cookies = [f"Cookie: {sign_in(client, token)}" for _ in range(2)]
        seen = [client.get("/", cookie).status for cookie in cookies for _ in range(8)]
        assert set(seen) == {200}
        client.send("POST", "/sign-out", cookies[0])
        assert {client.get("/", cookies[0]).status for _ in range(8)} == {401}
        tokens.revoke("ana")
        assert {client.get("/", cookies[1]).status for _ in range(8)} == {401}
        assert process.stop() == 0


def sign_in(client: Client, token: str) -> str:
    form = "Content-Type: application/x-www-form-urlencoded"
    answer = client.send("POST", "/sign-in", form, body=f"token={token}".encode())
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]
