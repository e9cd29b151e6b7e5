"""Every test of the server's contract once more, through FastMCP's own client over real HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from sage.access.auth import Access
from sage.access.options import HttpOptions
from sage.http.run import TeamServer, addresses_of, bound_sockets, serve_sockets
from sage.http.tracing import Tracing
from sage.knowledge import KnowledgeBase
from tests.server import test_mcp_server as test_server
from tests.server.test_mcp_server import *  # noqa: F403 - the tests and their fixtures


def ask_over_http(
    knowledge: KnowledgeBase, question: Callable[[Any], Awaitable[Any]], mode: str = "auto"
) -> Any:
    async def scenario() -> Any:
        sockets = bound_sockets("127.0.0.1", 0)
        options = HttpOptions()
        access = Access.at(addresses_of(sockets), options, knowledge.settings)
        ready: asyncio.Future[TeamServer] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve_sockets(lambda: knowledge, options, access, sockets, ready.set_result, Tracing())
        )
        server = await ready
        transport = StreamableHttpTransport(f"http://127.0.0.1:{sockets[0].getsockname()[1]}/mcp")
        client: Any = Client(transport, mode=mode)
        try:
            async with client:
                return await question(client)
        finally:
            server.end()
            await serving

    return asyncio.run(scenario())


@pytest.fixture(autouse=True)
def over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_server, "ask", ask_over_http)
    # Before 2026-07-28 a cancellation is a request of its own: without sessions nobody can know
    # to which of many clients' calls of that number it belongs.
    monkeypatch.setattr(test_server, "CANCELLING", ("auto",))
