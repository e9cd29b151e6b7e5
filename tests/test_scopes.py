"""A server for every set of layers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from sage.knowledge import KnowledgeBase, open_knowledge
from sage.refusals import Refused
from sage.scopes import MAX_OPEN, Scopes
from tests.conftest import Base


class Opened:
    """What is open, in place of servers."""

    def __init__(self) -> None:
        self.now: list[tuple[str, ...]] = []
        self.ever: list[KnowledgeBase] = []
        self.fails = False

    @contextlib.asynccontextmanager
    async def __call__(self, knowledge: KnowledgeBase) -> AsyncIterator[Any]:
        if self.fails:
            raise OSError("cannot be opened")
        layers = knowledge.settings.layers
        self.now.append(layers)
        self.ever.append(knowledge)
        yield lambda: layers
        self.now.remove(layers)
        if self.fails:
            raise OSError("cannot be closed")


@pytest.fixture
def knowledge(base: Base) -> KnowledgeBase:
    return open_knowledge(base.settings())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


async def layers_seen(scopes: Scopes, *layers: str) -> Any:
    async with scopes.endpoint(layers or None) as app:
        seen: Any = app
        return seen()


def test_a_set_of_layers_has_one_server_whatever_its_order(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        scopes = Scopes(knowledge, opened)
        assert await layers_seen(scopes, "practices", "core", "nowhere") == ("core", "practices")
        assert await layers_seen(scopes, "core", "practices") == ("core", "practices")
        assert len(opened.ever) == scopes.open == 1
        await scopes.close()
        assert opened.now == []

    run(work())


def test_all_layers_are_the_knowledge_base_itself(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        scopes = Scopes(knowledge, opened)
        assert await layers_seen(scopes) == knowledge.settings.layers
        assert await layers_seen(scopes, *knowledge.settings.layers) == knowledge.settings.layers
        assert opened.ever == [knowledge]
        await scopes.close()

    run(work())


def test_a_narrower_base_keeps_its_index_apart(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        scopes = Scopes(knowledge, opened)
        await layers_seen(scopes, "core")
        (narrow,) = opened.ever
        assert narrow.settings.cache_dir != knowledge.settings.cache_dir
        assert narrow.settings.cache_dir.is_relative_to(knowledge.settings.cache_dir)
        await scopes.close()

    run(work())


def test_layers_that_are_not_served_are_out_of_scope(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        with pytest.raises(Refused) as caught:
            await layers_seen(Scopes(knowledge, Opened()), "marketing")
        assert caught.value.status == 403

    run(work())


def test_those_idle_for_longest_are_closed(base: Base) -> None:
    async def work() -> None:
        names = [f"layer{number}" for number in range(MAX_OPEN + 4)]
        opened = Opened()
        scopes = Scopes(open_knowledge(base.settings(layers=names)), opened)
        async with scopes.endpoint(names[:1]):
            for name in names[1:]:
                await layers_seen(scopes, name)
            await asyncio.sleep(0)
            assert scopes.open == MAX_OPEN
            assert (names[0],) in opened.now  # in use
            assert (names[1],) not in opened.now
        await scopes.close()

    run(work())


def test_a_server_that_could_not_be_opened_is_tried_again(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        scopes = Scopes(knowledge, opened)
        opened.fails = True
        with pytest.raises(OSError, match="cannot be opened"):
            await layers_seen(scopes, "core")
        opened.fails = False
        assert await layers_seen(scopes, "core") == ("core",)
        await scopes.close()

    run(work())


def test_a_server_that_fails_at_its_end_is_logged_and_gone(
    knowledge: KnowledgeBase, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        opened = Opened()
        scopes = Scopes(knowledge, opened)
        await layers_seen(scopes, "core")
        opened.fails = True
        await scopes.close()
        assert opened.now == []

    run(work())
    assert "a server over core failed" in caplog.text
