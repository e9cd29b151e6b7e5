"""The list of all pages."""

import json
from typing import Any

import pytest

from sage.errors import InvalidInput
from sage.knowledge import KnowledgeBase
from sage.page_list import PageFilter, list_pages
from tests.commands import Run, run
from tests.conftest import Base

__all__ = ["run"]

PAGES = {
    "core/a.md": "---\nstatus: draft\nlast_updated: 2020-01-02\n---\n# Zulu\n\n" + "word " * 50,
    "core/b.md": "---\ntype: decision\ntags: [Ops]\nlast_updated: 2019-05-01\n---\n# Alpha\n",
    "practices/c.md": "---\nlast_updated: 2024-01-01\n---\n# Mike\n\n" + "word " * 9,
}


def topics(knowledge: KnowledgeBase, layer: str = "all", **wanted: Any) -> list[str]:
    found = list_pages(knowledge, layer, PageFilter(**wanted))
    return [page["topic"] for page in found["pages"]]


def test_pages_are_filtered_and_sorted(base: Base) -> None:
    knowledge = base.open(PAGES)
    assert topics(knowledge) == ["core/a", "core/b", "practices/c"]
    assert topics(knowledge, "core", sort="title") == ["core/b", "core/a"]
    assert topics(knowledge, sort="tokens") == ["core/a", "practices/c", "core/b"]
    assert topics(knowledge, sort="updated") == ["core/b", "core/a", "practices/c"]
    assert topics(knowledge, status="draft") == ["core/a"]
    assert topics(knowledge, type="decision") == topics(knowledge, tag="ops") == ["core/b"]


def test_total_is_true_whatever_is_shown(base: Base) -> None:
    answer = list_pages(base.open(PAGES), "all", PageFilter(limit=1, offset=1))
    assert answer["total"] == 3
    assert [page["topic"] for page in answer["pages"]] == ["core/b"]
    assert answer["pages"][0]["updated"] == "2019-05-01"


def test_tokens_are_what_reading_the_page_costs(base: Base) -> None:
    knowledge = base.open(PAGES)
    page = list_pages(knowledge, "practices", PageFilter())["pages"][0]
    assert page["tokens"] == knowledge.get("practices", "c")["metadata"]["token_count"]


@pytest.mark.parametrize("wanted", [{"sort": "titel"}, {"limit": 0}, {"offset": -1}])
def test_filter_that_cannot_be_is_refused(base: Base, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        topics(base.open(PAGES), "all", **wanted)


def test_command_prints_a_table_and_json(run: Run) -> None:
    code, out, _ = run("ls", "--limit", "1")
    assert code == 0
    assert "topic" in out.splitlines()[0]
    assert "1 to 1 of " in out
    assert json.loads(run("ls", "--json")[1])["total"] >= 2
