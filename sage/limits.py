"""What one caller may take: bytes of a request, time to send it, requests in a time.

Pure but for the clock and the `receive` that are handed in. Places to run in are `admission`'s.
"""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from sage.refusals import too_large, too_slow

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

# A sender who is refused is heard out a little: one whose bytes are left unread gets a reset
# connection in place of the answer.
_HEAR_OUT_BYTES = 1024 * 1024
_HEAR_OUT_SECONDS = 2.0
# So many callers are remembered; the one not seen for longest is forgotten first.
MAX_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server; what an operator can change has a flag."""

    body_bytes: int = 256 * 1024
    """Longest request. The longest call a tool takes has 20,000 characters of `task`."""
    answer_bytes: int = 8 * 1024 * 1024
    """Longest answer; a host shows a model a hundredth of it."""
    held_bytes: int = 64 * 1024 * 1024
    """All requests in hand at a time, and as much again for all answers being fetched."""
    header_seconds: float = 10.0
    body_seconds: float = 15.0
    idle_seconds: float = 75.0
    """Longer than the 60 s for which proxies keep a connection, so that they close it first."""
    reader_seconds: float = 30.0
    """How long a client may take to fetch an answer."""
    connections: int = 2_048
    running: int = 8
    waiting: int = 2_048
    wait_seconds: float = 60.0
    streams: int = 256
    """Clients that listen for changes at a time."""
    token_rate: float = 100.0
    address_rate: float = 200.0
    burst: int = 2_000


class Room:
    """A number of bytes that may be held at a time; who finds no room waits for it."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._changed = asyncio.Event()

    async def take(self, size: int) -> None:
        """Hold so many bytes more, as soon as there is room."""
        while size > self._left:
            self._changed.clear()
            await self._changed.wait()
        self._left -= size

    def give_back(self, size: int) -> None:
        """Hold so many bytes less."""
        self._left += size
        self._changed.set()


@asynccontextmanager
async def held_body(
    receive: Receive, declared: str, limits: Limits, room: Room
) -> AsyncIterator[bytes | None]:
    """The body of a request, in its room for as long as it is held; None: the client is gone.

    Args:
        declared: the Content-Length header, "" when there is none.

    Raises:
        Refused: it is too long or too slow.
    """
    if declared.isdecimal() and int(declared[:20]) > limits.body_bytes:
        await _hear_out(receive)
        raise too_large(limits.body_bytes)
    held = bytearray()
    try:
        try:
            async with asyncio.timeout(limits.body_seconds):
                whole = await _gather(receive, held, limits, room)
        except TimeoutError:
            raise too_slow(limits.body_seconds) from None
        yield bytes(held) if whole else None
    finally:
        room.give_back(len(held))


async def _gather(receive: Receive, held: bytearray, limits: Limits, room: Room) -> bool:
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return False
        part: bytes = message.get("body", b"")
        if len(held) + len(part) > limits.body_bytes:
            if message.get("more_body"):
                await _hear_out(receive)
            raise too_large(limits.body_bytes)
        await room.take(len(part))
        held += part
        if not message.get("more_body"):
            return True


async def _hear_out(receive: Receive) -> None:
    heard = 0
    try:
        async with asyncio.timeout(_HEAR_OUT_SECONDS):
            while heard < _HEAR_OUT_BYTES:
                message = await receive()
                heard += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
    except TimeoutError:
        return


class RateLimit:
    """A bucket for every caller: it refills at a rate, and a request takes one drop."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, caller: str) -> float:
        """Zero when the caller may go on, else how long until it may."""
        now = self._clock()
        level, since = self._buckets.get(caller, (float(self._burst), now))
        level = min(self._burst, level + (now - since) * self._rate)
        allowed = level >= 1
        self._buckets[caller] = (level - 1 if allowed else level, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - level) / self._rate

    def __len__(self) -> int:
        return len(self._buckets)


def caller_of(address: str) -> str:
    """Who an address stands for: in IPv6 whoever has one address has its whole /64."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and not parsed.ipv4_mapped:
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)


def oversized_answer(request_id: object, is_tool_call: bool, limits: Limits) -> bytes:
    """What is sent in place of an answer that is too long."""
    text = (
        f"INVALID_INPUT: the answer has more than {limits.answer_bytes // 2**20} MB; "
        "ask for less with a topic, a smaller max_tokens or a smaller limit"
    )
    if is_tool_call:
        outcome = {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
    else:
        outcome = {"error": {"code": -32602, "message": text}}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, **outcome}).encode()
