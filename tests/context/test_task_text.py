"""What a task is about."""

import pytest

from sage.context.relevance import meant_by, queries_of, subject_of, task_words


@pytest.mark.parametrize(
    ("task", "subject"),
    [
        ("Add a retry to the carrier call", "a retry to the carrier"),
        ("create twenty invoices, please", "invoices,"),
        ("fix 3 flaky tests in 2025", "flaky tests in"),
        ("Use the on-call calendar", "the on-call calendar"),
        ("please fix it now", "it"),
        ("fix", "fix"),
        ("Count requests in our Go program", "Count requests in Go program"),
        ("then go to the queue", "to the queue"),
        ('use "exact words" -not layer:core', "exact words layer core"),
    ],
)
def test_weak_words_and_numbers_do_not_steer(task: str, subject: str) -> None:
    assert subject_of(task).split() == subject.split()


def test_the_task_and_the_words_of_the_files_are_searched() -> None:
    assert queries_of("fix the queue", ("src/orders/retry.py",), ("httpx",)) == [
        "the queue",
        "retry orders httpx",
    ]
    assert queries_of("", ()) == [""]


def test_a_long_task_is_searched_in_sentences() -> None:
    *texts, files = queries_of("Queue sentence. " * 60 + "x" * 2000, ())
    assert len(texts) == 3
    assert all(len(text) <= 480 for text in texts)
    assert texts[0].endswith("Queue sentence.")
    assert files == ""


@pytest.mark.parametrize(
    ("task", "meant"),
    [
        ("tries again when it times out", "timeout retry"),
        ("The release broke production; undo it", "rollback revert incident outage"),
        ("roll the feature out gradually", "rollout"),
        ("a test sometimes fails", "flaky"),
        ("rename a column", ""),
    ],
)
def test_pages_have_other_words_for_what_a_task_says(task: str, meant: str) -> None:
    assert meant_by(task).split() == meant.split()


def test_the_words_that_say_something_are_named_once() -> None:
    words = task_words("Retrying the migrations of Peter's table, add retrying", ("db/locks.sql",))
    assert words == ("retrying", "migrations", "peter", "table", "locks")
