"""Every test of the server's contract once more, line by line over the wire of stdio."""

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
from sage.server import create_server, serve_wire
from sage.wire import Wire
from tests import test_server
from tests.test_server import *  # noqa: F403 - the tests and their fixtures


class PipeTransport(ClientTransport):
    """A client at the other end of two pipes; its half of the wire is one like the server's."""

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
        server, client = Wire(asked, tell, ends[0].set), Wire(told, ask, ends[1].set)
        serving = asyncio.create_task(serve_wire(create_server(self._knowledge), server))
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
                end.wait(10)
                os.close(source)


@pytest.fixture(autouse=True)
def over_stdio(monkeypatch: pytest.MonkeyPatch) -> None:
    over_pipes = functools.partial(test_server.ask, connect=PipeTransport)
    monkeypatch.setattr(test_server, "ask", over_pipes)
