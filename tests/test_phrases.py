import pytest

from tests.conftest import Base
from tests.searcher import Searcher

PAGES = {
    "core/a.md": "# A\n\nUse the idempotency key. Call getUserName first.\n",
    "core/b.md": "# B\n\nThe key of idempotency. The user name is first.\n",
    "core/c.md": "# Idempotency key\n\n```py\nset_user_name()\n```\n\n数据库迁移\n",
}


@pytest.mark.parametrize(
    ("phrase", "paths"),
    [
        ("idempotency key", ["core/a.md", "core/c.md"]),
        ("key of idempotency", ["core/b.md"]),
        ("user name", ["core/a.md", "core/b.md", "core/c.md"]),
        ("getUserName", ["core/a.md"]),
        ("数据库", ["core/c.md"]),
        ("key. Call", ["core/a.md"]),
    ],
)
def test_documents_that_hold_the_phrase_are_found(
    base: Base, phrase: str, paths: list[str]
) -> None:
    base.write(PAGES)
    assert sorted(Searcher(base).paths(f'"{phrase}"')) == paths


def test_no_phrase_reaches_from_a_heading_into_the_text(base: Base) -> None:
    base.write({"core/a.md": "# Zebra\n\ncrossing\n"})
    found = Searcher(base).search('"zebra crossing"')
    assert "no document holds the phrase" in found.note


def test_two_phrases_must_both_be_there(base: Base) -> None:
    base.write(PAGES)
    assert Searcher(base).paths('"idempotency key" "user name"') == ["core/a.md", "core/c.md"]


def test_phrases_of_different_documents_are_shown_with_a_note(base: Base) -> None:
    base.write(PAGES)
    found = Searcher(base).search('"key of idempotency" "数据库"')
    assert {result["path"] for result in found.results} == {
        ".knowledge/core/b.md",
        ".knowledge/core/c.md",
    }
    assert "no document holds all the phrases" in found.note
