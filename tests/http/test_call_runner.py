"""Requests that are taken in, one after another once a caller has had its share."""

import asyncio
from pathlib import Path

import pytest

from sage.access.limits import Limits
from sage.access.refusals import busy
from sage.http.call_runner import REQUEST_SECONDS, CallRunner
from sage.http.fair_queue import SAVED_SECONDS
from tests.conftest import Clock
from tests.httpkit import serving, write_base
from tests.processes import PATIENCE_SECONDS


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_who_floods_has_its_requests_taken_in_one_after_another() -> None:
    async def work() -> None:
        runner = CallRunner(Limits(), clock := Clock())
        await runner.take_in("modest")
        for _ in range(round(SAVED_SECONDS / REQUEST_SECONDS) - 1):
            await runner.take_in("greedy")
        flood = [asyncio.create_task(runner.take_in("greedy")) for _ in range(100)]
        await settle()
        saved_up = sum(task.done() for task in flood)
        assert saved_up in (1, 2)
        await runner.take_in("modest")
        # Half of the time that passes is the greedy one's: enough for ten.
        clock.tick(20 * REQUEST_SECONDS)
        while sum(task.done() for task in flood) == saved_up:
            await asyncio.sleep(0.01)
        for _ in range(100):
            await settle()
        assert sum(task.done() for task in flood) - saved_up in range(8, 10 + Limits().running)
        for task in flood:
            task.cancel()

    asyncio.run(asyncio.wait_for(work(), PATIENCE_SECONDS))


def test_nothing_is_read_of_a_request_that_is_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: CallRunner, caller: str) -> None:
        raise busy()

    with serving(write_base(tmp_path / "repo"), page=True) as client:
        assert client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 200
        monkeypatch.setattr(CallRunner, "take_in", refuse)
        body = b"{" * 100_000  # of which only the head arrives
        for method, path in (("POST", "/mcp"), ("GET", "/")):
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
            assert client.raw(f"{head}\r\n\r\n".encode()).status == 503
