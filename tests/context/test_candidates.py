"""Candidates and what they are worth."""

from sage.context.passages import passages_of
from sage.context.scoring import Candidate, Fit
from tests.contexts import document, prose


def candidate(value: float, relevance: float | None = None, words: int = 30) -> Candidate:
    page = document("practices/a.md", f"# A\n\n{prose(words)}\n")
    return Candidate(passages_of(page)[0], Fit(value), relevance)


def test_without_a_task_the_fit_counts_and_length_a_little() -> None:
    assert candidate(1.0).appeal == 1.0
    assert 0.6 < candidate(1.0, words=900).appeal < 1.0


def test_with_a_task_relevance_counts_and_the_fit_decides_between_equals() -> None:
    assert candidate(0.2, 0.9).appeal > candidate(1.5, 0.4).appeal
    assert candidate(1.2, 0.9).appeal > candidate(0.4, 0.9).appeal


def test_what_is_not_about_the_task_is_worth_nothing() -> None:
    assert candidate(1.5, 0.0).appeal == 0.0
