"""MCP over two file descriptors: one JSON-RPC message a line, read and written whole.

The reader is a daemon thread, so a client that says nothing cannot hold up the end of the
process. Bounds keep a client that sends without reading from filling the memory.
"""

import asyncio
import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

logger = logging.getLogger("sage.stdio")

MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_UNREAD_LINES = 64
MAX_PENDING = 256
# Calls that run when the client stops sending may still be answered within this time.
DRAIN_SECONDS = 1.5
_READ_BYTES = 64 * 1024
_TOO_LONG = b'"a message of more than 4 MB"'

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


class StdioTransport:
    """One client on two descriptors."""

    def __init__(self, source: int, sink: int, on_end: Callable[[], None]) -> None:
        self._source = source
        self._sink = sink
        self._on_end = on_end
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_UNREAD_LINES)
        self._pending: set[RequestId] = set()
        self._answered = asyncio.Event()
        self._gone = False

    async def carry(self, incoming: Incoming, outgoing: Outgoing) -> None:
        """Carry messages both ways until the server has nothing more to say."""
        threading.Thread(
            target=self._read, args=(asyncio.get_running_loop(),), name="sage-stdio", daemon=True
        ).start()
        async with outgoing, anyio.create_task_group() as tasks:
            tasks.start_soon(self._deliver, incoming)
            async for sent in outgoing:
                self._write(sent.message)
            tasks.cancel_scope.cancel()

    def finish(self) -> None:
        """Behave as if the client had closed its end."""
        self._lines.put_nowait(None)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for line in read_lines(self._source):
                self._room.acquire()
                _post(loop, self._lines.put_nowait, line)
        except OSError as error:
            logger.info("reading from the client failed: %s", error)
        self._on_end()
        _post(loop, self.finish)

    async def _deliver(self, incoming: Incoming) -> None:
        async with incoming:
            while (line := await self._lines.get()) is not None:
                self._room.release()
                await self._deliver_line(line, incoming)
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._until_pending(0)

    async def _deliver_line(self, line: bytes, incoming: Incoming) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            if line.strip():
                self._write(refusal_of(line))
            return
        if isinstance(message, JSONRPCRequest) and message.method != "subscriptions/listen":
            await self._until_pending(MAX_PENDING - 1)
            self._pending.add(message.id)
        elif isinstance(message, JSONRPCNotification):
            self._forget_cancelled(message)
        await incoming.send(SessionMessage(message))

    def _forget_cancelled(self, message: JSONRPCNotification) -> None:
        """A request that was cancelled is never answered."""
        cancelled = (message.params or {}).get("requestId")
        if message.method == "notifications/cancelled" and isinstance(cancelled, (str, int)):
            self._settle(cancelled)

    async def _until_pending(self, most: int) -> None:
        while len(self._pending) > most:
            self._answered.clear()
            await self._answered.wait()

    def _settle(self, request: RequestId | None) -> None:
        if request is not None:
            self._pending.discard(request)
            self._answered.set()

    def _write(self, message: JSONRPCMessage) -> None:
        # Written from the loop itself: a thread for each message would double the round trip.
        rest = memoryview(b"" if self._gone else _encoded(message))
        try:
            while rest:
                rest = rest[os.write(self._sink, rest) :]
        except OSError as error:
            logger.info("the client no longer reads: %s", error)
            self._gone = True
            self.finish()
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settle(message.id)


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *given: bytes) -> None:
    # The loop is closed when the server ended before the client did.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *given)


def read_lines(source: int) -> Iterator[bytes]:
    """The lines that arrive on a descriptor; one that is too long is named in its place."""
    parts: list[bytes] = []
    size = 0
    while block := os.read(source, _READ_BYTES):
        first, *others = block.split(b"\n")
        size += len(first)
        if size <= MAX_LINE_BYTES:
            parts.append(first)
        if others:
            yield b"".join(parts) if size <= MAX_LINE_BYTES else _TOO_LONG
            yield from others[:-1]
            parts, size = [others[-1]], len(others[-1])
    if parts and size <= MAX_LINE_BYTES:
        yield b"".join(parts)


def refusal_of(line: bytes) -> JSONRPCError:
    """The answer to a line that is no message, under its id when it has one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        error = ErrorData(code=PARSE_ERROR, message="Parse error: a line must be one JSON value")
        return JSONRPCError(jsonrpc="2.0", id=None, error=error)
    request = value.get("id") if isinstance(value, dict) else None
    known = isinstance(request, (str, int)) and not isinstance(request, bool)
    error = ErrorData(code=INVALID_REQUEST, message="Invalid request: not a JSON-RPC 2.0 message")
    return JSONRPCError(jsonrpc="2.0", id=request if known else None, error=error)


def _encoded(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # of pydantic or of the encoding
        # Everything is sanitised before it comes here; this keeps one slip from ending the server.
        logger.exception("an answer could not be written")
    error = ErrorData(code=INTERNAL_ERROR, message="INTERNAL: the answer could not be written")
    request = getattr(message, "id", None)
    return _encoded(JSONRPCError(jsonrpc="2.0", id=request, error=error))
