"""Pages as the cluster takes them; many are made by several processes.

To describe a page takes several times as long as it takes the cluster to write it. A process that
describes ends with the one that started it, however that ended: it reads from a pipe to it.
"""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import IO, cast

from sage.cluster.describer import Describer, PagesForCluster, PageToPublish
from sage.errors import SageError

MANY_BYTES = 2_000_000
"""Texts that are worth the start of other processes: about a second's work."""
_MOST_PROCESSES = 8
_TOGETHER_BYTES = 150_000
"""Texts that a process describes before it answers."""
_ENDED = "a process that described pages ended; publish again"
_WORK = "from sage.cluster.describer import work; work()"


class Describing:
    """Describes pages here or, where they are many, in processes that it starts and ends."""

    def __init__(self) -> None:
        self._processes: list[_Process] = []

    def start(self, size: int) -> None:
        """Let processes get ready for so many bytes of pages, if these are worth it.

        They take half a second: whoever has to read the pages first starts them before.
        """
        count = min(_cores(), _MOST_PROCESSES)
        if size >= MANY_BYTES and count > 1 and not self._processes:
            for _ in range(count):
                self._processes.append(_Process())

    def described(
        self, pages: Sequence[PageToPublish], footers: frozenset[str], generation: int
    ) -> Iterator[PagesForCluster]:
        """All pages as the cluster takes them, in their order, some at a time, then their words."""
        self.start(sum(len(page.data) for page in pages))
        if not self._processes:
            describer = Describer(footers, generation)
            yield from map(describer.describe, _batches(pages))
            yield describer.words()
            return
        with ExitStack() as stack:
            stack.callback(self.close)
            idle: SimpleQueue[_Process] = SimpleQueue()
            for process in self._processes:
                process.tell(footers, generation)
                idle.put(process)
            count = len(self._processes)
            threads = ThreadPoolExecutor(count, "sage-describing")
            # Before the pipes are closed: nobody may be waiting at one.
            stack.callback(threads.shutdown, cancel_futures=True)
            waiting: deque[Future[PagesForCluster]] = deque()
            for batch in _batches(pages):
                waiting.append(threads.submit(_ask, idle, batch))
                if len(waiting) > 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            for process in self._processes:
                yield process.ask([])

    def close(self) -> None:
        """End the processes, if any were started."""
        while self._processes:
            self._processes.pop().close()


def _batches(pages: Sequence[PageToPublish]) -> Iterator[list[PageToPublish]]:
    batch: list[PageToPublish] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.data)
        if size >= _TOGETHER_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Process:
    """Another process that describes pages."""

    def __init__(self) -> None:
        # Not by multiprocessing: it would import all that this process began with, every time.
        self._process = subprocess.Popen(  # noqa: S603 - this program and words of our own
            [sys.executable, "-P", "-c", _WORK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._given = cast("IO[bytes]", self._process.stdin)
        self._made = cast("IO[bytes]", self._process.stdout)

    def tell(self, footers: frozenset[str], generation: int) -> None:
        """Say what holds for all pages.

        Raises:
            SageError: it ended.
        """
        self._say((footers, generation))

    def ask(self, batch: list[PageToPublish]) -> PagesForCluster:
        """Some pages as the cluster takes them; for none the words of all.

        Raises:
            SageError: it ended.
        """
        self._say(batch)
        try:
            made: PagesForCluster = pickle.load(self._made)  # noqa: S301 - from our own process
            return made
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise SageError(_ENDED) from error

    def close(self) -> None:
        """Let it end."""
        with suppress(OSError):  # it may have ended before it read all
            self._given.close()
        self._made.close()
        self._process.wait()

    def _say(self, words: object) -> None:
        try:
            pickle.dump(words, self._given, pickle.HIGHEST_PROTOCOL)
            self._given.flush()
        except OSError as error:
            raise SageError(_ENDED) from error


def _ask(idle: "SimpleQueue[_Process]", batch: list[PageToPublish]) -> PagesForCluster:
    process = idle.get()
    try:
        return process.ask(batch)
    finally:
        idle.put(process)


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
