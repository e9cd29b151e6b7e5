"""Places to run in."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sage.access.refusals import Refused
from sage.http.fair_queue import ACTIVE_SECONDS, OWED_SECONDS, FairQueue, Shares
from tests.conftest import Clock
from tests.processes import PATIENCE_SECONDS


class Runs:
    """Calls that run until they are told to end, and the order in which they began."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self._end = asyncio.Event()
        self.begun: list[str] = []

    async def call(self, name: str) -> None:
        async with self._queue.place(name if name.isalpha() else name[0]):
            self.begun.append(name)
            await self._end.wait()

    async def start(self, *names: str) -> list["asyncio.Task[None]"]:
        tasks = [asyncio.create_task(self.call(name)) for name in names]
        await settle()
        return tasks

    def end(self) -> None:
        self._end.set()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_SECONDS))


def test_no_more_calls_run_than_there_are_places() -> None:
    async def work() -> None:
        queue = FairQueue(places=2, waiting=10, wait_seconds=60)
        runs = Runs(queue)
        tasks = await runs.start("a1", "b1", "c1")
        assert (runs.begun, queue.running, queue.waiting) == (["a1", "b1"], 2, 1)
        runs.end()
        await asyncio.gather(*tasks)
        assert (runs.begun, queue.running, queue.waiting) == (["a1", "b1", "c1"], 0, 0)

    run(work())


def test_callers_take_turns() -> None:
    async def work() -> None:
        runs = Runs(FairQueue(places=1, waiting=10, wait_seconds=60, clock=Clock()))
        tasks = await runs.start("a1", "a2", "a3", "a4", "b1", "c1", "b2")
        runs.end()
        await asyncio.gather(*tasks)
        assert runs.begun == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]

    run(work())


def test_a_call_beyond_those_who_may_wait_is_refused() -> None:
    async def work() -> None:
        runs = Runs(FairQueue(places=1, waiting=1, wait_seconds=60))
        tasks = await runs.start("a1", "b1")
        with pytest.raises(Refused) as caught:
            await runs.call("c1")
        assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "2"})
        runs.end()
        await asyncio.gather(*tasks)

    run(work())


def test_a_call_does_not_wait_for_ever() -> None:
    async def work() -> None:
        queue = FairQueue(places=1, waiting=9, wait_seconds=0.01)
        runs = Runs(queue)
        tasks = await runs.start("a1")
        with pytest.raises(Refused):
            await runs.call("b1")
        assert queue.waiting == 0
        runs.end()
        await asyncio.gather(*tasks)

    run(work())


def test_a_client_that_goes_away_frees_its_turn() -> None:
    async def work() -> None:
        queue = FairQueue(places=1, waiting=9, wait_seconds=60)
        runs = Runs(queue)
        first, second, third = await runs.start("a1", "b1", "c1")
        second.cancel()
        await settle()
        assert queue.waiting == 1
        runs.end()
        await asyncio.gather(first, third)
        assert (runs.begun, queue.running) == (["a1", "c1"], 0)

    run(work())


def test_a_place_that_comes_as_its_client_goes_is_passed_on() -> None:
    async def work() -> None:
        queue = FairQueue(places=1, waiting=9, wait_seconds=60)
        runs = Runs(queue)
        first, second, third = await runs.start("a1", "b1", "c1")
        runs.end()
        await asyncio.sleep(0)  # the first leaves, the place is b1's, b1 has not run yet
        second.cancel()
        await asyncio.gather(first, third)
        assert "c1" in runs.begun
        assert queue.running == 0

    run(work())


def test_a_call_that_fails_gives_its_place_back() -> None:
    async def work() -> None:
        queue = FairQueue(places=1, waiting=9, wait_seconds=60)
        with pytest.raises(ValueError, match="broken"):
            async with queue.place("a"):
                raise ValueError("broken")
        assert queue.running == 0

    run(work())


def test_time_counts_and_not_calls() -> None:
    async def work() -> None:
        clock, begun = Clock(), []
        queue = FairQueue(places=1, waiting=99, wait_seconds=60, clock=clock)

        async def call(name: str, seconds: float) -> None:
            async with queue.place(name):
                begun.append(name)
                await asyncio.sleep(0)
                clock.tick(seconds)

        greedy = [asyncio.create_task(call("greedy", 1.0)) for _ in range(5)]
        modest = [asyncio.create_task(call("modest", 0.25)) for _ in range(8)]
        await asyncio.gather(*greedy, *modest)
        # After its first call the greedy one gets as much time as the other, a fourth of the calls.
        assert begun[:11] == ["greedy", *["modest"] * 4, "greedy", *["modest"] * 4, "greedy"]

    run(work())


def test_one_caller_never_has_every_place() -> None:
    async def work() -> None:
        queue = FairQueue(places=8, waiting=99, wait_seconds=60, clock=(clock := Clock()))
        runs = Runs(queue)
        tasks = await runs.start(*[f"a{number}" for number in range(20)])
        assert queue.running == 6
        tasks += await runs.start("b1")
        assert "b1" in runs.begun
        clock.tick(ACTIVE_SECONDS + 1)
        runs.end()
        await asyncio.gather(*tasks)
        assert (queue.running, queue.waiting) == (0, 0)

    run(work())


def test_the_places_of_one_caller_shrink_with_the_number_of_others() -> None:
    async def work() -> None:
        queue = FairQueue(places=8, waiting=99, wait_seconds=60, clock=Clock())
        runs = Runs(queue)
        tasks = await runs.start("b1", "c1", "d1", *[f"a{number}" for number in range(9)])
        assert sum(name.startswith("a") for name in runs.begun) == 2
        runs.end()
        await asyncio.gather(*tasks)

    run(work())


def test_a_place_that_is_given_up_early_goes_to_another_caller_only() -> None:
    async def work() -> None:
        queue = FairQueue(places=1, waiting=9, wait_seconds=60, clock=Clock())
        runs = Runs(queue)
        async with queue.place("a") as place:
            tasks = await runs.start("a2", "b1")
            assert runs.begun == []
            place.release()
            await settle()
            assert runs.begun == ["b1"]
        runs.end()
        await asyncio.gather(*tasks)
        assert queue.running == 0

    run(work())


def test_a_newcomer_takes_the_turn_of_whoever_has_the_most_waiting() -> None:
    async def work() -> None:
        queue = FairQueue(places=1, waiting=3, wait_seconds=60, clock=Clock())
        runs = Runs(queue)
        tasks = await runs.start("a1", "a2", "a3", "a4")
        newcomer = await runs.start("b1")
        with pytest.raises(Refused):
            await tasks.pop()
        runs.end()
        await asyncio.gather(*tasks, *newcomer)
        assert runs.begun == ["a1", "b1", "a2", "a3"]

    run(work())


def test_who_used_up_its_share_waits_while_others_ask_for_less() -> None:
    async def work() -> None:
        clock = Clock()
        queue = FairQueue(places=8, waiting=99, wait_seconds=60, clock=clock)
        async with queue.place("modest"), queue.place("greedy") as place:
            place.charge(10.0)
        runs = Runs(queue)
        tasks = await runs.start("greedy", "modest")
        assert runs.begun == ["modest"]
        # It owes no more than a bound, and half of the time that passes is its own.
        clock.tick(2 * OWED_SECONDS + 0.1)
        while len(runs.begun) < 2:
            await asyncio.sleep(0.01)
        runs.end()
        await asyncio.gather(*tasks)

    run(work())


def test_without_anybody_who_asks_for_less_nobody_waits() -> None:
    async def work() -> None:
        queue = FairQueue(places=8, waiting=99, wait_seconds=60, clock=(clock := Clock()))
        for name in ("a", "b"):
            async with queue.place(name) as place:
                place.charge(10.0)
        runs = Runs(queue)
        tasks = await runs.start("a1", "b1")
        assert runs.begun == ["a1", "b1"]
        runs.end()
        await asyncio.gather(*tasks)
        clock.tick(ACTIVE_SECONDS + 2 * OWED_SECONDS)
        async with queue.place("a") as place:
            place.charge(10.0)
        async with queue.place("a"):
            assert queue.running == 1  # nobody has asked for so long that it shares with nobody

    run(work())


def test_what_is_used_in_one_queue_counts_in_the_other() -> None:
    async def work() -> None:
        shares = Shares(clock := Clock())
        calls = FairQueue(8, 9, 60, clock, shares)
        quick = FairQueue(8, 9, 60, clock, shares)
        async with calls.place("modest"), quick.place("greedy") as place:
            place.charge(10.0)
        runs = Runs(calls)
        tasks = await runs.start("greedy")
        assert runs.begun == []
        for task in tasks:
            task.cancel()

    run(work())
