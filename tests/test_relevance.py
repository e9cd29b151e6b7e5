"""What the search finds for a task and its files, for each passage."""

import pytest

from sage.passages import passages_of
from sage.relevance import Relevance, find_relevance, task_words, words_in
from sage.supersession import successors
from tests.contexts import document, documents, prose

PAGE = document("practices/a.md", f"# A\n\n{prose(260)}\n\n## B\n\n{prose(260, 1)}\n")
EVERYTHING = {f".knowledge/practices/{name}.md" for name in ("a", "old", "new", "other")}


def relevance(
    *found: tuple[str, int, float], task: str = "task", eligible: set[str] = EVERYTHING
) -> Relevance:
    """What is made of search results in pages of practices."""
    results = [(f".knowledge/practices/{name}.md", n, score) for name, n, score in found]
    made = find_relevance(task, (), lambda _text, _limit: results, eligible, {})
    assert made is not None
    return made


def asked(task: str, files: tuple[str, ...] = ()) -> list[str]:
    """The texts that are searched."""
    texts: list[str] = []

    def rank(text: str, _limit: int) -> list[tuple[str, int, float]]:
        texts.append(text)
        return []

    find_relevance(task, files, rank, (), {})
    return texts


def test_without_task_and_files_nothing_is_searched() -> None:
    assert find_relevance(" ", (), lambda _text, _limit: [], (), {}) is None
    assert asked("") == []


def test_the_task_and_the_words_of_the_files_are_searched() -> None:
    assert asked("fix it", ("src/orders/retry.py",)) == ["fix it", "retry orders"]


def test_marks_that_mean_something_in_a_query_are_only_marks() -> None:
    assert asked('use "exact words" -not layer:core') == ["use exact words not layer core"]


def test_a_long_task_is_searched_in_sentences() -> None:
    texts = asked("One sentence. " * 60 + "x" * 2000)
    assert len(texts) == 3
    assert all(len(text) <= 480 for text in texts)
    assert texts[0].endswith("One sentence.")


def test_the_best_page_that_may_come_sets_the_scale() -> None:
    made = relevance(("other", 0, 0.9), ("a", 1, 0.5), eligible={PAGE.path})
    intro, section = passages_of(PAGE)
    assert made.of(section) == 1.0
    assert made.of(intro) == 0.5


def test_weak_finds_fall_off_and_a_poor_best_counts_less() -> None:
    made = relevance(("other", 0, 0.8), ("a", 0, 0.4))
    assert made.of(passages_of(PAGE)[0]) == pytest.approx(0.25)
    assert relevance(("other", 0, 0.8), ("a", 0, 0.1)).pages.keys() == {
        ".knowledge/practices/other.md"
    }
    assert relevance(("a", 0, 0.045)).of(passages_of(PAGE)[0]) == pytest.approx(0.1)


def test_what_is_found_in_a_replaced_page_speaks_for_its_successor() -> None:
    pages = documents(
        {
            "practices/old.md": "---\nstatus: superseded\nsuperseded_by: new\n---\n# Old\n\nx\n",
            "practices/new.md": "# New\n\ny\n",
        }
    )
    old, new = ".knowledge/practices/old.md", ".knowledge/practices/new.md"
    made = find_relevance("t", (), lambda _t, _n: [(old, 0, 0.9)], {new}, successors(pages))
    assert made is not None
    assert made.pages[new] == pytest.approx(0.95)
    assert made.replaces == {new: old}


def test_words_are_told_in_any_form() -> None:
    words = task_words("Retrying the migrations of Peter's table", ("db/locks.sql",))
    assert words == ("retrying", "migrations", "peter", "table", "locks")
    passage = passages_of(document("practices/a.md", "# A\n\nRetry a migration; lock tables.\n"))[0]
    assert words_in(passage, words) == ["retrying", "migrations", "table", "locks"]
