"""Which page is in force."""

import pytest

from sage.documents.topics import successors
from tests.contexts import documents


def replaced(by: str, **others: str) -> dict[str, str]:
    """For each replaced page, the page in force; `old` is replaced as given."""
    pages = {"practices/a/old.md": f"---\nsuperseded_by: {by}\n---\n# Old\n"}
    pages |= {f"practices/a/{name}.md": text for name, text in others.items()}
    found = successors(documents(pages))
    return {path.rsplit("/", 1)[-1]: document.topic for path, document in found.items()}


@pytest.mark.parametrize(
    "by",
    ["practices/a/new", "a/new.md", "./new.md", "../a/new", "new", "The New Way", "new#section"],
)
def test_a_replacement_may_be_named_in_every_way(by: str) -> None:
    assert replaced(by, new="# The new way\n") == {"old.md": "practices/a/new"}


def test_a_chain_leads_to_its_end() -> None:
    assert replaced("new", new="---\nsuperseded_by: newest\n---\n# New\n", newest="# N\n") == {
        "old.md": "practices/a/newest",
        "new.md": "practices/a/newest",
    }


def test_a_circle_and_a_missing_page_lead_nowhere() -> None:
    assert replaced("new", new="---\nsuperseded_by: old\n---\n# New\n") == {}
    assert replaced("gone", new="# New\n") == {}
