"""The Python clients that hosts are built on, each against a real process on stdio."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport

from tests.processes import PATIENCE_SECONDS, clean_environment, serve_command, serving, write_base

CALLS: dict[str, dict[str, Any]] = {
    "sage_get_knowledge": {"layer": "core", "timeout_ms": 30_000},
    "sage_search": {"query": "fixtures"},
    "sage_get_context": {"task_type": "coding", "task": "write a test"},
    "sage_info": {},
}


def fastmcp_client(root: Path, mode: str) -> Any:
    command, *arguments = serve_command(root)
    transport = StdioTransport(command, arguments, clean_environment(root), keep_alive=False)
    return fastmcp.Client(transport, mode=mode)


def official_client(root: Path, mode: str) -> Any:
    command, *arguments = serve_command(root)
    parameters = mcp.StdioServerParameters(
        command=command, args=arguments, env=clean_environment(root)
    )
    return mcp.Client(parameters, mode=mode)


@pytest.mark.parametrize(
    ("mode", "version"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
@pytest.mark.parametrize("make", [fastmcp_client, official_client])
def test_a_conversation(
    tmp_path: Path, make: Callable[[Path, str], Any], mode: str, version: str
) -> None:
    async def scenario() -> None:
        async with make(write_base(tmp_path), mode) as client:
            assert client.session.protocol_version == version
            await converse(client)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_SECONDS))


async def converse(client: Any) -> None:
    call = getattr(client, "call_tool_mcp", client.call_tool)
    for tool, arguments in CALLS.items():
        result = await call(tool, arguments)
        assert not result.is_error, result.content
        assert json.loads(result.content[0].text) == result.structured_content
    refusal = await call("sage_search", {"query": "x", "limit": 99})
    assert refusal.content[0].text.startswith("INVALID_INPUT: ")
    resources = await client.list_resources()
    assert len(getattr(resources, "resources", resources)) == 4
    page = await client.read_resource("knowledge://practices/testing#fixtures")
    assert "real files" in getattr(page, "contents", page)[0].text


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_handshake_of_every_earlier_version(tmp_path: Path, version: str) -> None:
    with serving(write_base(tmp_path)) as server:
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        }
        result = server.request("initialize", params)["result"]
        assert result["protocolVersion"] == version
        answer = server.call("sage_search", {"query": "fixtures"})
        assert json.loads(answer["content"][0]["text"])["total"] >= 1
