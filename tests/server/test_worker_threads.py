"""Blocking work on behalf of a call."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from sage.deadline import Deadline
from sage.errors import NotFound, TimeoutExceeded
from sage.server.async_knowledge import WorkerThreads, charge
from tests.processes import PATIENCE_SECONDS

SOON_MS = 50


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sage.server.async_knowledge.GRACE_SECONDS", 0.0)


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    threads = WorkerThreads("test", 2)
    yield threads
    threads.close()


@pytest.fixture
def queue() -> Iterator[threading.Event]:
    """Work that waits for this is stuck until the test is over."""
    queue = threading.Event()
    yield queue
    queue.set()


def stuck(queue: threading.Event) -> Callable[[Deadline], str]:
    def work(deadline: Deadline) -> str:
        queue.wait()
        return "late"

    return work


def test_the_answer_of_the_work_comes_back(threads: WorkerThreads) -> None:
    assert asyncio.run(threads.run(lambda deadline: 42)) == 42


def test_what_the_work_raises_reaches_the_caller(threads: WorkerThreads) -> None:
    def work(deadline: Deadline) -> None:
        raise NotFound("not here")

    with pytest.raises(NotFound, match="not here"):
        asyncio.run(threads.run(work))


def test_an_exit_inside_a_call_is_an_error_of_that_call(threads: WorkerThreads) -> None:
    def work(deadline: Deadline) -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit in a call"):
        asyncio.run(threads.run(work))


def test_the_work_sees_the_limit_as_its_deadline(threads: WorkerThreads) -> None:
    left = asyncio.run(threads.run(lambda deadline: deadline.remaining_seconds, 5_000))
    assert left is not None
    assert 0 < left <= 5


def test_stuck_work_is_left_behind_and_its_deadline_cancelled(
    threads: WorkerThreads, queue: threading.Event
) -> None:
    seen: list[Deadline] = []

    def work(deadline: Deadline) -> None:
        seen.append(deadline)
        queue.wait()

    with pytest.raises(TimeoutExceeded, match="no answer within 50 ms"):
        asyncio.run(threads.run(work, SOON_MS))
    assert seen[0].expired


def test_stuck_work_leaves_the_other_places_free(
    threads: WorkerThreads, queue: threading.Event
) -> None:
    async def scenario() -> str:
        with pytest.raises(TimeoutExceeded):
            await threads.run(stuck(queue), SOON_MS)
        return await threads.run(lambda deadline: "served")

    assert asyncio.run(scenario()) == "served"


def test_stuck_work_never_takes_more_threads_than_there_are_places(
    threads: WorkerThreads, queue: threading.Event
) -> None:
    async def scenario() -> None:
        calls = [threads.run(stuck(queue), SOON_MS) for _ in range(20)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, TimeoutExceeded) for result in results)

    before = threading.active_count()
    asyncio.run(scenario())
    assert threading.active_count() - before <= 2


def test_places_are_free_again_when_stuck_work_returns(
    threads: WorkerThreads, queue: threading.Event
) -> None:
    async def scenario() -> str:
        for _ in range(2):
            with pytest.raises(TimeoutExceeded):
                await threads.run(stuck(queue), SOON_MS)
        queue.set()
        return await threads.run(lambda deadline: "served")

    assert asyncio.run(scenario()) == "served"


def test_work_nobody_waits_for_is_not_begun(queue: threading.Event) -> None:
    begun: list[str] = []
    threads = WorkerThreads("test", 1)

    async def scenario() -> None:
        with pytest.raises(TimeoutExceeded):
            await threads.run(stuck(queue), SOON_MS)
        with pytest.raises(TimeoutExceeded):
            await threads.run(lambda deadline: begun.append("work"), SOON_MS)
        queue.set()
        await threads.run(lambda deadline: begun.append("later"))

    asyncio.run(scenario())
    threads.close()
    assert begun == ["later"]


def test_a_cancelled_call_cancels_the_deadline_of_its_work(
    threads: WorkerThreads, queue: threading.Event
) -> None:
    seen: list[Deadline] = []
    started = threading.Event()

    def work(deadline: Deadline) -> None:
        seen.append(deadline)
        started.set()
        queue.wait()

    async def scenario() -> None:
        call = asyncio.create_task(threads.run(work))
        await asyncio.to_thread(started.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(scenario())
    assert seen[0].expired


def test_threads_are_used_again(threads: WorkerThreads) -> None:
    async def scenario() -> set[int]:
        return {await threads.run(lambda deadline: threading.get_ident()) for _ in range(10)}

    assert len(asyncio.run(scenario())) == 1


def test_work_that_ends_after_the_loop_harms_nobody(queue: threading.Event) -> None:
    threads = WorkerThreads("test", 1)
    ended = threading.Event()

    def work(deadline: Deadline) -> None:
        queue.wait()
        ended.set()

    with pytest.raises(TimeoutExceeded):
        asyncio.run(threads.run(work, SOON_MS))
    queue.set()
    assert ended.wait(PATIENCE_SECONDS)
    again: Awaitable[int] = threads.run(lambda deadline: 1)

    async def scenario() -> int:
        return await again

    assert asyncio.run(scenario()) == 1
    threads.close()


def test_the_time_of_a_thread_is_charged_to_whoever_asked() -> None:
    async def work() -> list[float]:
        charged: list[float] = []
        charge.set(charged.append)
        threads = WorkerThreads("test", 1)
        await threads.run(lambda _: sum(range(300_000)))
        threads.close()
        return charged

    [seconds] = asyncio.run(work())
    assert seconds > 0
