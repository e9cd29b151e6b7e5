"""The Python clients that hosts are built on, each against a team's server."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StreamableHttpTransport

from sage.access.token_file import TokenFile
from tests import httpkit, processes
from tests.clients.test_python import converse
from tests.processes import PATIENCE_SECONDS


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = processes.write_base(tmp_path_factory.mktemp("clients"))
    with httpkit.serving(root) as client:
        yield f"http://127.0.0.1:{client.port}/mcp"


@pytest.mark.parametrize(
    ("mode", "version"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
@pytest.mark.parametrize("make", [fastmcp.Client, mcp.Client])
def test_a_conversation(url: str, make: Callable[..., Any], mode: str, version: str) -> None:
    async def scenario() -> None:
        async with make(url, mode=mode) as client:
            assert client.session.protocol_version == version
            await converse(client)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_SECONDS))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_conversation_with_a_token(tmp_path_factory: pytest.TempPathFactory, mode: str) -> None:
    folder = tmp_path_factory.mktemp("token")
    tokens = TokenFile(folder / "tokens.json")
    headers = {"Authorization": f"Bearer {tokens.create('host')}"}

    async def scenario(url: str) -> None:
        async with fastmcp.Client(StreamableHttpTransport(url, headers), mode=mode) as client:
            await converse(client)

    root = processes.write_base(folder)
    with httpkit.serving(root, tokens=tokens.path, require_token=True) as server:
        asyncio.run(
            asyncio.wait_for(scenario(f"http://127.0.0.1:{server.port}/mcp"), PATIENCE_SECONDS)
        )
