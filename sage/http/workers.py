"""Several processes behind one port: who starts them, replaces them, and what they share.

Each worker is a whole server. They share the port, the token file, the buckets of the rate limits,
who is signed in to the page, and the pages of their metrics, which are added up; every other
limit is divided among them.
"""

import contextlib
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
from dataclasses import dataclass, replace
from types import FrameType
from typing import NoReturn

from sage.access.limits import Limits, SharedBuckets
from sage.errors import ConfigError, InvalidInput, SageError, Unavailable, WrongOption
from sage.http.metrics import added_up
from sage.http.page_sessions import SharedSessions

logger = logging.getLogger("sage.http")

MAX_PAGE_BYTES = 256 * 1024
POLL_SECONDS = 0.05
# The second worker finds the index that the first one built; it does not wait longer than this.
FIRST_SECONDS = 120.0
# One that served for less is not replaced at once: the next one waits, and each time longer. Where
# so many in a row end like that, of every worker, the server ends.
SHORT_SECONDS = 10.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
MAX_SHORT_LIVES = 8
LAST_SECONDS = 5.0

MAX_REASON_BYTES = 4 * 1024
_HEAD = struct.Struct("=II")
_KINDS: dict[int, type[SageError]] = {
    one.exit_code: one for one in (InvalidInput, Unavailable, ConfigError)
}
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
        self._reasons = mmap.mmap(-1, workers * MAX_REASON_BYTES)

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

    def say_why(self, worker: int, error: SageError) -> None:
        """Leave the reason why a worker ends."""
        start, said = worker * MAX_REASON_BYTES, str(error).encode("utf-8", "replace")
        said = said[:MAX_REASON_BYTES].ljust(MAX_REASON_BYTES, b"\0")
        self._reasons[start : start + MAX_REASON_BYTES] = said

    def why(self, worker: int) -> str:
        """The reason that a worker left, which is forgotten; empty when it left none."""
        start = worker * MAX_REASON_BYTES
        said = self._reasons[start : start + MAX_REASON_BYTES].rstrip(b"\0")
        self._reasons[start : start + MAX_REASON_BYTES] = bytes(MAX_REASON_BYTES)
        return said.decode("utf-8", "replace")


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


@dataclass(slots=True)
class WorkerSlot:
    """One of the workers, and those that had its number before."""

    process: int = 0
    """0 while there is none."""
    serves_since: float | None = None
    """When it showed first what it counts."""
    short_lives: int = 0
    """How many in a row ended soon."""
    starts_at: float = 0.0

    @property
    def serves(self) -> bool:
        return bool(self.process) and self.serves_since is not None

    def end(self, now: float) -> None:
        """Make room for the next one, which waits the longer the more ended soon."""
        has_served = self.serves_since is not None and now - self.serves_since >= SHORT_SECONDS
        self.short_lives = 0 if has_served else self.short_lives + 1
        pause = min(FIRST_PAUSE * 2.0 ** (self.short_lives - 1), LONGEST_PAUSE)
        self.starts_at = now + (pause if self.short_lives else 0.0)
        self.process, self.serves_since = 0, None


class Supervisor:
    """Starts workers and replaces those that end, until a signal comes.

    Args:
        work: serves as a worker, given its number and whether none has served yet: then it
            listens before it has anything to serve; it does not return.
        on_listening: called once, when the first serves.
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
        self._slots = [WorkerSlot() for _ in range(memory.workers)]
        self._has_served = False
        self._is_first_ready = False
        self._failure: SageError | None = None
        self._is_ending = False
        self._signal = 0

    def run(self) -> int:
        """Serve until the end; the exit code.

        Raises:
            SageError: the first worker cannot start.
        """
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), self._on_signal)
        gc.collect()
        gc.freeze()  # what was imported so far is shared by all and looked at by none
        until = time.monotonic() + FIRST_SECONDS
        while not self._signal and not self._is_hopeless:
            for worker, slot in enumerate(self._wanted):
                if not slot.process and time.monotonic() >= slot.starts_at:
                    self._start(worker, slot)
            self._look()
            self._is_first_ready = self._is_first_ready or time.monotonic() >= until
            self._reap()
            time.sleep(POLL_SECONDS)
        return self._end()

    @property
    def _wanted(self) -> list[WorkerSlot]:
        """Those who are to serve by now: the others find the index that the first one built."""
        return self._slots if self._is_first_ready else self._slots[:1]

    @property
    def _is_hopeless(self) -> bool:
        """Whether the first cannot start, or every worker ends as soon as it starts."""
        if self._failure is not None:
            return True
        fail = (slot.short_lives >= MAX_SHORT_LIVES for slot in self._wanted)
        return all(fail) and not any(slot.serves for slot in self._slots)

    def _look(self) -> None:
        """See who serves by now."""
        for worker, slot in enumerate(self._slots):
            if not slot.process or (slot.serves and (worker or self._is_first_ready)):
                continue
            page = self._memory.page(worker)
            if page and not slot.serves:
                slot.serves_since = time.monotonic()
            if page and not self._has_served:
                self._has_served = True
                self._on_listening()
            self._is_first_ready = self._is_first_ready or b"sage_ready 1" in page

    def _start(self, worker: int, slot: WorkerSlot) -> None:
        process = os.fork()
        if process == 0:
            self._become(worker)
        slot.process = process

    def _become(self, worker: int) -> NoReturn:
        code = 1
        try:
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            if sys.platform == "linux":
                # Whoever ends the supervisor with SIGKILL leaves no worker behind.
                ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
            self._work(worker, not self._has_served)
        except SageError as error:  # whoever started the server is told, by the one it started
            self._memory.say_why(worker, error)
            code = error.exit_code
        except BaseException:  # a worker must never go on as a second supervisor
            logger.exception("a worker failed")
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while any(slot.process for slot in self._slots):
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                for slot in self._slots:
                    slot.process = 0
                return
            if not process:
                return
            for worker, slot in enumerate(self._slots):
                if slot.process == process:
                    self._note_end(worker, slot, os.waitstatus_to_exitcode(status))

    def _note_end(self, worker: int, slot: WorkerSlot, code: int) -> None:
        fields: dict[str, object] = {"worker": worker, "pid": slot.process, "code": code}
        why = self._memory.why(worker)
        self._memory.retire(worker)
        slot.end(time.monotonic())
        if self._signal or self._is_ending:
            return
        if why and not self._has_served:
            self._failure = _KINDS.get(code, SageError)(why)
            return
        if why:
            fields["reason"] = why
        logger.error("a worker ended and is replaced", extra={"fields": fields})

    def _end(self) -> int:
        """Have every worker end, and end those that do not."""
        self._is_ending = True
        self._tell(signal.SIGTERM)
        until = time.monotonic() + self._grace_seconds + LAST_SECONDS
        while any(slot.process for slot in self._slots) and time.monotonic() < until:
            self._reap()
            time.sleep(POLL_SECONDS)
        self._tell(signal.SIGKILL)
        if self._signal:
            return 0
        if self._failure is not None:
            raise self._failure
        logger.error("workers end as soon as they start; see their errors above")
        return 1

    def _tell(self, number: int) -> None:
        for slot in self._slots:
            if slot.process:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(slot.process, number)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._signal:
            self._tell(signal.SIGKILL)
            os._exit(128 + number)  # asked twice: somebody does not want to wait
        self._signal = number
