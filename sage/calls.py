"""Blocking work on behalf of a call: in a bounded number of threads, under a deadline.

A thread that is stuck in the file system cannot be stopped. It is left behind and keeps its
place until it returns, so what is stuck never grows beyond the places there are, and because
it is a daemon it cannot hold up the end of the process either.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from sage.deadline import Deadline
from sage.errors import TimeoutExceeded

T = TypeVar("T")

# Work that checks its deadline answers with what it has; only work that is stuck needs longer.
GRACE_SECONDS = 0.25


class Lane:
    """A number of threads for blocking work; work that finds none free waits its turn."""

    def __init__(self, name: str, places: int) -> None:
        self._name = name
        self._places = places
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    async def run(self, work: Callable[[Deadline], T], limit_ms: float | None = None) -> T:
        """The answer of the work; when the caller goes away, the work's deadline is cancelled.

        Raises:
            TimeoutExceeded: no thread was free, or no answer came, within the limit.
        """
        deadline = Deadline(limit_ms)
        job = _Job(work, deadline)
        self._submit(job)
        limit = None if limit_ms is None else limit_ms / 1000 + GRACE_SECONDS
        try:
            with anyio.move_on_after(limit):
                answer: T = await job.answer
                return answer
        finally:
            deadline.cancel()
        raise TimeoutExceeded(deadline.message)

    def close(self) -> None:
        """Let idle threads end."""
        for _ in self._threads:
            self._jobs.put(None)

    def _submit(self, job: "_Job") -> None:
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._places:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while job := self._jobs.get():
            job.run()
            # Free before the answer is out: its receiver may ask again at once.
            self._idle.release()
            job.deliver()


class _Job:
    """One piece of work and the place where its answer is awaited."""

    def __init__(self, work: Callable[[Deadline], Any], deadline: Deadline) -> None:
        self._work = work
        self._deadline = deadline
        # What is logged or traced in the thread belongs to the request that asked.
        self._context = contextvars.copy_context()
        self._outcome: Any = None
        self._error: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self._loop.create_future()

    def run(self) -> None:
        """Do the work in this thread, unless nobody waits any more."""
        if self.answer.done():
            return
        try:
            self._outcome = self._context.run(self._work, self._deadline)
        except Exception as error:
            self._error = error  # raised again where the answer is awaited
        except BaseException as error:
            # A Rust panic or a SystemExit inside one call must not end the server.
            self._error = RuntimeError(f"{type(error).__name__} in a call: {error}")

    def deliver(self) -> None:
        """Hand the outcome to whoever awaits it."""
        # The loop is closed when the server ended while this work was stuck.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if self.answer.done():
            return
        if self._error is None:
            self.answer.set_result(self._outcome)
        else:
            self.answer.set_exception(self._error)
