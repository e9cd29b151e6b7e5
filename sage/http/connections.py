"""uvicorn's home: connections that cannot be held by saying nothing, or by not listening.

uvicorn limits how long a connection may idle between two requests, but neither how long a client
may take to send the head of one, nor how long it may leave an answer unread.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sage.access.hosts import is_loopback
from sage.access.limits import HEAR_OUT_BYTES, HEAR_OUT_SECONDS, Limits
from sage.http.request import CONNECTION

logger = logging.getLogger("sage.http")

MAX_HEAD_BYTES = 32 * 1024
# asyncio reads 256 KB at a time and uvicorn lets 64 KB of a body lie: for two thousand clients
# who send and stall, that would be half a gigabyte.
READ_BYTES = 16 * 1024
# Each part of a body costs the loop microseconds, however small: a megabyte in chunks of one byte
# kept it busy for half a second, also of a sender who had been refused.
MAX_PARTS = 1_024


def bounded_protocol(limits: Limits, trusted: Sequence[str] = ()) -> "type[BoundedProtocol]":
    """The protocol that a uvicorn of these limits speaks.

    Args:
        trusted: addresses and networks of proxies, who may have any number of connections.
    """
    return type("Bounded", (BoundedProtocol,), {"limits": limits, "trusted": _networks(trusted)})


class _FewParts(h11.Connection):
    """HTTP whose bodies come in a bounded number of parts."""

    _parts = 0

    def next_event(self) -> Any:
        """What the client sent next."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._parts = 0
        elif isinstance(event, h11.Data):
            self._parts += 1
            if self._parts > MAX_PARTS:
                raise h11.RemoteProtocolError("a body in too many parts")
        return event


class BoundedProtocol(H11Protocol):
    """A connection that knows since when it waits for its client."""

    limits = Limits()
    trusted: tuple[IPv4Network | IPv6Network, ...] = ()
    _waiting_since = 0.0
    _unfetched_since: float | None = None
    _refused_since: float | None = None
    _refused_bytes = 0
    _address = ""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _FewParts(h11.SERVER, MAX_HEAD_BYTES)
        self._answer = self.app
        self.app = self._answer_here

    async def _answer_here(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, which can end the connection that it came on."""
        await self._answer({**scope, CONNECTION: self}, receive, send)

    def abort(self) -> None:
        """End the connection now, whatever it has not sent."""
        self.transport.abort()
        self.connections.discard(self)  # it is told of its end only a moment later

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; where there are too many already, in place of the one that waits for longest."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._address = self.client[0] if self.client else ""
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if len(self.connections) > self.limits.address_connections and self._may_be_one_of_many():
            own = [other for other in self._others() if other._address == self._address]
            if len(own) >= self.limits.address_connections:
                _make_room(own, self)
        if len(self.connections) > self.limits.connections:
            _make_room(self._others(), self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and leave nothing that only the garbage collector could free.

        Its rounds hold up everybody: a flood of connections made them take a tenth of a second.
        """
        super().connection_lost(exc)
        self.app = self._answer
        self.transport._read_ready_cb = None  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        if self.timeout_keep_alive_task is not None:
            self._waiting_since = self.loop.time()  # it was idle, and begins a request
        if self._refused_since is not None and self._is_heard_out(len(data)):
            self.abort()
            return
        super().data_received(data)
        if self.cycle is not None and len(self.cycle.body) >= READ_BYTES:
            self.flow.pause_reading()  # until the application asks for more

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; where an answer has begun there is no place for another."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.abort()
            return
        super().send_400_response(msg)
        if self.is_answering and self.cycle is not None:
            # Whoever was about to answer is told that nobody listens any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered before its end."""
        self._waiting_since = self.loop.time()
        self._refused_since, self._refused_bytes = None, 0
        if self.conn.their_state is h11.SEND_BODY:
            self._refused_since = self._waiting_since
        super().on_response_complete()

    @property
    def is_answering(self) -> bool:
        """Whether a request has arrived whose answer is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_idle(self) -> bool:
        """Whether it waits between two requests."""
        return self.timeout_keep_alive_task is not None and self._refused_since is None

    def is_overdue(self, now: float) -> bool:
        """Whether the client had long enough to send a request, or to fetch an answer."""
        if self.transport.get_write_buffer_size():
            if self._unfetched_since is None:
                self._unfetched_since = now
            return now - self._unfetched_since > self.limits.reader_seconds
        self._unfetched_since = None
        if self._refused_since is not None and self._is_heard_out(0):
            return True
        if self.is_answering or self.is_idle:
            return False
        return now - self._waiting_since > self.limits.header_seconds

    def _is_heard_out(self, more_bytes: int) -> bool:
        """Whether the rest of a request that was answered early takes too long to be read.

        Who is cut off amid sending may not see the answer; a rest without end is not waited for.
        """
        if self.is_answering or self.conn.their_state is not h11.SEND_BODY:
            self._refused_since = None
            return False
        self._refused_bytes += more_bytes
        waited = self.loop.time() - (self._refused_since or 0.0)
        return waited > HEAR_OUT_SECONDS or self._refused_bytes > HEAR_OUT_BYTES

    def _may_be_one_of_many(self) -> bool:
        """Whether its address stands for one client, and not for all behind a proxy."""
        if is_loopback(self._address):
            return False
        try:
            address = ip_address(self._address)
        except ValueError:
            return True
        return not any(address in network for network in self.trusted)

    def _others(self) -> "list[BoundedProtocol]":
        return [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol) and other is not self
        ]


def _networks(texts: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    networks = []
    for text in texts:
        with contextlib.suppress(ValueError):  # `*`, or the name of a socket
            networks.append(ip_network(text, strict=False))
    return tuple(networks)


def _make_room(others: "list[BoundedProtocol]", newcomer: BoundedProtocol) -> None:
    """End the connection that has waited longest for its client, of the address with the most.

    The newcomer goes only when every other is being answered.
    """
    waiting = [other for other in others if not other.is_answering]
    counts = Counter(other._address for other in others)
    longest = min(
        waiting,
        key=lambda other: (-counts[other._address], other._waiting_since),
        default=newcomer,
    )
    longest.abort()


def drop_overdue(connections: Iterable[object], now: float) -> int:
    """End the connections whose clients take too long; how many there were."""
    overdue = [
        connection
        for connection in list(connections)
        if isinstance(connection, BoundedProtocol) and connection.is_overdue(now)
    ]
    for connection in overdue:
        connection.abort()
    return len(overdue)


async def sweep(server: uvicorn.Server, limits: Limits) -> None:
    """Drop overdue connections, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(min(limits.header_seconds, limits.reader_seconds) / 10)
        dropped = drop_overdue(server.server_state.connections, loop.time())
        if dropped:
            logger.info("connections dropped", extra={"fields": {"slow_clients": dropped}})
