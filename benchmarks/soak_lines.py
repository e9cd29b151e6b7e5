"""How the soak speaks to a server: over HTTP with a connection for each client, or over stdio.

A line carries one call and gives back the message that answers it; what an answer should say is
`soak`'s.
"""

import asyncio
import itertools
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks.http_load import VERSIONS, Call, request_bytes

LIMIT_BYTES = 2**24


class Line(Protocol):
    """A way to one server."""

    async def ask(self, call: Call) -> dict[str, Any]:
        """The message that answers a call."""
        ...


class HttpLine:
    """A connection that is kept, and speaks both versions of the protocol in turns."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._versions = itertools.cycle(VERSIONS)

    async def ask(self, call: Call) -> dict[str, Any]:
        """The body of the answer; of one that is not 200, its first line."""
        self._writer.write(request_bytes(call, next(self._versions)))
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        status = head.split(b"\r\n")[0].decode()
        message: dict[str, Any] = json.loads(body) if " 200 " in status else {"error": status}
        return message

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


class StdioLine:
    """The one wire to a process, on which many calls can be under way."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._sent = 0

    async def ask(self, call: Call) -> dict[str, Any]:
        """The answer, whatever else is answered before it."""
        return await self.request("tools/call", {"name": call[0], "arguments": call[1]})

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._sent += 1
        answer = asyncio.get_running_loop().create_future()
        self._waiting[self._sent] = answer
        message = {"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        received: dict[str, Any] = await answer
        return received

    async def receive(self) -> None:
        """Give every message to whoever waits for it, until the server ends."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if answer := self._waiting.pop(message.get("id"), None):
                answer.set_result(message)
        for waiting in self._waiting.values():
            waiting.set_exception(ConnectionError("the server ended"))


@asynccontextmanager
async def http_lines(port: int, count: int) -> AsyncIterator[Sequence[HttpLine]]:
    """Connections to a server on this machine."""
    lines = [
        HttpLine(*await asyncio.open_connection("127.0.0.1", port, limit=LIMIT_BYTES))
        for _ in range(count)
    ]
    try:
        yield lines
    finally:
        for line in lines:
            line.close()


@asynccontextmanager
async def stdio_line(root: Path, cache: Path) -> AsyncIterator[tuple[StdioLine, int]]:
    """A server as a host starts it, greeted; and its process id."""
    command = [sys.executable, "-m", "sage", "serve", "--root", str(root)]
    environment = {**os.environ, "SAGE_CACHE_DIR": str(cache)}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, env=environment, limit=LIMIT_BYTES
    )
    line = StdioLine(process)
    receiving = asyncio.create_task(line.receive())
    try:
        client = {"name": "soak", "version": "1"}
        version = "2025-06-18"
        greeting = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        await line.request("initialize", greeting)
        yield line, process.pid
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await receiving
