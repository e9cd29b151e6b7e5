import pytest

from sage.deadline import Deadline
from sage.files import Stamp
from sage.finding import NOTHING_ASKED, Finder
from tests.conftest import Base
from tests.searcher import Searcher

PAGES = {
    "core/a.md": "# Alpha\n\nretry with backoff\n\n## More\n\nretry again\n",
    "core/b.md": "# Beta\n\nretry once\n",
    "core/empty.md": "---\nsummary: A page about retry.\n---\n",
}


@pytest.fixture
def finder(base: Base) -> Finder:
    base.write(PAGES)
    searcher = Searcher(base)
    searcher.update()
    assert searcher.engine._finder is not None
    return searcher.engine._finder


def test_a_page_without_sections_is_shown_by_its_summary(finder: Finder) -> None:
    found = finder.search("page about", 10, None, Deadline())
    (result,) = found.results
    assert result["snippet"] == "A page about retry."
    assert result["heading"] == ""
    assert result["lines"] == [1, 1]
    assert result["topic"] == "core/empty"


def test_punctuation_alone_asks_nothing(finder: Finder) -> None:
    found = finder.search("?!…", 10, None, Deadline())
    assert (found.results, found.total, found.note) == ([], 0, NOTHING_ASKED)


def test_only_documents_that_are_still_so_are_shown(finder: Finder) -> None:
    stamps = {card.path: card.stamp for card in finder.catalog.slots}
    stamps[".knowledge/core/a.md"] = Stamp(0, 0, 0, 0)
    found = finder.search("retry once", 10, None, Deadline(), stamps)
    assert ".knowledge/core/a.md" not in {result["path"] for result in found.results}
    assert found.total == 2


def test_sections_of_one_document_are_ranked_apart(finder: Finder) -> None:
    ranked = finder.rank_sections("retry", 10, None, Deadline())
    assert {(one.path, one.ordinal) for one in ranked} == {
        (".knowledge/core/a.md", 0),
        (".knowledge/core/a.md", 1),
        (".knowledge/core/b.md", 0),
    }
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


def test_a_filter_alone_lists_what_passes_it_by_path(finder: Finder) -> None:
    found = finder.search("layer:core", 2, None, Deadline())
    assert [result["path"] for result in found.results] == [
        ".knowledge/core/a.md",
        ".knowledge/core/b.md",
    ]
    assert found.total == 3
    assert {result["score"] for result in found.results} == {1.0}
