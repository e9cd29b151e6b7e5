"""From a message that was let in to its answer: places, room, and clients that go away.

A call runs in one of a few places, and cheap calls have places of their own. It keeps its place
until there is room for its answer, and is cancelled when its client goes.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine, Iterator
from typing import Any, NamedTuple, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope

from sage import exchange
from sage.admission import Gate
from sage.limits import Limits, Room, oversized_answer
from sage.metrics import gauge
from sage.refusals import closing
from sage.tools import INFO
from sage.visits import Visit

T = TypeVar("T")

# What is noted as the status of a request whose client did not wait for the answer.
GONE = 499

# Everything else answers from what is at hand; these read documents or search.
_HEAVY = {"tools/call", "resources/read", "resources/list", "prompts/get", "completion/complete"}


class Request(NamedTuple):
    """A message that was let in."""

    message: exchange.Message
    body: bytes
    receive: Receive

    @property
    def is_heavy(self) -> bool:
        """Whether it takes a while to answer."""
        return self.message.method in _HEAVY and self.message.tool != INFO


class Answer(NamedTuple):
    """What MCP answered."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Delivery:
    """Runs calls and delivers their answers."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._answers = Room(max(limits.held_bytes, limits.answer_bytes))
        self._calls = Gate(limits.running, limits.waiting, limits.wait_seconds)
        self._quick = Gate(limits.running, limits.waiting, limits.wait_seconds)
        self._streams = Gate(limits.streams, 0, 0)
        self._closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """Whether nothing new is begun."""
        return self._closing.is_set()

    def close(self) -> None:
        """Begin nothing new, and end what would go on for ever."""
        self._closing.set()

    async def serve(self, visit: Visit, app: ASGIApp, request: Request) -> None:
        """Answer a message.

        Raises:
            Refused: there is no place for it.
        """
        if request.message.method == exchange.LISTEN:
            await self._stream(visit, app, request)
        else:
            await self._call(visit, app, request)

    def families(self) -> list[Iterator[str]]:
        """How busy it is, as metrics."""
        return [
            gauge("sage_calls_running", "Calls with a place.", self._calls.running),
            gauge("sage_calls_waiting", "Calls that wait for one.", self._calls.waiting),
            gauge("sage_streams", "Clients that listen for changes.", self._streams.running),
        ]

    async def _call(self, visit: Visit, app: ASGIApp, request: Request) -> None:
        answer = await _unless(_gone(request.receive), self._answer(visit, app, request))
        if answer is None:
            visit.status = GONE
            return
        try:
            headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
            await visit.answer(answer.status, answer.body, headers)
        finally:
            self._answers.give_back(len(answer.body))

    async def _answer(self, visit: Visit, app: ASGIApp, request: Request) -> Answer:
        """What MCP answers, once there is a place for the call and then room for its answer."""
        gate = self._calls if request.is_heavy else self._quick
        async with gate.place(visit.caller):
            answer = await _collected(app, visit.scope, _Replay(request.body))
            if len(answer.body) > self._limits.answer_bytes:
                shorter = oversized_answer(
                    request.message.id, bool(request.message.tool), self._limits
                )
                answer = Answer(200, [(b"content-type", b"application/json")], shorter)
            await self._answers.take(len(answer.body))
        return answer

    async def _stream(self, visit: Visit, app: ASGIApp, request: Request) -> None:
        """Serve a client that listens until it goes, or the server does."""
        async with self._streams.place(visit.caller):
            replay = _Replay(request.body, request.receive)
            await _unless(self._closing.wait(), app(visit.scope, replay, visit.send))
            if not visit.status:
                raise closing()
            if not visit.is_complete:
                await visit.send({"type": "http.response.body", "body": b""})


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
