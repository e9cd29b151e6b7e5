"""The verdict on a query."""

from sage.search.scoring import Evidence, is_about_something, judge

GOOD = Evidence(score=0.6, coverage=0.9, missing=0.0, words=4, pages=1.0, documents=100)


def test_what_is_covered_is_found() -> None:
    assert judge(GOOD) == "yes"


def test_a_missing_word_makes_it_partly() -> None:
    assert judge(GOOD._replace(missing=0.2)) == "partly"


def test_a_few_common_words_are_nothing() -> None:
    assert judge(GOOD._replace(score=0.2, coverage=0.2)) == "no"


def test_notes_and_long_questions_need_less() -> None:
    weak = GOOD._replace(score=0.28, coverage=0.28)
    assert judge(weak) == "no"
    assert judge(weak._replace(pages=0.0)) == "partly"
    assert judge(weak._replace(words=30)) == "partly"


def test_few_documents_need_not_hold_every_word() -> None:
    assert (
        judge(GOOD._replace(score=0.15, coverage=0.2, missing=0.5, pages=0.0, documents=5))
        == "partly"
    )


def test_nothing_at_all_is_no() -> None:
    assert judge(Evidence(0.0, 0.0, 1.0, 0, 1.0, 100)) == "no"


def test_the_pages_of_a_task_are_judged_together_where_they_are_few_or_hold_most_of_it() -> None:
    weak = GOOD._replace(score=0.15, coverage=0.2, missing=0.4, together=0.6)
    assert judge(weak) == "no"
    assert not is_about_something(weak)
    assert is_about_something(weak._replace(documents=8))
    assert is_about_something(weak._replace(score=0.25, missing=0.1, together=0.8))


def test_one_good_page_is_worth_giving_to_a_task() -> None:
    good = GOOD._replace(score=0.35, coverage=0.2, missing=0.4)
    assert judge(good) == "no"
    assert is_about_something(good)
