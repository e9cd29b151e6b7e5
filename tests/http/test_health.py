"""Whether a server is ready, and that it follows its checkout."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sage.http.health import Health
from sage.http.metrics import rendered
from sage.knowledge import open_knowledge
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS


@pytest.fixture
def written(base: Base) -> Base:
    base.write({"core/one.md": "# One\n\nText.\n", "practices/two.md": "# Two\n\nText.\n"})
    return base


def watch(base: Base, work: Callable[[Health], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        health = Health(open_knowledge(base.settings()), base.clock)
        try:
            await work(health)
        finally:
            health.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_SECONDS))


async def page(health: Health) -> str:
    return rendered(await health.families()).decode()


def test_it_is_ready_once_the_index_is(written: Base) -> None:
    async def work(health: Health) -> None:
        assert await health.trouble() == "the index is being prepared"
        await health.take_in(None)
        assert await health.trouble() == ""
        assert "sage_ready 1" in await page(health)

    watch(written, work)


def test_a_changed_checkout_is_taken_in_and_an_unchanged_one_is_not(written: Base) -> None:
    async def work(health: Health) -> None:
        before = await health.take_in(None)
        assert await health.take_in(before) is before
        written.write({"core/three.md": "# Three\n"})
        after = await health.take_in(before)
        assert after is not None
        assert before is not None
        assert len(after) == len(before) + 1
        written.clock.tick(2)
        shown = await page(health)
        assert "sage_reload_seconds_count 2" in shown
        assert 'sage_documents{layer="core"} 2' in shown
        assert "sage_index_documents 3" in shown

    watch(written, work)


def test_a_checkout_that_is_gone_is_trouble(written: Base) -> None:
    async def work(health: Health) -> None:
        await health.take_in(None)
        written.path("").rename(written.root / "elsewhere")
        assert "the .knowledge folder is gone" in await health.trouble()
        assert "sage_ready 0" in await page(health)

    watch(written, work)


def test_a_flood_of_probes_looks_once(written: Base) -> None:
    async def work(health: Health) -> None:
        await health.take_in(None)
        first = await health.info()
        assert await health.info() is first
        written.clock.tick(2)
        assert await health.info() is not first

    watch(written, work)


def test_it_tells_once_that_all_is_ready(written: Base) -> None:
    told: list[str] = []

    async def run() -> None:
        knowledge = open_knowledge(written.settings())
        health = Health(knowledge, written.clock, lambda: told.append("warm"))
        before = await health.take_in(None)
        written.write({"core/three.md": "# Three\n"})
        await health.take_in(before)
        health.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_SECONDS))
    assert told == ["warm"]
