"""Places to run in: a bounded number of calls at a time, shared fairly between callers.

Calls that find no place wait, each caller's in a queue of its own. The next place goes to the
caller whose calls have taken the least time, so neither a thousand calls nor expensive ones of one
caller stand before the single call of another.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from sage.http.errors import busy

# Who asked within this time counts as somebody to share with.
ACTIVE_SECONDS = 5.0


@dataclass(slots=True)
class _Caller:
    """What one caller has running and waiting."""

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
    ) -> None:
        self._free = places
        self._places = places
        self._most_waiting = waiting
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._callers: dict[str, _Caller] = {}
        self._served_seconds = 0.0
        self._turns = 0
        self.waiting = 0

    @property
    def running(self) -> int:
        """Calls that have a place."""
        return self._places - self._free

    @contextlib.asynccontextmanager
    async def place(self, name: str) -> AsyncIterator["Place"]:
        """Hold a place.

        Raises:
            Refused: too many wait already, or none became free in time.
        """
        caller = self._met(name)
        if self._free and caller.running < self._most_running():
            self._seat(caller)
        else:
            await self._wait(caller)
        place = Place(self, caller, self._clock())
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
            caller = self._callers[name] = _Caller(self._served_seconds, now)
        if not caller.running and not caller.waiting:
            # Who was away saves up no time, and is owed none.
            caller.used_seconds = max(caller.used_seconds, self._served_seconds)
        caller.last_seen = now
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
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:
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
            ready = [one for one in self._callers.values() if one.waiting and one.running < most]
            if not ready:
                return
            caller = min(ready, key=lambda one: (one.used_seconds, one.last_turn))
            turn = caller.waiting.popleft()
            if not turn.done():
                self._seat(caller)
                turn.set_result(None)


class Place:
    """A place that a call holds."""

    def __init__(self, queue: FairQueue, caller: _Caller, started: float) -> None:
        self._queue = queue
        self._caller = caller
        self._started = started
        self._is_held = True

    def release(self) -> None:
        """Let another caller have it; the own caller gets none in its stead until the end."""
        if self._is_held:
            self._is_held = False
            self._caller.used_seconds += self._queue._clock() - self._started
            self._queue._leave()
