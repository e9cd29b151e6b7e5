"""The verdict on a query."""

import pytest

from sage.search.scoring import Evidence, is_about_something, judge

GOOD = Evidence(score=0.6, coverage=0.9, missing=0.0, words=4, length=500, documents=100, home=4)
WEAK = GOOD._replace(score=0.3, coverage=0.3, home=2.5)


def test_what_is_covered_is_found() -> None:
    assert judge(GOOD) == "yes"


def test_a_missing_word_makes_it_partly() -> None:
    assert judge(GOOD._replace(missing=0.2)) == "partly"


def test_a_few_common_words_are_nothing() -> None:
    assert judge(WEAK) == "no"


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"length": 60}, id="the pages are short notes"),
        pytest.param({"words": 30}, id="the question is long"),
        pytest.param({"documents": 8}, id="there are few pages"),
        pytest.param({"home": 6}, id="a word is much commoner here than in English"),
        pytest.param({"coverage": 1.0, "score": 0.4}, id="one section holds all of it"),
    ],
)
def test_less_is_needed_when(more: dict[str, float]) -> None:
    assert judge(WEAK._replace(**more)) != "no"  # type: ignore[arg-type]


def test_a_name_that_one_section_has_is_never_nothing() -> None:
    name = WEAK._replace(score=0.6, coverage=1.0, words=1, length=2_000, documents=2_000, home=0.5)
    assert judge(name) == "partly"
    assert judge(name._replace(home=0.0)) == "no"
    assert judge(name._replace(words=3)) == "no"
    assert judge(name._replace(coverage=0.9)) == "no"


def test_missing_words_speak_against_it() -> None:
    almost = WEAK._replace(home=4.5)
    assert judge(almost) == "partly"
    assert judge(almost._replace(missing=0.4)) == "no"


def test_nothing_at_all_is_no() -> None:
    nothing = Evidence(0.0, 0.0, 1.0, 0, 500, 100)
    assert judge(nothing) == "no"
    assert not is_about_something(nothing)


def test_the_pages_of_a_task_are_judged_together_where_they_are_few_or_hold_most_of_it() -> None:
    weak = GOOD._replace(score=0.15, coverage=0.2, missing=0.4, together=0.6)
    assert not is_about_something(weak)
    assert is_about_something(weak._replace(documents=8))
    assert is_about_something(weak._replace(score=0.25, missing=0.1, together=0.8))


def test_one_good_page_is_worth_giving_to_a_task() -> None:
    good = GOOD._replace(score=0.35, coverage=0.2, missing=0.4, home=0)
    assert judge(good) == "no"
    assert is_about_something(good)


def test_notes_and_long_tasks_need_less() -> None:
    weak = GOOD._replace(score=0.28, coverage=0.28)
    assert not is_about_something(weak)
    assert is_about_something(weak._replace(pages=0.0))
    assert is_about_something(weak._replace(words=30))
