"""What goes on while a server serves."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sage.desk import Desk
from sage.knowledge import KnowledgeBase
from sage.notifications import Audience
from sage.upkeep import upkeep
from tests.conftest import Base


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
    monkeypatch.setattr("sage.upkeep.PREPARE_SECONDS", 0.0)
    return Noted(base.settings())


async def until(claim: Callable[[], bool]) -> None:
    while not claim():
        await asyncio.sleep(0.01)


def living(noted: Noted, scenario: Callable[[Desk, asyncio.Event], Any]) -> None:
    async def live() -> None:
        desk, met = Desk(noted), asyncio.Event()
        async with upkeep(desk, Audience(lambda uri: None), met):
            await scenario(desk, met)

    asyncio.run(asyncio.wait_for(live(), 20))


def test_the_index_is_made_ready_once_a_client_was_greeted(noted: Noted) -> None:
    async def scenario(_: Desk, met: asyncio.Event) -> None:
        await asyncio.sleep(0.05)
        assert noted.warmed == 0
        met.set()
        await until(lambda: noted.warmed == 1)

    living(noted, scenario)


def test_an_index_that_cannot_be_made_ready_is_logged_and_serving_goes_on(
    noted: Noted, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(desk: Desk, met: asyncio.Event) -> None:
        noted.broken = True
        met.set()
        await until(lambda: "the first search tries again" in caplog.text)
        assert (await desk.call("sage_info", {}))["version"]

    living(noted, scenario)


def test_no_thread_is_left_when_the_server_is_gone(noted: Noted) -> None:
    async def scenario(desk: Desk, _: asyncio.Event) -> None:
        await desk.call("sage_info", {})
        await desk.documents()
        await desk.files()

    before = set(threading.enumerate())
    living(noted, scenario)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()
