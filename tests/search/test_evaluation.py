import math
from pathlib import Path

import pytest

from sage.errors import InvalidInput
from sage.search.evaluation import (
    BelowFloor,
    Floors,
    Golden,
    discounted,
    evaluate,
    read_golden,
    read_golden_file,
)

ANSWERS = {
    "first": ["core/a", "core/b"],
    "second": ["core/x", "practices/testing/fixtures#scope"],
    "none": ["core/x"],
}


def search(query: str, layer: str, limit: int) -> list[str]:
    return ANSWERS[query][:limit]


def test_ranks_and_measures_are_those_of_the_results() -> None:
    measured = evaluate(
        [Golden("first", ("core/a",)), Golden("second", ("fixtures",)), Golden("none", ("a",))],
        search,
    )
    assert [outcome.ranks for outcome in measured.outcomes] == [(1,), (2,), (None,)]
    assert [outcome.best for outcome in measured.outcomes] == [1, 2, None]
    assert measured.hit_rate == pytest.approx(2 / 3)
    assert measured.mrr == pytest.approx((1 + 1 / 2) / 3)
    assert measured.ndcg == pytest.approx((1 + 1 / math.log2(3)) / 3)


def test_every_expected_topic_counts() -> None:
    measured = evaluate([Golden("first", ("core/a", "core/zzz"))], search)
    assert measured.hit_rate == 1.0
    assert measured.outcomes[0].ndcg == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_two_names_of_one_result_are_one_hit() -> None:
    measured = evaluate([Golden("first", ("core/a", "a.md"))], search)
    assert measured.outcomes[0].ranks == (1, 1)
    assert measured.outcomes[0].ndcg < 1.0


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("testing/fixtures", True),
        ("Practices/Testing/Fixtures.md", True),
        (".knowledge/practices/testing/fixtures.md", True),
        ("fixtures#scope", True),
        ("fixtures#other", False),
        ("ixtures", False),
        ("guides/fixtures", False),
    ],
)
def test_topics_are_compared_as_they_are_addressed(expected: str, found: bool) -> None:
    measured = evaluate([Golden("second", (expected,))], search)
    assert (measured.hit_rate == 1.0) is found


@pytest.mark.parametrize(
    "data",
    [
        {"how?": "core/a"},
        {"how?": ["core/a"]},
        [{"query": "how?", "expect": "core/a"}],
        {"queries": [{"query": "how?", "expect": ["core/a"]}]},
        {"queries": {"how?": "core/a"}},
    ],
)
def test_golden_files_have_two_shapes(data: object) -> None:
    assert read_golden(data) == [Golden("how?", ("core/a",))]


def test_a_golden_query_may_name_its_layer() -> None:
    assert read_golden([{"query": "q", "expect": "a", "layer": "core"}])[0].layer == "core"


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "text",
        [1],
        [{"expect": "a"}],
        [{"query": "q"}],
        [{"query": "q", "expect": []}],
        [{"query": "q", "expect": [1]}],
        [{"query": "q", "expect": "a", "expected": "b"}],
        {"q": None},
    ],
)
def test_another_shape_is_refused_with_its_place(data: object) -> None:
    with pytest.raises(InvalidInput, match="golden queries"):
        read_golden(data)


def test_a_golden_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text("queries:\n  - query: how?\n    expect: core/a\n")
    assert read_golden_file(path) == [Golden("how?", ("core/a",))]


@pytest.mark.parametrize("content", [None, b"\xff", b"a: [", b"- 1"])
def test_a_golden_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "eval.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput):
        read_golden_file(path)


def test_a_measure_below_its_floor_is_named() -> None:
    measured = evaluate([Golden("none", ("a",))], search)
    Floors().check(measured)
    with pytest.raises(BelowFloor, match=r"mrr is 0\.000, below 0\.500"):
        Floors(mrr=0.5).check(measured)


def test_measures_are_a_json_object() -> None:
    measured = evaluate([Golden("second", ("fixtures", "zzz"))], search)
    assert measured.as_object() == {
        "queries": 1,
        "hit_rate": 1.0,
        "mrr": 0.5,
        "ndcg": 0.3869,
        "outcomes": [{"query": "second", "expect": ["fixtures", "zzz"], "ranks": [2, None]}],
    }


def test_gain_is_discounted_by_place_and_grade() -> None:
    assert discounted([2, 1, 0], [1, 2]) == 1.0
    assert discounted([0, 2], [2]) == pytest.approx(1 / math.log2(3))
    assert discounted([], []) == 0.0


def test_only_the_first_places_are_hits() -> None:
    queries = [Golden("q", ("core/d",))]
    topics = ["core/a", "core/b", "core/c", "core/d"]
    assert evaluate(queries, lambda *_: topics).hit_rate == 0.0
    assert evaluate(queries, lambda *_: topics, within=4).hit_rate == 1.0


def test_a_golden_file_that_is_missing_is_told_with_what_belongs_into_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"eval.yaml is not there; write .*query: text, expect"):
        read_golden_file(tmp_path / "eval.yaml")
