"""Every test of the server's contract once more, line by line over the transport of stdio."""

import asyncio
import functools
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from mcp import ClientSession
from mcp.shared.message import SessionMessage

from sage.knowledge import KnowledgeBase
from sage.server.mcp_server import create_server, serve_transport
from sage.server.stdio_transport import StdioTransport
from tests.processes import PATIENCE_SECONDS
from tests.server import test_mcp_server as test_server
from tests.server.test_mcp_server import *  # noqa: F403 - the tests and their fixtures


class PipeTransport(ClientTransport):
    """A client at the other end of two pipes; its half is like the server's."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._knowledge = knowledge

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session: Any
    ) -> AsyncIterator[ClientSession]:
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, to_wire = anyio.create_memory_object_stream[SessionMessage]()
        (asked, ask), (told, tell) = os.pipe(), os.pipe()
        ends = threading.Event(), threading.Event()
        server, client = (
            StdioTransport(asked, tell, ends[0].set),
            StdioTransport(told, ask, ends[1].set),
        )
        serving = asyncio.create_task(serve_transport(create_server(self._knowledge), server))
        carrying = asyncio.create_task(client.carry(to_session, to_wire))
        kind = (transport_options or TransportOptions()).session_class
        try:
            async with kind(incoming, outgoing, **session) as connected:
                yield connected
        finally:
            server.finish()
            await serving
            os.close(tell)
            await carrying
            os.close(ask)
            for end, source in zip(ends, (asked, told), strict=True):
                end.wait(PATIENCE_SECONDS)
                os.close(source)


@pytest.fixture(autouse=True)
def over_stdio(monkeypatch: pytest.MonkeyPatch) -> None:
    over_pipes = functools.partial(test_server.ask, connect=PipeTransport)
    monkeypatch.setattr(test_server, "ask", over_pipes)
