"""What one caller may take."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sage.limits import MAX_CALLERS, Limits, RateLimit, Room, caller_of, held_body, oversized_answer
from sage.refusals import Refused

SMALL = Limits(body_bytes=10, held_bytes=25, body_seconds=0.02)


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


def read(sender: Sender, declared: str = "", room: Room | None = None) -> bytes | None:
    async def run() -> bytes | None:
        async with held_body(sender.receive, declared, SMALL, room or Room(25)) as body:
            return body

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
    assert refusal(lambda: read(Sender(b"1", ends=False))).status == 408


def test_a_client_that_went_away_has_no_body() -> None:
    async def run() -> bytes | None:
        async with held_body(gone, "", SMALL, Room(25)) as body:
            return body

    assert asyncio.run(run()) is None


def test_bodies_wait_for_room_and_give_it_back() -> None:
    async def run() -> list[str]:
        room = Room(15)
        order: list[str] = []
        async with held_body(Sender(b"1234567890").receive, "", SMALL, room):
            second = asyncio.create_task(
                _hold(held_body(Sender(b"1234567890").receive, "", Limits(), room), order)
            )
            await asyncio.sleep(0)
            order.append("first done")
        await second
        return order

    assert asyncio.run(run()) == ["first done", "second held"]


async def _hold(body: Any, order: list[str]) -> None:
    async with body:
        order.append("second held")


@pytest.mark.parametrize("part", [b"1234567890", b"12345678901"])
def test_room_is_given_back_whatever_happens(part: bytes) -> None:
    async def run() -> None:
        room = Room(10)
        for _ in range(3):
            try:
                async with held_body(Sender(b"", part).receive, "", SMALL, room):
                    pass
            except Refused:
                pass
        await asyncio.wait_for(room.take(10), 1)

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
    limit = RateLimit(rate=1, burst=1, clock=lambda: 0.0)
    for caller in range(MAX_CALLERS + 50):
        limit.wait_seconds(str(caller))
    assert len(limit) == MAX_CALLERS


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
