"""uvicorn's home: connections that cannot be held by saying nothing, or by not listening.

uvicorn limits how long a connection may idle between two requests, but neither how long a client
may take to send the head of one, nor how long it may leave an answer unread.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import TypeGuard

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sage.limits import Limits

logger = logging.getLogger("sage.http")

MAX_HEAD_BYTES = 32 * 1024
# asyncio reads 256 KB at a time and uvicorn lets 64 KB of a body lie: for two thousand clients
# who send and stall, that would be half a gigabyte.
READ_BYTES = 16 * 1024


def bounded_protocol(limits: Limits) -> type["BoundedProtocol"]:
    """The protocol that a uvicorn of these limits speaks."""
    return type("Bounded", (BoundedProtocol,), {"limits": limits})


class BoundedProtocol(H11Protocol):
    """A connection that knows since when it waits for its client."""

    limits = Limits()
    _waiting_since = 0.0
    _unfetched_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; where there are too many already, in place of the one idle for longest."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if len(self.connections) > self.limits.connections:
            idle = [other for other in self.connections if _is_idle(other)]
            oldest = min(idle, key=lambda other: other._waiting_since, default=self)
            oldest.transport.abort()
            self.connections.discard(oldest)  # it is told of its end only a moment later

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        if self.timeout_keep_alive_task is not None:
            self._waiting_since = self.loop.time()  # it was idle, and begins a request
        super().data_received(data)
        if self.cycle is not None and len(self.cycle.body) >= READ_BYTES:
            self.flow.pause_reading()  # until the application asks for more

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._waiting_since = self.loop.time()
        super().on_response_complete()

    def is_overdue(self, now: float) -> bool:
        """Whether the client had long enough to send a request, or to fetch an answer."""
        if self.transport.get_write_buffer_size():
            if self._unfetched_since is None:
                self._unfetched_since = now
            return now - self._unfetched_since > self.limits.reader_seconds
        self._unfetched_since = None
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or _is_idle(self):
            return False
        return now - self._waiting_since > self.limits.header_seconds


def _is_idle(connection: object) -> TypeGuard[BoundedProtocol]:
    """Whether a connection waits between two requests."""
    return (
        isinstance(connection, BoundedProtocol) and connection.timeout_keep_alive_task is not None
    )


def drop_overdue(connections: Iterable[object], now: float) -> int:
    """End the connections whose clients take too long; how many there were."""
    overdue = [
        connection
        for connection in list(connections)
        if isinstance(connection, BoundedProtocol) and connection.is_overdue(now)
    ]
    for connection in overdue:
        connection.transport.abort()
    return len(overdue)


async def sweep(server: uvicorn.Server, limits: Limits) -> None:
    """Drop overdue connections, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(min(limits.header_seconds, limits.reader_seconds) / 10)
        dropped = drop_overdue(server.server_state.connections, loop.time())
        if dropped:
            logger.info("connections dropped", extra={"fields": {"slow_clients": dropped}})
