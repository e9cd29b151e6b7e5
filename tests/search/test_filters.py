"""Filters, orders and parts of a list: the arguments of a search beside its words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sage.errors import InvalidInput, NotFound
from sage.knowledge import KnowledgeBase
from tests.commands import Run, run
from tests.conftest import Base
from tests.server.test_mcp_server import call

__all__ = ["run"]


def page(title: str, text: str = "Retry with backoff.", **fields: str) -> str:
    matter = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\n{matter}---\n# {title}\n\n{text}\n"


PAGES = {
    "core/a.md": page("Alpha", type="decision", tags="[Ops, ci]", last_updated="2024-01-01"),
    "core/b.md": page("Beta", type="bug_fix", tags="[ops]", last_updated="2026-01-01"),
    "core/c.md": page("Gamma", type="plan", status="draft", last_updated="2025-01-01"),
    "practices/d.md": page("Delta", superseded_by="core/a", last_updated="2023-01-01"),
    "practices/e.md": page("Other", "Nothing of that.", type="plan", last_updated="2022-01-01"),
}


@pytest.fixture
def knowledge(base: Base) -> KnowledgeBase:
    return base.open(PAGES)


def titles(knowledge: KnowledgeBase, query: str = "retry backoff", **wanted: Any) -> list[str]:
    return [one["title"] for one in knowledge.search(query, **wanted)["results"]]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"types": ["decision"]}, {"Alpha"}),
        ({"types": ["Bug fix", "decision"]}, {"Alpha", "Beta"}),
        ({"tags": ["OPS"]}, {"Alpha", "Beta"}),
        ({"tags": ["ops"], "types": ["bug_fix"]}, {"Beta"}),
        ({"status": "draft"}, {"Gamma"}),
        ({"status": "superseded"}, {"Delta"}),
        ({"status": "published"}, {"Alpha", "Beta"}),
        ({"tags": ["ci"], "layer": "practices"}, set()),
    ],
)
def test_filters_apply_before_the_limit_and_the_total_is_true(
    knowledge: KnowledgeBase, wanted: dict[str, Any], expected: set[str]
) -> None:
    assert set(titles(knowledge, **wanted)) == expected
    assert knowledge.search("retry backoff", limit=1, **wanted)["total"] == len(expected)


def test_a_filter_in_the_query_narrows_further(knowledge: KnowledgeBase) -> None:
    assert titles(knowledge, "retry type:decision", tags=["ops"]) == ["Alpha"]
    assert titles(knowledge, "retry status:draft") == ["Gamma"]
    assert titles(knowledge, "retry status:draft", types=["decision"]) == []


def test_without_words_everything_that_passes_is_listed(knowledge: KnowledgeBase) -> None:
    answer = knowledge.search("", types=["plan"])
    assert [one["title"] for one in answer["results"]] == ["Gamma", "Other"]
    assert (answer["found"], answer["total"]) == ("yes", 2)
    assert "next_offset" not in answer


def test_whoever_may_see_no_source_is_told_so(knowledge: KnowledgeBase) -> None:
    settings = replace(knowledge.settings, is_narrowed=True, seen_sources=("web-ui",))
    with pytest.raises(NotFound, match="nor any other that this token may see"):
        titles(knowledge.narrowed(settings), source="web-ui")


@pytest.mark.parametrize("query", ["", "  \n"])
def test_without_words_and_filters_there_is_nothing_to_answer(
    knowledge: KnowledgeBase, query: str
) -> None:
    with pytest.raises(InvalidInput, match=r"query is empty; .* list pages by types"):
        knowledge.search(query)


def test_lists_are_sorted_by_date_or_path(knowledge: KnowledgeBase) -> None:
    assert titles(knowledge, "", sort="date") == ["Beta", "Gamma", "Alpha", "Delta", "Other"]
    assert titles(knowledge, "", sort="path") == ["Alpha", "Beta", "Gamma", "Delta", "Other"]
    assert titles(knowledge, sort="date") == ["Beta", "Gamma", "Alpha", "Delta"]
    assert titles(knowledge, sort="path", limit=2, offset=1) == ["Beta", "Gamma"]


@pytest.mark.parametrize("wrong", ["tomorrow", "9999-99-99", "29990101"])
def test_a_date_that_is_none_puts_no_page_first(base: Base, wrong: str) -> None:
    files = {
        "core/late.md": page("Late", last_updated="2999/1/1"),
        "core/wrong.md": page("Wrong", last_updated=wrong),
    }
    knowledge = base.open(files)
    assert titles(knowledge, sort="date") == ["Late", "Wrong"]
    info = knowledge.info()
    assert info["status"] == "degraded"
    assert "last_updated: expected a date" in info["problems"]["first"][0]["what"]


@pytest.mark.parametrize("query", ["", "backoff"])
@pytest.mark.parametrize("sort", ["relevance", "date", "path"])
def test_parts_of_a_list_hold_every_page_once(base: Base, query: str, sort: str) -> None:
    pages = {
        f"core/p{number:02}.md": page(f"Page {number}", f"Backoff {'word ' * number}{number}.")
        for number in range(37)
    }
    knowledge = base.open(pages)
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = knowledge.search(query, sort=sort, offset=offset, limit=10, max_tokens=500)
        assert answer["total"] == 37
        seen += [one["title"] for one in answer["results"]]
        offset = answer.get("next_offset", None if offset or sort != "relevance" else len(seen))
    assert sorted(seen) == sorted(f"Page {number}" for number in range(37))


def test_pages_are_filtered_by_where_they_come_from(base: Base, tmp_path: Path) -> None:
    standards = tmp_path / "standards/.knowledge/core"
    standards.mkdir(parents=True)
    (standards / "x.md").write_text(page("Company", "Retry with backoff everywhere."))
    base.environment["SAGE_SOURCES"] = f"company={standards.parents[1]}"
    knowledge = base.open(PAGES)
    assert titles(knowledge, source="company") == ["Company"]
    assert "Company" not in titles(knowledge, source="own")
    assert titles(knowledge, "", source="company") == ["Company"]
    assert titles(knowledge, "retry source:company") == ["Company"]


def test_a_tag_that_no_page_has_finds_nothing_and_names_the_nearest(
    knowledge: KnowledgeBase,
) -> None:
    answer = knowledge.search("retry", tags=["opps"])
    assert (answer["results"], answer["total"]) == ([], 0)
    assert 'no page has the tag "opps"; did you mean ops?' in answer["note"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"types": ["decison"]},
            "types: there is no 'decison'; use guide, ",
        ),
        ({"status": "active"}, "status: there is no 'active'; use draft, published"),
        ({"source": "owm"}, "there is no source 'owm'; use one of own; did you mean own"),
        ({"sort": "size"}, "sort: there is no 'size'; use relevance, date, path"),
        ({"offset": -1}, "offset is -1; use a whole number from 0"),
    ],
)
def test_a_wrong_filter_is_refused_with_the_right_ones(
    knowledge: KnowledgeBase, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        knowledge.search("retry", **wanted)


def test_a_client_filters_and_lists_through_the_tool(knowledge: KnowledgeBase) -> None:
    asked = {"query": "", "types": ["plan"], "status": "draft", "sort": "date", "limit": 5}
    answer = call(knowledge, "sage_search", asked).structured_content
    assert [one["title"] for one in answer["results"]] == ["Gamma"]


def test_the_command_filters_and_lists(knowledge: KnowledgeBase, run: Run) -> None:
    _, listed, _ = run(
        "search", "--type", "plan", "--type", "decision", "--sort", "date", "--limit", "2"
    )
    assert [word in listed for word in ("Gamma", "Alpha", "Other")] == [True, True, False]
    assert "2 of 3 documents; --offset 2 shows more" in listed
    assert "Delta" in run("search", "retry", "--status", "superseded")[1]
    assert "Alpha" in run("search", "retry", "--tag", "ci", "--explain")[1]
