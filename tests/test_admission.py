"""Places to run in."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sage.admission import Gate
from sage.refusals import Refused


class Runs:
    """Calls that run until they are told to end, and the order in which they began."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._end = asyncio.Event()
        self.begun: list[str] = []

    async def call(self, name: str) -> None:
        async with self._gate.place(name[0]):
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
    asyncio.run(asyncio.wait_for(work, 10))


def test_no_more_calls_run_than_there_are_places() -> None:
    async def work() -> None:
        gate = Gate(places=2, waiting=10, wait_seconds=5)
        runs = Runs(gate)
        tasks = await runs.start("a1", "a2", "a3")
        assert (runs.begun, gate.running, gate.waiting) == (["a1", "a2"], 2, 1)
        runs.end()
        await asyncio.gather(*tasks)
        assert (runs.begun, gate.running, gate.waiting) == (["a1", "a2", "a3"], 0, 0)

    run(work())


def test_callers_take_turns() -> None:
    async def work() -> None:
        runs = Runs(Gate(places=1, waiting=10, wait_seconds=5))
        tasks = await runs.start("a1", "a2", "a3", "a4", "b1", "c1", "b2")
        runs.end()
        await asyncio.gather(*tasks)
        assert runs.begun == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]

    run(work())


def test_a_call_beyond_those_who_may_wait_is_refused() -> None:
    async def work() -> None:
        runs = Runs(Gate(places=1, waiting=1, wait_seconds=5))
        tasks = await runs.start("a1", "a2")
        with pytest.raises(Refused) as caught:
            await runs.call("b1")
        assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "2"})
        runs.end()
        await asyncio.gather(*tasks)

    run(work())


def test_a_call_does_not_wait_for_ever() -> None:
    async def work() -> None:
        gate = Gate(places=1, waiting=9, wait_seconds=0.01)
        runs = Runs(gate)
        tasks = await runs.start("a1")
        with pytest.raises(Refused):
            await runs.call("b1")
        assert gate.waiting == 0
        runs.end()
        await asyncio.gather(*tasks)

    run(work())


def test_a_client_that_goes_away_frees_its_turn() -> None:
    async def work() -> None:
        gate = Gate(places=1, waiting=9, wait_seconds=5)
        runs = Runs(gate)
        first, second, third = await runs.start("a1", "b1", "c1")
        second.cancel()
        await settle()
        assert gate.waiting == 1
        runs.end()
        await asyncio.gather(first, third)
        assert (runs.begun, gate.running) == (["a1", "c1"], 0)

    run(work())


def test_a_place_that_comes_as_its_client_goes_is_passed_on() -> None:
    async def work() -> None:
        gate = Gate(places=1, waiting=9, wait_seconds=5)
        runs = Runs(gate)
        first, second, third = await runs.start("a1", "b1", "c1")
        runs.end()
        await asyncio.sleep(0)  # the first leaves, the place is b1's, b1 has not run yet
        second.cancel()
        await asyncio.gather(first, third)
        assert "c1" in runs.begun
        assert gate.running == 0

    run(work())


def test_a_call_that_fails_gives_its_place_back() -> None:
    async def work() -> None:
        gate = Gate(places=1, waiting=9, wait_seconds=5)
        with pytest.raises(ValueError, match="broken"):
            async with gate.place("a"):
                raise ValueError("broken")
        assert gate.running == 0

    run(work())
