"""Places to run in: a bounded number of calls at a time, shared fairly between callers.

Calls that find no place wait, each caller's in a queue of its own. The next place goes to the
caller whose calls have taken the least time, so neither a thousand calls nor expensive ones of one
caller stand before the single call of another. While others ask for less than their share, a caller
who has used up its own of the processor waits, although a place is free: what runs beside a call
slows it down.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from sage.access.refusals import busy

# Who asked within this time counts as somebody to share with.
ACTIVE_SECONDS = 5.0
# Of the processor: so much a caller may use at once, and so much it may owe after a long call.
SAVED_SECONDS = 0.5
OWED_SECONDS = 0.5
_SOONEST_SECONDS = 0.005
_LATEST_SECONDS = 0.5


@dataclass(slots=True)
class _Account:
    """Processor time that a caller may still use; below zero it waits for more."""

    saved_seconds: float
    last_seen: float


class Shares:
    """The processor's time, in equal shares for all who ask, whatever they ask for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        self._saved_since = clock()

    def meet(self, name: str) -> None:
        """Note that somebody asks."""
        now = self._clock()
        account = self._accounts.get(name)
        if account is None:
            self._save()
            account = self._accounts[name] = _Account(SAVED_SECONDS, now)
        account.last_seen = now

    def charge(self, name: str, cpu_seconds: float) -> None:
        """Note what was used for a caller."""
        self._save()
        if account := self._accounts.get(name):
            left = account.saved_seconds - cpu_seconds
            account.saved_seconds = max(-OWED_SECONDS, left)

    def spared(self, names: Collection[str]) -> set[str]:
        """Those of some callers who have time left; all of them when nobody who asks has."""
        self._save()
        if any(one.saved_seconds > 0 for one in self._accounts.values()):
            return {name for name in names if self._left(name) > 0}
        return set(names)

    def wait_seconds(self, names: Collection[str]) -> float:
        """How long until the first of some callers has time left."""
        return -max(map(self._left, names)) * max(1, len(self._accounts))

    def _left(self, name: str) -> float:
        account = self._accounts.get(name)
        return account.saved_seconds if account else SAVED_SECONDS

    def _save(self) -> None:
        """Credit everybody with an equal part of the time that passed; forget who asks no more."""
        now = self._clock()
        passed, self._saved_since = now - self._saved_since, now
        self._accounts = {
            name: one
            for name, one in self._accounts.items()
            if now - one.last_seen < ACTIVE_SECONDS or one.saved_seconds < 0
        }
        for one in self._accounts.values():
            more = passed / len(self._accounts)
            one.saved_seconds = min(SAVED_SECONDS, one.saved_seconds + more)


@dataclass(slots=True)
class _Caller:
    """What one caller has running and waiting."""

    name: str
    used_seconds: float
    """The time its calls have taken; never less than that of whoever had the last place."""
    last_seen: float
    last_turn: int = 0
    running: int = 0
    waiting: deque["asyncio.Future[None]"] = field(default_factory=deque)


class FairQueue:
    """Lets a number of calls in and has the others wait."""

    def __init__(
        self,
        places: int,
        waiting: int,
        wait_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        shares: Shares | None = None,
    ) -> None:
        self._shares = shares or Shares(clock)
        self._free = places
        self._places = places
        self._most_waiting = waiting
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._callers: dict[str, _Caller] = {}
        self._served_seconds = 0.0
        self._turns = 0
        self._wake: asyncio.TimerHandle | None = None
        self.waiting = 0

    @property
    def running(self) -> int:
        """Calls that have a place."""
        return self._places - self._free

    @contextlib.asynccontextmanager
    async def place(self, name: str) -> AsyncIterator["QueuePlace"]:
        """Hold a place.

        Raises:
            Refused: too many wait already, or none became free in time.
        """
        caller = self._met(name)
        is_spared = name in self._shares.spared([name])
        if self._free and caller.running < self._most_running() and is_spared:
            self._seat(caller)
        else:
            await self._wait(caller)
        place = QueuePlace(self, caller, self._clock())
        try:
            yield place
        finally:
            caller.running -= 1
            place.release()
            self._seat_waiting()

    def _met(self, name: str) -> _Caller:
        now = self._clock()
        caller = self._callers.get(name)
        if caller is None:
            self._callers = {key: one for key, one in self._callers.items() if self._is_active(one)}
            caller = self._callers[name] = _Caller(name, self._served_seconds, now)
        if not caller.running and not caller.waiting:
            # Who was away saves up no time, and is owed none.
            caller.used_seconds = max(caller.used_seconds, self._served_seconds)
        caller.last_seen = now
        self._shares.meet(name)
        return caller

    def _is_active(self, caller: _Caller) -> bool:
        recent = self._clock() - caller.last_seen < ACTIVE_SECONDS
        return bool(recent or caller.running or caller.waiting)

    def _most_running(self) -> int:
        """How many places one caller may have: all but a reserve, or an equal share."""
        active = sum(map(self._is_active, self._callers.values()))
        reserve = self._places // 4
        return max(1, min(self._places - reserve, self._places // max(1, active)))

    def _seat(self, caller: _Caller) -> None:
        self._free -= 1
        self._turns += 1
        caller.running += 1
        caller.last_turn = self._turns
        self._served_seconds = max(self._served_seconds, caller.used_seconds)

    async def _wait(self, caller: _Caller) -> None:
        if self.waiting >= self._most_waiting:
            self._displace(caller)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        caller.waiting.append(turn)
        self.waiting += 1
        self._seat_waiting()  # who waits for time alone is seated by nobody who leaves
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:  # whatever ends the wait, the place is given back
            self._give_up(caller, turn)
            if isinstance(error, TimeoutError):
                raise busy() from None
            raise
        finally:
            self.waiting -= 1

    def _displace(self, newcomer: _Caller) -> None:
        """Refuse the last call of whoever has the most waiting, in favour of one with fewer.

        Raises:
            Refused: nobody has more waiting than the newcomer.
        """
        longest = max(self._callers.values(), key=lambda one: len(one.waiting))
        if len(longest.waiting) <= len(newcomer.waiting) + 1:
            raise busy()
        turn = longest.waiting.pop()
        if not turn.done():
            turn.set_exception(busy())

    def _give_up(self, caller: _Caller, turn: "asyncio.Future[None]") -> None:
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            # The place came in the moment in which it was given up.
            caller.running -= 1
            self._leave()
        elif turn in caller.waiting:
            caller.waiting.remove(turn)

    def _leave(self) -> None:
        self._free += 1
        self._seat_waiting()

    def _seat_waiting(self) -> None:
        """Hand free places to the callers who have had the least."""
        while self._free:
            most = self._most_running()
            next_ = [one for one in self._callers.values() if one.waiting and one.running < most]
            spared = self._shares.spared([one.name for one in next_])
            ready = [one for one in next_ if one.name in spared]
            if not ready:
                self._look_again(next_)
                return
            caller = min(ready, key=lambda one: (one.used_seconds, one.last_turn))
            turn = caller.waiting.popleft()
            if not turn.done():
                self._seat(caller)
                turn.set_result(None)

    def _look_again(self, callers: list[_Caller]) -> None:
        """Come back when the first of these has saved up enough."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if callers:
            owed = self._shares.wait_seconds([one.name for one in callers])
            delay = min(_LATEST_SECONDS, max(_SOONEST_SECONDS, owed))
            self._wake = asyncio.get_running_loop().call_later(delay, self._seat_waiting)


class QueuePlace:
    """A place that a call holds."""

    def __init__(self, queue: FairQueue, caller: _Caller, started: float) -> None:
        self._queue = queue
        self._caller = caller
        self._started = started
        self._is_held = True

    def charge(self, cpu_seconds: float) -> None:
        """Note processor time that was used for the call, also after its end."""
        self._queue._shares.charge(self._caller.name, cpu_seconds)

    def release(self) -> None:
        """Let another caller have it; the own caller gets none in its stead until the end."""
        if self._is_held:
            self._is_held = False
            self._caller.used_seconds += self._queue._clock() - self._started
            self._queue._leave()
