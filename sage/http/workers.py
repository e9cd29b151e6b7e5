"""Several processes behind one port: who starts them, replaces them, and what they share.

Each worker is a whole server. They share the port, the token file, the buckets of the rate limits,
who is signed in to the page, and the pages of their metrics, which are added up; every other
limit is divided among them.
"""

import ctypes
import gc
import logging
import mmap
import os
import signal
import struct
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import NoReturn

from sage.access.limits import Limits, SharedBuckets
from sage.errors import ConfigError, WrongOption
from sage.http.metrics import added_up
from sage.http.page_sessions import SharedSessions

logger = logging.getLogger("sage.http")

MAX_PAGE_BYTES = 256 * 1024
POLL_SECONDS = 0.05
# The second worker finds the index that the first one built; it does not wait longer than this.
FIRST_SECONDS = 120.0
# One that ends sooner is not replaced at once, and after several of them nothing is served.
SHORT_SECONDS = 10.0
MAX_SHORT_LIVES = 5
LAST_SECONDS = 5.0

_HEAD = struct.Struct("=II")
_PARENT_DEATH_SIGNAL = 1


class SharedMemory:
    """What workers share; made before they are."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.tokens = SharedBuckets()
        self.addresses = SharedBuckets()
        self.sessions = SharedSessions()
        # The last page holds what workers counted that are gone.
        self._pages = mmap.mmap(-1, (workers + 1) * MAX_PAGE_BYTES)

    def publish(self, worker: int, page: bytes) -> None:
        """Show the others what a worker counts."""
        start = worker * MAX_PAGE_BYTES
        if len(page) <= MAX_PAGE_BYTES - _HEAD.size:
            self._pages[start + _HEAD.size : start + _HEAD.size + len(page)] = page
            _HEAD.pack_into(self._pages, start, len(page), zlib.crc32(page))

    def page(self, worker: int) -> bytes:
        """What a worker showed last; nothing while it is being written."""
        start = worker * MAX_PAGE_BYTES
        length, checksum = _HEAD.unpack_from(self._pages, start)
        page = self._pages[start + _HEAD.size : start + _HEAD.size + length]
        return page if zlib.crc32(page) == checksum else b""

    def retire(self, worker: int) -> None:
        """Keep what a worker counted that is gone, and make its place free."""
        gone, before = self.page(worker), self.page(self.workers)
        self.publish(self.workers, added_up([before, gone], only_counters=True))
        self.publish(worker, b"")


class Siblings:
    """The other workers, as one of them sees them."""

    def __init__(self, memory: SharedMemory, worker: int) -> None:
        self.memory = memory
        self._worker = worker

    def publish(self, page: bytes) -> None:
        """Show them what this one counts."""
        self.memory.publish(self._worker, page)

    def added_up(self, page: bytes) -> bytes:
        """The own page with what all the others count."""
        others = [one for one in range(self.memory.workers + 1) if one != self._worker]
        return added_up([page, *map(self.memory.page, others)])


def divided(limits: Limits, workers: int) -> list[Limits]:
    """The part of each worker; the rates are shared and stay whole.

    Parts add up to the whole. Of what is less than one for each, every worker has one; and each
    may hold at least one answer of the greatest length.

    Raises:
        WrongOption: fewer calls may run than there are workers.
    """
    if limits.running < workers:
        raise WrongOption(
            f"--running {limits.running} is less than --workers {workers}: each of them runs at "
            "least one call; raise --running or take fewer workers"
        )
    return [_part(limits, workers, worker) for worker in range(workers)]


def _part(limits: Limits, workers: int, worker: int) -> Limits:
    def part(number: int) -> int:
        return max(number // workers + (worker < number % workers), 1)

    return replace(
        limits,
        running=part(limits.running),
        waiting=part(limits.waiting),
        connections=part(limits.connections),
        address_connections=part(limits.address_connections),
        streams=part(limits.streams),
        caller_streams=part(limits.caller_streams),
        held_bytes=max(part(limits.held_bytes), limits.answer_bytes),
    )


class Supervisor:
    """Starts workers and replaces those that end, until a signal comes.

    Args:
        work: serves as a worker, given its number and whether it is the very first, which
            listens before it shows what it counts; it does not return.
        on_listening: called once, when the first listens.
    """

    def __init__(
        self,
        memory: SharedMemory,
        work: Callable[[int, bool], NoReturn],
        on_listening: Callable[[], None],
        grace_seconds: float,
    ) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError("--workers needs a system that can fork; start several servers")
        self._memory = memory
        self._work = work
        self._grace_seconds = grace_seconds
        self._on_listening = on_listening
        self._living: dict[int, tuple[int, float]] = {}
        self._short_lives = 0
        self._signal = 0

    def run(self) -> int:
        """Serve until the end; the exit code."""
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), self._on_signal)
        gc.collect()
        gc.freeze()  # what was imported so far is shared by all and looked at by none
        self._start(0, is_first=True)
        self._wait_for_the_first()
        while not self._signal and self._short_lives < MAX_SHORT_LIVES:
            running = {worker for worker, _ in self._living.values()}
            for worker in range(self._memory.workers):
                if worker not in running:
                    self._start(worker, is_first=False)
            self._reap()
            time.sleep(POLL_SECONDS)
        return self._end()

    def _wait_for_the_first(self) -> None:
        until = time.monotonic() + FIRST_SECONDS
        listens = False
        while not self._signal and self._living and time.monotonic() < until:
            page = self._memory.page(0)
            if page and not listens:
                listens = True
                self._on_listening()
            if b"sage_ready 1" in page:
                return
            self._reap()
            time.sleep(POLL_SECONDS)

    def _start(self, worker: int, is_first: bool) -> None:
        if self._short_lives:
            time.sleep(min(2.0**self._short_lives / 4, 4.0))
        process = os.fork()
        if process == 0:
            self._become(worker, is_first)
        self._living[process] = (worker, time.monotonic())

    def _become(self, worker: int, is_first: bool) -> NoReturn:
        code = 1
        try:
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            if sys.platform == "linux":
                # Whoever ends the supervisor with SIGKILL leaves no worker behind.
                ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
            self._work(worker, is_first)
        except BaseException:  # a worker must never go on as a second supervisor
            logger.exception("a worker failed")
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while self._living:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._living.clear()
                return
            if not process:
                return
            worker, since = self._living.pop(process, (-1, 0.0))
            if worker < 0:
                continue
            self._memory.retire(worker)
            is_short = time.monotonic() - since < SHORT_SECONDS
            self._short_lives = self._short_lives + 1 if is_short else 0
            if not self._signal:
                code = os.waitstatus_to_exitcode(status)
                fields = {"worker": worker, "pid": process, "code": code}
                logger.error("a worker ended and is replaced", extra={"fields": fields})

    def _end(self) -> int:
        """Have every worker end, and end those that do not."""
        self._tell(signal.SIGTERM)
        until = time.monotonic() + self._grace_seconds + LAST_SECONDS
        while self._living and time.monotonic() < until:
            self._reap()
            time.sleep(POLL_SECONDS)
        self._tell(signal.SIGKILL)
        if self._signal:
            return 0
        logger.error("workers end as soon as they start; see their errors above")
        return 1

    def _tell(self, number: int) -> None:
        for process in list(self._living):
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._signal:
            self._tell(signal.SIGKILL)
            os._exit(128 + number)  # asked twice: somebody does not want to wait
        self._signal = number
