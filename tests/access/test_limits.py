"""What one caller may take."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from sage.access.limits import (
    MAX_CALLERS,
    STALE_SECONDS,
    HeldBytes,
    Holding,
    Limits,
    OwnBuckets,
    RateLimit,
    SharedBuckets,
    caller_of,
    oversized_answer,
    read_body,
)
from sage.access.refusals import Refused
from tests.conftest import Clock

SMALL = Limits(body_bytes=10, held_bytes=25)


class Sender:
    """A client that sends parts and then says nothing more."""

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        self._messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": True} for part in parts
        ]
        if ends:
            self._messages[-1]["more_body"] = False
        self.left = len(parts)

    async def receive(self) -> Mapping[str, Any]:
        if not self._messages:
            await asyncio.Event().wait()
        self.left -= 1
        return self._messages.pop(0)


async def gone() -> Mapping[str, Any]:
    return {"type": "http.disconnect"}


def nothing() -> None:
    return None


def read(sender: Sender, declared: str = "", limits: Limits = SMALL) -> bytes | None:
    async def run() -> bytes | None:
        with HeldBytes(25, 25).holding("a", nothing) as holding:
            return await read_body(sender.receive, declared, limits, holding)

    return asyncio.run(run())


def refusal(work: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        work()
    return caught.value


def test_a_body_is_read_whole() -> None:
    assert read(Sender(b"12345", b"", b"67890"), "10") == b"1234567890"


def test_a_body_of_no_declared_length_is_stopped_at_the_limit() -> None:
    refused = refusal(lambda: read(Sender(b"12345", b"678901")))
    assert (refused.status, refused.headers["Connection"]) == (413, "close")


@pytest.mark.parametrize("declared", ["11", "9" * 400])
def test_a_declared_length_is_enough_to_refuse(declared: str) -> None:
    sender = Sender(b"1", b"2", b"3")
    assert refusal(lambda: read(sender, declared)).status == 413
    assert sender.left == 0  # heard out, so that the answer is not lost in a reset


def test_a_false_declared_length_does_not_help() -> None:
    assert refusal(lambda: read(Sender(b"12345678901"), "3")).status == 413


def test_a_sender_who_stalls_is_given_up() -> None:
    hasty = replace(SMALL, body_seconds=0.02)
    assert refusal(lambda: read(Sender(b"1", ends=False), limits=hasty)).status == 408


def test_a_client_that_went_away_has_no_body() -> None:
    async def run() -> bytes | None:
        with HeldBytes(25, 25).holding("a", nothing) as holding:
            return await read_body(gone, "", SMALL, holding)

    assert asyncio.run(run()) is None


class Held:
    """Bytes held for callers, by a clock that only the test moves."""

    def __init__(self, most: int, caller_most: int, clock: Clock) -> None:
        self.bytes = HeldBytes(most, caller_most, clock)
        self.given_up: list[str] = []
        self._stack = contextlib.ExitStack()

    def open(self, caller: str, name: str) -> Holding:
        """A holding that notes when it is given up."""
        give_up = partial(self.given_up.append, name)
        return self._stack.enter_context(self.bytes.holding(caller, give_up))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_bytes_wait_for_room_and_are_given_back(clock: Clock) -> None:
    async def run() -> None:
        held = HeldBytes(15, 15, clock)
        with held.holding("b", nothing) as second:
            with held.holding("a", nothing) as first:
                await first.add(10)
                waiting = asyncio.create_task(second.add(10))
                await settle()
                assert second.size == 0
            await waiting
            assert (second.size, held.held_by("a"), held.held_by("b")) == (10, 0, 10)
        assert held.held_by("b") == 0

    asyncio.run(run())


def test_a_caller_who_holds_too_much_loses_what_is_stuck_for_longest(clock: Clock) -> None:
    async def run() -> None:
        held = Held(100, 20, clock)
        stuck, moving = held.open("a", "stuck"), held.open("a", "moving")
        await held.open("b", "other").add(20)
        await stuck.add(10)
        await moving.add(10)
        clock.tick(STALE_SECONDS)
        moving.touch()
        await held.open("a", "new").add(10)
        assert held.given_up == ["stuck"]

    asyncio.run(run())


def test_a_newcomer_is_served_at_the_cost_of_whoever_holds_most(clock: Clock) -> None:
    async def run() -> None:
        held = Held(30, 20, clock)
        for name in ("first", "second"):
            await held.open("greedy", name).add(10)
            clock.tick(0.1)
        await held.open("modest", "third").add(8)
        clock.tick(STALE_SECONDS)
        await held.open("newcomer", "fourth").add(10)
        assert held.given_up == ["first"]

    asyncio.run(run())


def test_nothing_is_given_up_that_still_moves(clock: Clock) -> None:
    async def run() -> None:
        held = Held(20, 20, clock)
        moving, new = held.open("a", "moving"), held.open("a", "new")
        await moving.add(20)
        waiting = asyncio.create_task(new.add(10))
        for _ in range(20):
            clock.tick(STALE_SECONDS / 2)
            moving.touch()
            await settle()
        assert (held.given_up, waiting.done()) == ([], False)
        clock.tick(STALE_SECONDS)
        await waiting
        assert held.given_up == ["moving"]

    asyncio.run(run())


@pytest.mark.parametrize("part", [b"1234567890", b"12345678901"])
def test_room_is_given_back_whatever_happens(part: bytes) -> None:
    async def run() -> None:
        held = HeldBytes(10, 10)
        for _ in range(3):
            with contextlib.suppress(Refused), held.holding("a", nothing) as holding:
                await read_body(Sender(b"", part).receive, "", SMALL, holding)
        assert held.held_by("a") == 0

    asyncio.run(run())


def test_a_burst_is_allowed_and_then_the_rate() -> None:
    now = [0.0]
    limit = RateLimit(rate=2, burst=3, clock=lambda: now[0])
    assert [limit.wait_seconds("a") for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.5
    assert [limit.wait_seconds("a") for _ in range(2)] == [0, 0.5]


def test_a_refused_request_costs_nothing() -> None:
    now = [0.0]
    limit = RateLimit(rate=1, burst=1, clock=lambda: now[0])
    for _ in range(100):
        limit.wait_seconds("a")
    now[0] = 1.0
    assert limit.wait_seconds("a") == 0


def test_a_full_bucket_does_not_overflow() -> None:
    now = [0.0]
    limit = RateLimit(rate=10, burst=2, clock=lambda: now[0])
    limit.wait_seconds("a")
    now[0] = 1_000.0
    assert [limit.wait_seconds("a") > 0 for _ in range(3)] == [False, False, True]


def test_callers_do_not_pay_for_each_other() -> None:
    limit = RateLimit(rate=1, burst=1, clock=lambda: 0.0)
    limit.wait_seconds("a")
    assert limit.wait_seconds("b") == 0


def test_a_flood_of_callers_is_not_remembered_for_ever() -> None:
    buckets = OwnBuckets()
    limit = RateLimit(rate=1, burst=1, clock=lambda: 0.0, buckets=buckets)
    for caller in range(MAX_CALLERS + 50):
        limit.wait_seconds(str(caller))
    assert len(buckets) == MAX_CALLERS


def test_processes_of_one_server_share_the_buckets() -> None:
    buckets = SharedBuckets()
    first, second = (RateLimit(2, 3, clock=lambda: 5.0, buckets=buckets) for _ in range(2))
    assert [first.wait_seconds("a"), second.wait_seconds("a"), first.wait_seconds("a")] == [0] * 3
    assert second.wait_seconds("a") == 0.5
    assert second.wait_seconds("b") == 0


def test_an_ipv6_caller_is_its_network() -> None:
    assert caller_of("2001:db8::1") == caller_of("2001:db8::ffff:1") == "2001:db8::/64"
    assert caller_of("2001:db8:0:1::1") != caller_of("2001:db8::1")
    assert caller_of("10.0.0.5") == "10.0.0.5"
    assert caller_of("unix:") == "unix:"


def test_an_answer_that_is_too_long_says_what_to_do() -> None:
    tool = json.loads(oversized_answer(7, True, Limits()))
    assert (tool["id"], tool["result"]["isError"]) == (7, True)
    assert tool["result"]["content"][0]["text"].startswith(
        "INVALID_INPUT: the answer has more than"
    )
    assert json.loads(oversized_answer("a", False, Limits()))["error"]["code"] == -32602
