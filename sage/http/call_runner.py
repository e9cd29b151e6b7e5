"""From a message that was let in to its answer: places, memory, and clients that go away.

A call runs in one of a few places, and cheap calls have places of their own. It keeps its place
until its answer may be held, and is cancelled when its client goes.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, NamedTuple, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope

from sage.access.limits import HeldBytes, Holding, Limits, oversized_answer
from sage.access.refusals import closing
from sage.deadline import arrived
from sage.http import mcp_endpoint
from sage.http.fair_queue import FairQueue, Shares
from sage.http.metrics import gauge
from sage.http.request import HttpRequest
from sage.server.async_knowledge import charge
from sage.server.tools import INFO

T = TypeVar("T")

# What is noted as the status of a request whose client did not wait for the answer.
GONE = 499
# What the loop spends on any request, from its head to its end: 0.4 to 0.8 ms were measured.
REQUEST_SECONDS = 0.001

# Everything else answers from what is at hand; these read documents or search.
PAGE = "page"
_HEAVY = {
    PAGE,
    "tools/call",
    "resources/read",
    "resources/list",
    "prompts/get",
    "completion/complete",
}


class McpCall(NamedTuple):
    """A message that was let in."""

    message: mcp_endpoint.Message
    body: bytes
    receive: Receive
    give_up: Callable[[], None]
    """Called when its answer can be held no longer."""

    @property
    def is_heavy(self) -> bool:
        """Whether it takes a while to answer."""
        return self.message.method in _HEAVY and self.message.tool != INFO


class Answer(NamedTuple):
    """What MCP answered."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class CallRunner:
    """Runs calls and delivers their answers."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._answers = HeldBytes(max(limits.held_bytes, limits.answer_bytes), limits.caller_bytes)
        places = (limits.running, limits.waiting, limits.wait_seconds, clock, Shares(clock))
        self._calls = FairQueue(*places)
        self._quick = FairQueue(*places)
        self._arrivals = FairQueue(*places)
        self._streams = Streams(limits)
        self._closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """Whether nothing new is begun."""
        return self._closing.is_set()

    def close(self) -> None:
        """Begin nothing new, and end what would go on for ever."""
        self._closing.set()
        self._streams.end_all()

    async def take_in(self, caller: str) -> None:
        """Wait until a request of a caller may be read.

        Hundreds that arrive at once, with bodies that stall or for streams, are little each; in a
        row they held up everybody. Who has used up its share has them taken in one after another.

        Raises:
            Refused: too many wait already, or for too long.
        """
        async with self._arrivals.place(caller) as place:
            place.charge(REQUEST_SECONDS)

    async def serve(self, request: HttpRequest, app: ASGIApp, call: McpCall) -> None:
        """Answer a message.

        Raises:
            Refused: there is no place for it.
        """
        if call.message.method == mcp_endpoint.LISTEN:
            await self._stream(request, app, call)
        else:
            arrived.set(time.monotonic())
            await self._call(request, app, call)

    def families(self) -> list[Iterator[str]]:
        """How busy it is, as metrics."""
        return [
            gauge("sage_calls_running", "Calls with a place.", self._calls.running),
            gauge("sage_calls_waiting", "Calls that wait for one.", self._calls.waiting),
            gauge("sage_streams", "Clients that listen for changes.", self._streams.open),
        ]

    async def _call(self, request: HttpRequest, app: ASGIApp, call: McpCall) -> None:
        with self._answers.holding(request.caller, call.give_up) as holding:
            answer = await _unless(_gone(call.receive), self._answer(request, app, call, holding))
            if answer is None:
                request.status = GONE
                return
            headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
            limits = self._limits
            seconds = limits.reader_seconds + len(answer.body) / limits.reader_rate
            try:
                async with asyncio.timeout(seconds):
                    await request.answer(answer.status, answer.body, headers, on_part=holding.touch)
            except TimeoutError:
                await request.abort()

    async def _answer(
        self, request: HttpRequest, app: ASGIApp, call: McpCall, holding: Holding
    ) -> Answer:
        """What MCP answers, once there is a place for the call and then room for its answer."""
        queue = self._calls if call.is_heavy else self._quick
        async with queue.place(request.caller) as place:
            charge.set(place.charge)
            started = time.thread_time()
            answer = await _collected(app, request.scope, _Replay(call.body))
            if not call.is_heavy:
                # It is answered in the loop, mostly in one go.
                place.charge(time.thread_time() - started)
            if len(answer.body) > self._limits.answer_bytes:
                shorter = oversized_answer(call.message.id, bool(call.message.tool), self._limits)
                answer = Answer(200, [(b"content-type", b"application/json")], shorter)
            # Another caller may run while this one waits for room; it gets no second place itself.
            place.release()
            await holding.add(len(answer.body))
        return answer

    async def _stream(self, request: HttpRequest, app: ASGIApp, call: McpCall) -> None:
        """Serve a client that listens until it goes, or its time is over, or the server ends."""
        with self._streams.opened(request.caller) as ended:
            replay = _Replay(call.body, call.receive)
            await _unless(
                _within(self._limits.stream_seconds, ended.wait()),
                app(request.scope, replay, request.send),
            )
            if not request.status:
                raise closing()
            if not request.is_complete:
                await request.send({"type": "http.response.body", "body": b""})


class Streams:
    """Clients that listen: a number for all and for each caller; a newcomer ends the oldest."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.streams
        self._caller_most = limits.caller_streams
        self._ends: dict[str, list[asyncio.Event]] = {}

    @property
    def open(self) -> int:
        """How many there are."""
        return sum(map(len, self._ends.values()))

    @contextlib.contextmanager
    def opened(self, caller: str) -> Iterator[asyncio.Event]:
        """Listen, until what is yielded is set."""
        own = self._ends.get(caller, [])
        if len(own) >= self._caller_most:
            self._end_oldest(caller)
        elif self.open >= self._most:
            self._end_oldest(max(self._ends, key=lambda name: len(self._ends[name])))
        end = asyncio.Event()
        self._ends.setdefault(caller, []).append(end)
        try:
            yield end
        finally:
            self._forget(caller, end)

    def end_all(self) -> None:
        """End every one of them."""
        for ends in self._ends.values():
            for end in ends:
                end.set()

    def _end_oldest(self, caller: str) -> None:
        end = self._ends[caller][0]
        end.set()
        self._forget(caller, end)

    def _forget(self, caller: str, end: asyncio.Event) -> None:
        kept = [one for one in self._ends.get(caller, []) if one is not end]
        if kept:
            self._ends[caller] = kept
        else:
            self._ends.pop(caller, None)


class _Replay:
    """A `receive` that gives a body that was read already, then whatever comes."""

    def __init__(self, body: bytes, then: Receive | None = None) -> None:
        self._body: bytes | None = body
        self._then = then

    async def __call__(self) -> Message:
        if self._body is not None:
            message = {"type": "http.request", "body": self._body, "more_body": False}
            self._body = None
            return message
        return await self._then() if self._then else {"type": "http.disconnect"}


async def _collected(app: ASGIApp, scope: Scope, receive: Receive) -> Answer:
    status, headers, parts = 500, [], []

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], list(message.get("headers", []))
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    kept = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    return Answer(status, kept, b"".join(parts))


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def _within(seconds: float, waiting: Awaitable[object]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting


async def _unless(end: Coroutine[Any, Any, Any], work: Awaitable[T]) -> T | None:
    """The outcome of the work; None when something else ended before, and the work with it."""
    working = asyncio.ensure_future(work)
    ending = asyncio.ensure_future(end)
    try:
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, ending):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
