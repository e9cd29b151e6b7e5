"""Places to run in: a bounded number of calls at a time, in turns between callers.

Calls that find no place wait. A caller with a thousand calls waiting does not stand before a
caller with one: each caller has its own queue, and the queues take turns.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator

from sage.refusals import busy


class Gate:
    """Lets a number of calls in and has the others wait."""

    def __init__(self, places: int, waiting: int, wait_seconds: float) -> None:
        self._free = places
        self._places = places
        self._most_waiting = waiting
        self._wait_seconds = wait_seconds
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.waiting = 0

    @property
    def running(self) -> int:
        """Calls that have a place."""
        return self._places - self._free

    @contextlib.asynccontextmanager
    async def place(self, caller: str) -> AsyncIterator[None]:
        """Hold a place.

        Raises:
            Refused: too many wait already, or none became free in time.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._leave()

    async def _wait(self, caller: str) -> None:
        if self.waiting >= self._most_waiting:
            raise busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(turn)
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

    def _give_up(self, caller: str, turn: "asyncio.Future[None]") -> None:
        if turn.done() and not turn.cancelled():
            self._leave()  # the place came in the moment in which it was given up
        elif turn in (queue := self._queues.get(caller, deque())):
            queue.remove(turn)
            if not queue:
                del self._queues[caller]

    def _leave(self) -> None:
        """Hand the place to the next caller whose turn it is."""
        while self._queues:
            caller, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._queues[caller] = queue  # behind the other callers
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
