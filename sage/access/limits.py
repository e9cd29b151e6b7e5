"""What one caller may take: bytes that are held for it, time to send them, requests in a time.

Pure but for the clock and the `receive` that are handed in. Places to run in are `fair_queue`'s.
"""

import asyncio
import contextlib
import hashlib
import json
import mmap
import struct
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from sage.access.refusals import too_large, too_slow

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

# A sender who is refused is heard out a little: one whose bytes are left unread gets a reset
# connection in place of the answer.
HEAR_OUT_BYTES = 1024 * 1024
HEAR_OUT_SECONDS = 2.0
# Who has sent or fetched nothing for so long may lose what is held for it.
STALE_SECONDS = 1.0
# So many callers are remembered; the one not seen for longest is forgotten first.
MAX_CALLERS = 10_000
MAX_SHARED = 65_536
_BUCKET = struct.Struct("=Qdd")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server; what an operator can change has a flag."""

    body_bytes: int = 256 * 1024
    """Longest request. The longest call a tool takes has 20,000 characters of `task`."""
    answer_bytes: int = 8 * 1024 * 1024
    """Longest answer; a host shows a model a hundredth of it."""
    held_bytes: int = 64 * 1024 * 1024
    """All requests in hand at a time, and as much again for all answers being fetched; one caller
    has at most a quarter of it."""
    header_seconds: float = 10.0
    body_seconds: float = 15.0
    idle_seconds: float = 75.0
    """Longer than the 60 s for which proxies keep a connection, so that they close it first."""
    reader_seconds: float = 30.0
    """How long a client may take to fetch an answer, beside the time that its length takes."""
    reader_rate: float = 64 * 1024
    """Bytes a second; a reader who is slower is cut off."""
    connections: int = 2_048
    address_connections: int = 512
    """Connections of one address, but for loopback and trusted proxies, who speak for others."""
    running: int = 8
    waiting: int = 2_048
    wait_seconds: float = 60.0
    streams: int = 256
    """Clients that listen for changes at a time."""
    caller_streams: int = 32
    stream_seconds: float = 3_600.0
    token_rate: float = 100.0
    address_rate: float = 200.0
    burst: int = 2_000

    @property
    def caller_bytes(self) -> int:
        """What one caller may have held at a time; any single answer is less."""
        return max(self.held_bytes // 4, self.answer_bytes)


class HeldBytes:
    """Bytes that callers have the server hold, bounded for all of them and for each.

    Who finds no room waits a moment for it. What has made no progress for longest is then given
    up, of the same caller if it holds too much itself, else of the one who holds most.
    """

    def __init__(
        self, most: int, caller_most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._caller_most = caller_most
        self._clock = clock
        self._holdings: set[Holding] = set()
        self._total = 0
        self._by_caller: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._turns: dict[str, asyncio.Lock] = {}

    @contextmanager
    def holding(self, caller: str, give_up: Callable[[], None]) -> Iterator["Holding"]:
        """Hold bytes for a caller, none at first.

        Args:
            give_up: called when they must be held no longer.
        """
        holding = Holding(self, caller, give_up, self._clock())
        self._holdings.add(holding)
        try:
            yield holding
        finally:
            self._drop(holding)

    def held_by(self, caller: str) -> int:
        """What one caller has the server hold."""
        return self._by_caller.get(caller, 0)

    async def add(self, holding: "Holding", size: int) -> None:
        """Hold so many bytes more, as soon as there is room."""
        if not self._has_room(holding.caller, size):
            # One of a caller's at a time looks for room: hundreds that looked whenever anything
            # changed would keep the loop from everybody else.
            turn = self._turns.setdefault(holding.caller, asyncio.Lock())
            async with turn:
                await self._find_room(holding, size)
            if not turn.locked():
                self._turns.pop(holding.caller, None)
        if holding in self._holdings:
            self._count(holding, size)

    async def _find_room(self, holding: "Holding", size: int) -> None:
        while rivals := self._rivals(holding, size):
            stale = min(rivals, key=lambda one: one.since)
            if self._clock() - stale.since >= STALE_SECONDS:
                self._drop(stale)
                stale.give_up()
                continue
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STALE_SECONDS / 4):
                    await self._changed.wait()

    def _has_room(self, caller: str, size: int) -> bool:
        return self.held_by(caller) + size <= self._caller_most and self._total + size <= self._most

    def touch(self, holding: "Holding") -> None:
        """Note that a holding made progress."""
        holding.since = self._clock()

    def _rivals(self, holding: "Holding", size: int) -> list["Holding"]:
        """The holdings of which one must go before there is room for so many bytes more."""
        if self.held_by(holding.caller) + size > self._caller_most:
            caller = holding.caller
        elif self._total + size > self._most:
            caller = max(self._by_caller, key=self.held_by)
        else:
            return []
        return [
            one
            for one in self._holdings
            if one.caller == caller and one.size and one is not holding
        ]

    def _count(self, holding: "Holding", size: int) -> None:
        holding.size += size
        holding.since = self._clock()
        self._total += size
        held = self.held_by(holding.caller) + size
        if held:
            self._by_caller[holding.caller] = held
        else:
            self._by_caller.pop(holding.caller, None)

    def _drop(self, holding: "Holding") -> None:
        if holding in self._holdings:
            self._holdings.discard(holding)
            if holding.size:
                self._count(holding, -holding.size)
                self._changed.set()


class Holding:
    """Bytes of one request or answer."""

    def __init__(
        self, all_held: HeldBytes, caller: str, give_up: Callable[[], None], since: float
    ) -> None:
        self._all_held = all_held
        self.caller = caller
        self.give_up = give_up
        self.since = since
        self.size = 0

    async def add(self, size: int) -> None:
        """Hold so many bytes more, as soon as there is room."""
        await self._all_held.add(self, size)

    def touch(self) -> None:
        """Note that the client sent or fetched a part."""
        self._all_held.touch(self)


async def read_body(
    receive: Receive, declared: str, limits: Limits, holding: Holding
) -> bytes | None:
    """The body of a request; None: the client is gone.

    Args:
        declared: the Content-Length header, "" when there is none.

    Raises:
        Refused: it is too long or too slow.
    """
    if declared.isdecimal() and int(declared[:20]) > limits.body_bytes:
        await _hear_out(receive)
        raise too_large(limits.body_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            whole = await _gather(receive, body, limits, holding)
    except TimeoutError:
        raise too_slow(limits.body_seconds) from None
    return bytes(body) if whole else None


async def _gather(receive: Receive, body: bytearray, limits: Limits, holding: Holding) -> bool:
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return False
        part: bytes = message.get("body", b"")
        if len(body) + len(part) > limits.body_bytes:
            if message.get("more_body"):
                await _hear_out(receive)
            raise too_large(limits.body_bytes)
        await holding.add(len(part))
        body += part
        if not message.get("more_body"):
            return True


async def _hear_out(receive: Receive) -> None:
    heard = 0
    try:
        async with asyncio.timeout(HEAR_OUT_SECONDS):
            while heard < HEAR_OUT_BYTES:
                message = await receive()
                heard += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
    except TimeoutError:
        return


class RateLimit:
    """A bucket for every caller: it refills at a rate, and a request takes one drop."""

    def __init__(
        self,
        rate: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        buckets: "OwnBuckets | SharedBuckets | None" = None,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets = OwnBuckets() if buckets is None else buckets

    def wait_seconds(self, caller: str) -> float:
        """Zero when the caller may go on, else how long until it may."""
        now = self._clock()
        level, since = self._buckets.read(caller) or (float(self._burst), now)
        level = min(self._burst, level + (now - since) * self._rate)
        allowed = level >= 1
        self._buckets.write(caller, level - 1 if allowed else level, now)
        return 0.0 if allowed else (1 - level) / self._rate


class OwnBuckets:
    """The buckets of one process: how full each was, and when."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def read(self, caller: str) -> tuple[float, float] | None:
        """The bucket of a caller; None when it was not seen for long."""
        return self._buckets.get(caller)

    def write(self, caller: str, level: float, now: float) -> None:
        """Remember how full it is now."""
        self._buckets[caller] = (level, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)

    def __len__(self) -> int:
        return len(self._buckets)


class SharedBuckets:
    """Buckets that processes share which were forked from one.

    Without a lock: where two of them take a drop in the same microsecond, one may be free. Two
    callers who fall on the same place begin anew in turns, with full buckets.
    """

    def __init__(self) -> None:
        self._table = mmap.mmap(-1, MAX_SHARED * _BUCKET.size)

    def read(self, caller: str) -> tuple[float, float] | None:
        """The bucket of a caller; None when it was not seen, or forgotten."""
        mark, start = self._place(caller)
        found, level, since = _BUCKET.unpack_from(self._table, start)
        return (level, since) if found == mark else None

    def write(self, caller: str, level: float, now: float) -> None:
        """Remember how full it is now."""
        mark, start = self._place(caller)
        _BUCKET.pack_into(self._table, start, mark, level, now)

    @staticmethod
    def _place(caller: str) -> tuple[int, int]:
        digest = hashlib.blake2b(caller.encode("utf-8", "replace"), digest_size=8).digest()
        mark = int.from_bytes(digest, "big") | 1  # never that of an empty place
        return mark, (mark >> 1) % MAX_SHARED * _BUCKET.size


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
