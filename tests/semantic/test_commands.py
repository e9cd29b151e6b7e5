"""The commands that make vectors, use them and compare."""

import json

import pytest

from sage.semantic import models
from tests.commands import Run, run
from tests.conftest import Base
from tests.semantic.tiny import Tiny, tiny_model

GOLDEN = """\
- query: remember memos
  expect: core/a
- query: call again after a pause
  expect: core/b
"""
PAGES = {
    "core/a.md": "# Cache\n\nIt is stored, stored for an hour.\n",
    "core/b.md": "# Retry\n\nCall again, and repeat it after a pause.\n",
    "eval.yaml": GOLDEN,
}


__all__ = ["run"]


@pytest.fixture(autouse=True)
def _tiny(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.write(PAGES)
    monkeypatch.setattr(models, "model_named", lambda _: tiny_model(Tiny()))


def test_embed_makes_the_vectors_that_searches_by_hand_then_use(run: Run) -> None:
    assert run("search", "remember", "memos")[0] == 1
    code, said, _ = run("embed")
    assert (code, said.strip()) == (0, "5 of 5 sections with vectors of tiny")
    code, said, _ = run("search", "remember", "memos", "--json")
    assert json.loads(said)["results"][0]["by"] == "meaning"
    assert "5 of 5 sections with vectors" in run("info")[1]


def test_an_explanation_names_similarity_and_weight(run: Run) -> None:
    run("embed")
    _, said, _ = run("search", "remember", "memos", "--explain")
    assert "no word led here; similarity 1.000" in said
    assert "weight 1.0 against words 0.00" in said


def test_golden_queries_are_compared_side_by_side(run: Run) -> None:
    code, said, _ = run("eval", "--compare", "off,on")
    assert code == 0
    lines = [line.split() for line in said.splitlines()]
    assert ["-", "1", "better", "remember", "memos"] in lines
    assert ["1", "1", "call", "again", "after", "a", "pause"] in lines
    assert "off  hit rate 0.500" in said
    assert "on   hit rate 1.000" in said


def test_a_comparison_as_one_object(run: Run) -> None:
    _, said, _ = run("eval", "--compare", "off,on", "--json")
    found = json.loads(said)["compared"]
    assert (found["off"]["hit_rate"], found["on"]["hit_rate"]) == (0.5, 1.0)


@pytest.mark.parametrize("wrong", ["on", "on,of", ","])
def test_only_off_and_on_can_be_compared(run: Run, wrong: str) -> None:
    code, _, said = run("eval", "--compare", wrong)
    assert code == 2
    assert "use off,on" in said


def test_embed_where_it_is_off_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGE_SEARCH_SEMANTIC", "off")
    code, _, said = run("embed")
    assert code == 4
    assert "search.semantic is off" in said
