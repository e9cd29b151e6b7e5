import pytest

from sage.deadline import Deadline
from tests.conftest import Base
from tests.searcher import Searcher

PAGES = {
    "core/a.md": "---\ntags: [backoff]\n---\n# Retries\n\nretry with backoff\n\n```\nretry()\n```",
    "core/INDEX.md": "# Index\n\nretry and backoff\n",
    "core/c.md": "# C\n\nSomething else.\n",
}


@pytest.mark.parametrize("query", ["retry backoff", "retryBackoff", "retries"])
def test_the_parts_add_up_to_the_result(base: Base, query: str) -> None:
    base.write(PAGES)
    searcher = Searcher(base)
    found = searcher.search(query)
    explained = searcher.engine.explain(query, limit=10, deadline=Deadline())
    assert [one.path for one in explained] == [one["path"] for one in found.results]
    assert [one.score for one in explained] == [one["score"] for one in found.results]
    best = explained[0]
    fields = sum(
        worth for share in best.shares for name, worth in share.fields.items() if name != "section"
    )
    assert fields == pytest.approx(best.document_part)


def test_each_word_says_where_it_was_found(base: Base) -> None:
    base.write(PAGES)
    searcher = Searcher(base)
    searcher.update()
    best, index = searcher.engine.explain("retry backoff", limit=10, deadline=Deadline())
    retry, backoff = best.shares
    assert set(retry.forms) == {"retry", "retries"}
    assert set(retry.fields) == {"title", "headings", "body", "code", "section"} | (
        {"summary"} & set(retry.fields)
    )
    assert "tags" in backoff.fields
    assert retry.documents == 2
    assert best.standing == 1.0
    assert index.standing < 1.0
