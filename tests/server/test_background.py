"""What goes on while a server serves."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sage.knowledge import KnowledgeBase
from sage.server.async_knowledge import AsyncKnowledge
from sage.server.background import background_tasks
from sage.server.subscriptions import Subscribers
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS


class Noted(KnowledgeBase):
    """A knowledge base that remembers when it was made ready."""

    warmed = 0
    broken = False

    def warm(self, *arguments: Any) -> None:
        self.warmed += 1
        if self.broken:
            raise OSError("no space left")


@pytest.fixture
def noted(base: Base, monkeypatch: pytest.MonkeyPatch) -> Noted:
    monkeypatch.setattr("sage.server.background.PREPARE_SECONDS", 0.0)
    return Noted(base.settings())


async def until(claim: Callable[[], bool]) -> None:
    while not claim():
        await asyncio.sleep(0.01)


def living(noted: Noted, scenario: Callable[[AsyncKnowledge, asyncio.Event], Any]) -> None:
    async def live() -> None:
        async_knowledge, met = AsyncKnowledge(noted), asyncio.Event()
        async with background_tasks(async_knowledge, Subscribers(lambda uri: None), met):
            await scenario(async_knowledge, met)

    asyncio.run(asyncio.wait_for(live(), PATIENCE_SECONDS))


def test_the_index_is_made_ready_once_a_client_was_greeted(noted: Noted) -> None:
    async def scenario(_: AsyncKnowledge, met: asyncio.Event) -> None:
        await asyncio.sleep(0.05)
        assert noted.warmed == 0
        met.set()
        await until(lambda: noted.warmed == 1)

    living(noted, scenario)


def test_an_index_that_cannot_be_made_ready_is_logged_and_serving_goes_on(
    noted: Noted, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(async_knowledge: AsyncKnowledge, met: asyncio.Event) -> None:
        noted.broken = True
        met.set()
        await until(lambda: "the first search tries again" in caplog.text)
        assert (await async_knowledge.call("sage_info", {}))["version"]

    living(noted, scenario)


def test_no_thread_is_left_when_the_server_is_gone(noted: Noted) -> None:
    async def scenario(async_knowledge: AsyncKnowledge, _: asyncio.Event) -> None:
        await async_knowledge.call("sage_info", {})
        await async_knowledge.page(0, 1)
        await async_knowledge.files()

    before = set(threading.enumerate())
    living(noted, scenario)
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
