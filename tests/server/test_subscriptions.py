"""Clients are told that the knowledge base changed, in both eras of the protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, listen
from mcp.shared.exceptions import MCPError
from mcp_types import (
    EmptyResult,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from sage.knowledge import KnowledgeBase, open_knowledge
from sage.server.mcp_server import create_server
from sage.server.subscriptions import Subscribers
from sage.settings import load_settings
from tests.processes import write_base

PAGE = "knowledge://practices/testing"


@pytest.fixture
def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnowledgeBase:
    monkeypatch.setattr("sage.server.background.WATCH_SECONDS", 0.01)
    monkeypatch.setattr("sage.server.background.WATCH_SHARE", 1.0)
    root = write_base(tmp_path)
    return open_knowledge(load_settings({"root": root}, {"SAGE_CACHE_DIR": str(tmp_path)}))


def edit(knowledge: KnowledgeBase, text: str) -> None:
    (knowledge.settings.knowledge_dir / "practices" / "testing.md").write_text(text)


class Heard:
    """What a client of the older era is told, as it arrives."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        uri = getattr(getattr(message, "params", None), "uri", "")
        self.arrived.put_nowait(f"{message.method} {uri}".strip())


@asynccontextmanager
async def older_client(knowledge: KnowledgeBase) -> AsyncIterator[tuple[Client[Any], Heard]]:
    heard = Heard()
    async with Client(create_server(knowledge), mode="legacy", message_handler=heard) as client:
        yield client, heard


async def subscribe(client: Client[Any], uri: str) -> None:
    """As hosts of 2025 do; the SDK warns its own users against its method for it."""
    request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, EmptyResult)


async def keep_editing(knowledge: KnowledgeBase, heard: Heard, count: int) -> list[str]:
    """Edit until enough was heard: the first edit may come before the first look."""
    told: list[str] = []
    for number in range(3_000):
        edit(knowledge, f"# Edit {number}\n")
        try:
            told.append(await asyncio.wait_for(heard.arrived.get(), 0.1))
        except TimeoutError:
            continue
        if len(told) >= count:
            break
    return told


def test_an_older_client_is_told_that_the_list_changed(knowledge: KnowledgeBase) -> None:
    async def scenario() -> list[str]:
        async with older_client(knowledge) as (_, heard):
            return await keep_editing(knowledge, heard, 1)

    assert asyncio.run(scenario()) == ["notifications/resources/list_changed"]


def test_an_older_client_is_told_about_the_resources_it_subscribed_to(
    knowledge: KnowledgeBase,
) -> None:
    async def scenario() -> list[str]:
        async with older_client(knowledge) as (client, heard):
            await subscribe(client, PAGE)
            await subscribe(client, "knowledge://core")
            return await keep_editing(knowledge, heard, 2)

    assert asyncio.run(scenario()) == [
        "notifications/resources/list_changed",
        f"notifications/resources/updated {PAGE}",
    ]


def test_nobody_can_subscribe_to_what_is_not_ours(knowledge: KnowledgeBase) -> None:
    async def scenario() -> None:
        async with older_client(knowledge) as (client, _):
            await subscribe(client, "file:///etc/passwd")

    with pytest.raises(MCPError, match="NOT_FOUND: no resource has this URI"):
        asyncio.run(scenario())


def test_a_subscription_can_be_ended(knowledge: KnowledgeBase) -> None:
    async def scenario() -> list[str]:
        async with older_client(knowledge) as (client, heard):
            await subscribe(client, PAGE)
            end = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=PAGE))
            await client.session.send_request(end, EmptyResult)
            return await keep_editing(knowledge, heard, 2)

    assert set(asyncio.run(scenario())) == {"notifications/resources/list_changed"}


def test_a_client_that_listens_gets_what_it_asked_for(knowledge: KnowledgeBase) -> None:
    async def scenario() -> list[object]:
        async with (
            Client(create_server(knowledge)) as client,
            listen(
                client.session, resources_list_changed=True, resource_subscriptions=[PAGE]
            ) as events,
        ):
            told: list[object] = []
            editing = asyncio.create_task(keep_editing(knowledge, Heard(), 1))
            async for event in events:
                told.append(event)
                if len(told) == 2:
                    break
            editing.cancel()
            return told

    assert asyncio.run(scenario()) == [ResourcesListChanged(), ResourceUpdated(uri=PAGE)]


def test_a_client_that_left_is_no_longer_there(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribers = Subscribers(lambda uri: None)
    monkeypatch.setattr("sage.server.mcp_server.Subscribers", lambda check: subscribers)

    async def scenario() -> None:
        async with older_client(knowledge) as (client, _):
            await client.ping()
            assert subscribers.present
        assert not subscribers.present

    asyncio.run(scenario())


def test_nobody_is_there_before_somebody_comes() -> None:
    assert not Subscribers(lambda uri: None).present


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_only_lists_that_change_are_announced_as_changing(
    knowledge: KnowledgeBase, mode: str
) -> None:
    async def scenario() -> Any:
        async with Client(create_server(knowledge), mode=mode) as client:
            return client.server_capabilities

    capabilities = asyncio.run(scenario())
    assert capabilities.resources.list_changed is True
    assert capabilities.resources.subscribe is True
    if mode == "legacy":
        assert capabilities.tools.list_changed is False
