"""A server for every set of layers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sage.access.refusals import Refused
from sage.access.token_file import TokenScope
from sage.check.run import check_knowledge
from sage.deadline import Clocks
from sage.documents.library import Library
from sage.errors import InvalidInput
from sage.http.layer_servers import MAX_OPEN, LayerServers
from sage.knowledge import KnowledgeBase, open_knowledge
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS


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
    asyncio.run(asyncio.wait_for(work, PATIENCE_SECONDS))


async def layers_seen(layer_servers: LayerServers, *layers: str) -> Any:
    async with layer_servers.endpoint(TokenScope(layers or None)) as app:
        seen: Any = app
        return seen()


def test_a_set_of_layers_has_one_server_whatever_its_order(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        layer_servers = LayerServers(knowledge, opened)
        assert await layers_seen(layer_servers, "practices", "core", "nowhere") == (
            "core",
            "practices",
        )
        assert await layers_seen(layer_servers, "core", "practices") == ("core", "practices")
        assert len(opened.ever) == layer_servers.open == 1
        await layer_servers.close()
        assert opened.now == []

    run(work())


def test_all_layers_are_the_knowledge_base_itself(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        layer_servers = LayerServers(knowledge, opened)
        assert await layers_seen(layer_servers) == knowledge.settings.layers
        assert (
            await layers_seen(layer_servers, *knowledge.settings.layers)
            == knowledge.settings.layers
        )
        assert opened.ever == [knowledge]
        await layer_servers.close()

    run(work())


def test_a_narrower_base_keeps_its_index_apart(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        layer_servers = LayerServers(knowledge, opened)
        await layers_seen(layer_servers, "core")
        (narrow,) = opened.ever
        assert narrow.settings.cache_dir != knowledge.settings.cache_dir
        assert narrow.settings.cache_dir.is_relative_to(knowledge.settings.cache_dir)
        await layer_servers.close()

    run(work())


def test_layers_that_are_not_served_are_out_of_scope(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        with pytest.raises(Refused) as caught:
            await layers_seen(LayerServers(knowledge, Opened()), "marketing")
        assert caught.value.status == 403

    run(work())


def test_those_idle_for_longest_are_closed(base: Base) -> None:
    async def work() -> None:
        names = [f"layer{number}" for number in range(MAX_OPEN + 4)]
        opened = Opened()
        layer_servers = LayerServers(open_knowledge(base.settings(layers=names)), opened)
        async with layer_servers.endpoint(TokenScope((names[0],))):
            for name in names[1:]:
                await layers_seen(layer_servers, name)
            await asyncio.sleep(0)
            assert layer_servers.open == MAX_OPEN
            assert (names[0],) in opened.now  # in use
            assert (names[1],) not in opened.now
        await layer_servers.close()

    run(work())


def test_a_server_that_could_not_be_opened_is_tried_again(knowledge: KnowledgeBase) -> None:
    async def work() -> None:
        opened = Opened()
        layer_servers = LayerServers(knowledge, opened)
        opened.fails = True
        with pytest.raises(OSError, match="cannot be opened"):
            await layers_seen(layer_servers, "core")
        opened.fails = False
        assert await layers_seen(layer_servers, "core") == ("core",)
        await layer_servers.close()

    run(work())


def test_a_server_that_fails_at_its_end_is_logged_and_gone(
    knowledge: KnowledgeBase, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        opened = Opened()
        layer_servers = LayerServers(knowledge, opened)
        await layers_seen(layer_servers, "core")
        opened.fails = True
        await layer_servers.close()
        assert opened.now == []

    run(work())
    assert "a server over core failed" in caplog.text


def test_a_token_for_some_sources_sees_these_and_no_others(base: Base) -> None:
    async def work() -> None:
        company = base.root.parent / "company/.knowledge/core"
        company.mkdir(parents=True)
        (company / "principles.md").write_text("# Principles\n\nOf the company.\n")
        base.environment["SAGE_SOURCES"] = f"company={base.root.parent / 'company'}"
        base.write({"core/principles.md": "# Principles\n\nOur own.\n"})
        seen: dict[str, KnowledgeBase] = {}

        @contextlib.asynccontextmanager
        async def opener(knowledge: KnowledgeBase) -> AsyncIterator[Any]:
            seen[" ".join(one.name for one in knowledge.settings.served)] = knowledge
            yield None

        layer_servers = LayerServers(open_knowledge(base.settings()), opener)
        for sources in (None, ("own",), ("company",)):
            async with layer_servers.endpoint(TokenScope(None, sources)):
                pass
        with pytest.raises(Refused, match="sources"):
            async with layer_servers.endpoint(TokenScope(None, ("other",))):
                pass
        await layer_servers.close()
        assert set(seen) == {"own company", "own", "company"}
        for name, said in (("own", "Our own"), ("company", "Of the company")):
            knowledge = seen[name]
            assert said in knowledge.get("core", "principles")["content"]
            answer = knowledge.search("principles")
            assert [one.get("source") for one in answer["results"]] == [None]
            assert "sources" not in knowledge.info()["knowledge_base"]
        assert "Our" not in str(seen["company"].get("all")["content"])

    run(work())


MAPPED = """\
layers:
  guidelines: [docs/secret, 'docs/**/*-secret.md']
  core: [docs, .knowledge, 'docs/**/*-secret.md']
  practices:
"""


def test_a_page_of_a_layer_that_is_hidden_is_no_other_layers_page(base: Base) -> None:
    (base.root / "sage.yaml").write_text(MAPPED)
    for path in ("a", "secret/salaries", "b/c-secret", "secret/deeper/x"):
        (base.root / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (base.root / "docs" / f"{path}.md").write_text(f"# {path}\n\nnarwhal\n")
    base.write({"practices/mine.md": "# Mine\n\nnarwhal\n"})
    opened = Opened()

    async def work() -> None:
        layer_servers = LayerServers(open_knowledge(base.settings()), opened)
        await layers_seen(layer_servers, "core")
        await layer_servers.close()

    run(work())
    (narrowed,) = opened.ever
    assert [name.rpartition("/")[2] for name in narrowed.topics("all")] == ["a"]
    assert narrowed.search("narwhal")["total"] == 1
    found = check_knowledge(narrowed.settings, date(2026, 1, 1))
    assert found.pages == 1
    narrowed.close()


def test_settings_that_nothing_can_be_served_with_change_nothing(
    knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = replace(knowledge.settings, layers=(), own_layers=())

    async def work() -> None:
        layer_servers = LayerServers(knowledge, Opened())
        with monkeypatch.context() as patched:
            patched.setattr(Library, "current_settings", nothing)
            with pytest.raises(Refused):
                await layers_seen(layer_servers)
        assert await layers_seen(layer_servers) == knowledge.settings.layers
        await layer_servers.close()

    run(work())


def test_a_narrower_base_is_as_old_as_the_server(base: Base) -> None:
    now = [100.0]
    knowledge = KnowledgeBase(base.settings(), Clocks(monotonic=lambda: now[0]))
    now[0] += 3_600
    narrow = knowledge.narrowed(replace(knowledge.settings, is_narrowed=True, layers=("core",)))
    assert narrow.info()["uptime_seconds"] >= knowledge.info()["uptime_seconds"] == 3_600


def test_a_token_for_layers_is_told_of_no_source_without_them(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, layer in (("shadow", "dark"), ("empty", "core"), ("open", "core")):
        (tmp_path / name / ".knowledge" / layer).mkdir(parents=True)
        (tmp_path / name / "sage.yaml").write_text(f"layers: [{layer}]\n")
    (tmp_path / "open" / ".knowledge" / "core" / "a.md").write_text("# A\n\nSeen.\n")
    base.write({"core/one.md": "# One\n\nText.\n"})
    named = [f"{name}={tmp_path / name}" for name in ("shadow", "empty", "open")]

    async def work() -> None:
        opened = Opened()
        layer_servers = LayerServers(open_knowledge(base.settings(sources=named)), opened)
        await layers_seen(layer_servers, "core")
        await layer_servers.close()
        (narrow,) = opened.ever
        told = narrow.info()["knowledge_base"]["sources"]
        assert [one["name"] for one in told] == ["own", "open"]
        with pytest.raises(InvalidInput) as caught:
            narrow.search("text", source="nowhere")
        assert "shadow" not in str(caught.value)

    run(work())
