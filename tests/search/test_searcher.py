import pytest

from sage.deadline import Deadline
from sage.documents.files import Stamp
from sage.search.answering import sentences
from sage.search.searcher import NO_WORDS, Searcher
from sage.search.sections import SearchOptions
from tests.conftest import Base
from tests.indexed_base import IndexedBase

PAGES = {
    "core/a.md": "# Alpha\n\nretry with backoff\n\n## More\n\nretry again\n",
    "core/b.md": "# Beta\n\nretry once\n",
    "core/empty.md": "---\nsummary: A page about retry.\n---\n",
}


@pytest.fixture
def searcher(base: Base) -> Searcher:
    base.write(PAGES)
    return IndexedBase(base).update().searcher


def test_a_page_without_sections_is_shown_by_its_summary(searcher: Searcher) -> None:
    found = searcher.search("page about", SearchOptions(10), Deadline())
    (result,) = found.sections
    assert sentences(result) == "A page about retry."
    assert result.heading == ""
    assert result.lines == [1, 1]
    assert result.topic == "core/empty"


def test_punctuation_alone_asks_nothing(searcher: Searcher) -> None:
    found = searcher.search("?!…", SearchOptions(10), Deadline())
    assert (found.sections, found.total, found.note) == ([], 0, NO_WORDS)


def test_only_documents_that_are_still_so_are_shown(searcher: Searcher) -> None:
    stamps = {entry.path: entry.stamp for entry in searcher.catalog.slots}
    stamps[".knowledge/core/a.md"] = Stamp(0, 0, 0, 0)
    found = searcher.search("retry once", SearchOptions(10), Deadline(), stamps)
    assert ".knowledge/core/a.md" not in {result.path for result in found.sections}
    assert found.total == 2


def test_sections_of_one_document_are_ranked_apart(searcher: Searcher) -> None:
    ranked = searcher.rank_sections("retry", limit=10, deadline=Deadline()).sections
    assert {(one.path, one.ordinal) for one in ranked} == {
        (".knowledge/core/a.md", 0),
        (".knowledge/core/a.md", 1),
        (".knowledge/core/b.md", 0),
    }
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


def test_a_section_says_how_much_of_the_question_it_holds_itself(searcher: Searcher) -> None:
    ranked = searcher.rank_sections("retry backoff", limit=10, deadline=Deadline()).sections
    held = {(one.path[-4:], one.ordinal): one.held for one in ranked}
    assert held["a.md", 0] == pytest.approx(1.0)
    assert 0 < held["a.md", 1] == held["b.md", 0] < 0.5


def test_a_filter_alone_lists_what_passes_it_by_path(searcher: Searcher) -> None:
    found = searcher.search("layer:core", SearchOptions(2), Deadline())
    assert [result.path for result in found.sections] == [
        ".knowledge/core/a.md",
        ".knowledge/core/b.md",
    ]
    assert found.total == 3
    assert {result.score for result in found.sections} == {1.0}


def test_what_no_document_holds_raises_what_is_possible(searcher: Searcher) -> None:
    assert (
        searcher.interpret("retry xyzzyx", None, Deadline()).possible
        > searcher.interpret("retry", None, Deadline()).possible
    )
    assert searcher.interpret("retry xyzzyx", None, Deadline()).missing == ("xyzzyx",)


def test_not_every_missing_word_is_listed(searcher: Searcher) -> None:
    asked = " ".join(f"qqq{letter}www" for letter in "abcdefghijk")
    assert len(searcher.search(asked, SearchOptions(5), Deadline()).missing) == 8


def test_suggestions_look_like_the_words(searcher: Searcher) -> None:
    assert searcher.interpreter.suggest(["backof", "retrz"]) == ["backoff", "retry"]
