import pytest

from sage.deadline import Deadline
from sage.search.explain import explain_page, explain_results
from sage.search.sections import SearchOptions
from tests.conftest import Base
from tests.indexed_base import IndexedBase

PAGES = {
    "core/a.md": "---\ntags: [backoff]\n---\n# Retries\n\nretry with backoff\n\n```\nretry()\n```",
    "core/INDEX.md": "# Index\n\nretry and backoff\n",
    "core/c.md": "# C\n\nSomething else.\n",
}


@pytest.mark.parametrize("query", ["retry backoff", "retryBackoff", "retries"])
def test_the_parts_add_up_to_the_result(base: Base, query: str) -> None:
    base.write(PAGES)
    indexed = IndexedBase(base)
    found = indexed.search(query)
    explained = explain_results(indexed.update().searcher, query, SearchOptions(10), Deadline())
    assert [one.path for one in explained] == [one.path for one in found.sections]
    assert [one.score for one in explained] == [one.score for one in found.sections]
    best = explained[0]
    fields = sum(
        score for share in best.shares for name, score in share.fields.items() if name != "section"
    )
    assert fields == pytest.approx(best.document_part)


def test_each_word_says_where_it_was_found(base: Base) -> None:
    base.write(PAGES)
    indexed = IndexedBase(base)
    searcher = indexed.update().searcher
    best, index = explain_results(searcher, "retry backoff", SearchOptions(10), Deadline())
    retry, backoff = best.shares
    assert set(retry.forms) == {"retry", "retries"}
    assert set(retry.fields) == {"title", "headings", "body", "code", "section"} | (
        {"summary"} & set(retry.fields)
    )
    assert "tags" in backoff.fields
    assert retry.documents == 2
    assert best.standing == 1.0
    assert index.standing < 1.0


def test_any_page_is_explained_wherever_it_ranks(base: Base) -> None:
    base.write(PAGES)
    searcher = IndexedBase(base).update().searcher
    paths = [f".knowledge/core/{name}.md" for name in ("a", "INDEX", "c", "missing")]
    asked, one = "retry backoff", SearchOptions(1)
    told = [explain_page(searcher, asked, path, one, Deadline()) for path in paths]
    assert [page and page.place for page in told] == [1, 2, 0, None]
    assert told[0] == explain_results(searcher, asked, one, Deadline())[0]
    assert told[2] is not None
    assert [(share.word, share.fields) for share in told[2].shares] == [
        ("retry", {}),
        ("backoff", {}),
    ]
