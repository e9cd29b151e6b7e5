from itertools import chain, repeat

import pytest

from sage.deadline import Deadline
from sage.search.searcher import InterpretedQuery, Searcher
from sage.search.sections import SearchOptions
from tests.conftest import Base
from tests.indexed_base import IndexedBase

PAGES = {
    "core/a.md": "---\ntags: [ci]\nlanguage: go\n---\n# Alpha\n\nretry with backoff\n",
    "core/b.md": "# Beta\n\nretry without it, use -euo\n",
    "practices/c.md": "# Gamma\n\nnothing of that\n",
}
PHRASE_PAGES = {
    "core/a.md": "# A\n\nUse the idempotency key. Call getUserName first.\n",
    "core/b.md": "# B\n\nThe key of idempotency. The user name is first.\n",
    "core/c.md": "# Idempotency key\n\n```py\nset_user_name()\n```\n\n数据库迁移\n",
}


@pytest.fixture
def searcher(base: Base) -> Searcher:
    base.write(PAGES)
    return IndexedBase(base).update().searcher


def interpret(
    searcher: Searcher, text: str, layers: tuple[str, ...] | None = None
) -> InterpretedQuery:
    return searcher.interpret(text, layers, Deadline())


def allowed(searcher: Searcher, text: str, layers: tuple[str, ...] | None = None) -> list[str]:
    allows = interpret(searcher, text, layers).allowed
    slots = enumerate(searcher.catalog.slots)
    return [entry.title for slot, entry in slots if allows is None or allows(slot)]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("retry", ["Alpha", "Beta", "Gamma"]),
        ("retry -backoff", ["Beta", "Gamma"]),
        ("retry -gammas", ["Alpha", "Beta"]),
        ("tag:ci retry", ["Alpha"]),
        ("lang:go retry", ["Alpha"]),
        ("layer:practices retry", ["Gamma"]),
        ('"retry with"', ["Alpha"]),
        ("use -euo", ["Alpha", "Beta", "Gamma"]),
    ],
)
def test_filters_decide_which_documents_may_be_results(
    searcher: Searcher, text: str, titles: list[str]
) -> None:
    assert allowed(searcher, text) == titles


def test_a_layer_of_the_call_is_a_filter_and_all_layers_are_none(searcher: Searcher) -> None:
    assert allowed(searcher, "retry", ("core",)) == ["Alpha", "Beta"]
    assert (
        interpret(searcher, "retry", ("core", "guidelines", "frameworks", "practices")).allowed
        is None
    )


@pytest.mark.parametrize(
    ("phrase", "paths"),
    [
        ("idempotency key", ["core/a.md", "core/c.md"]),
        ("key of idempotency", ["core/b.md"]),
        ("user name", ["core/a.md", "core/b.md", "core/c.md"]),
        ("getUserName", ["core/a.md"]),
        ("数据库", ["core/c.md"]),
        ("key. Call", ["core/a.md"]),
    ],
)
def test_documents_that_hold_the_phrase_are_found(
    base: Base, phrase: str, paths: list[str]
) -> None:
    base.write(PHRASE_PAGES)
    assert sorted(IndexedBase(base).paths(f'"{phrase}"')) == paths


def test_no_phrase_reaches_from_a_heading_into_the_text(base: Base) -> None:
    base.write({"core/a.md": "# Zebra\n\ncrossing\n"})
    found = IndexedBase(base).search('"zebra crossing"')
    assert "no document holds the phrase" in found.note


def test_two_phrases_must_both_be_there(base: Base) -> None:
    base.write(PHRASE_PAGES)
    assert IndexedBase(base).paths('"idempotency key" "user name"') == ["core/a.md", "core/c.md"]


def test_phrases_of_different_documents_are_shown_with_a_note(base: Base) -> None:
    base.write(PHRASE_PAGES)
    found = IndexedBase(base).search('"key of idempotency" "数据库"')
    assert {result.path for result in found.sections} == {
        ".knowledge/core/b.md",
        ".knowledge/core/c.md",
    }
    assert "no document holds all the phrases" in found.note


@pytest.mark.parametrize(
    ("query", "paths", "note"),
    [
        ('"the" zebra', [".knowledge/core/a.md"], 'no document with the other words holds "the"'),
        ('"of the" zebra', [".knowledge/core/a.md"], "it was left out"),
        ('"at" zebra', [".knowledge/core/a.md"], ""),
        ('"the"', [".knowledge/core/b.md"], ""),
    ],
)
def test_a_quoted_stop_word_leaves_what_the_other_words_find(
    base: Base, query: str, paths: list[str], note: str
) -> None:
    base.write({"core/a.md": "# Zebra\n\nLook at it.\n", "core/b.md": "# Lion\n\nOf the sun.\n"})
    found = IndexedBase(base).search(query)
    assert [result.path for result in found.sections] == paths
    assert note in found.note


@pytest.mark.parametrize("query", ['"idempotency key"', "idempotency -getUserName"])
def test_an_answer_says_when_there_was_no_time_to_look_for_a_phrase(base: Base, query: str) -> None:
    base.write(PHRASE_PAGES)
    moments = chain([0.0, 0.0, 0.0], repeat(0.6))
    snapshot = IndexedBase(base).update()
    deadline = Deadline(1000, lambda: next(moments))
    found = snapshot.search(query, SearchOptions(10), deadline)
    assert not found.complete
    assert "no time to look at every page" in found.note
