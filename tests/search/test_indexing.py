import pytest

from sage.documents.boilerplate import Footers, ending_keys, find_footers
from sage.documents.document import Document, parse_document
from sage.documents.files import Stamp
from sage.search.catalog import DocumentEntry
from sage.search.indexing import describe
from sage.search.sections import unpack_record
from sage.terms.analysis import Analyzer
from sage.terms.postings import Row
from sage.values import OWN

PAGE = """---
tags: [CI, web]
aliases: [pipelines]
language: Python
status: draft
type: guide
summary: How builds run.
---
# Builds

They run in order.

## Table of contents

- [Order](#order)

## Order

First this: `make all`.

```sh
make test
```

## Empty

---

*The handbook*
"""


def described(text: str, footers: Footers | None = None) -> tuple[DocumentEntry, list[Row]]:
    document = parse_document(text, ".knowledge/practices/ci-cd/builds.md", "practices")
    return describe(document, Stamp(1, 2, 3, 4), footers or {}, Analyzer(), count)


def count(document: Document, start: int, end: int) -> int:
    return end - start


def test_a_card_says_what_results_and_filters_need() -> None:
    entry, rows = described(PAGE)
    assert entry.topic == "practices/ci-cd/builds"
    assert (entry.tags, entry.languages, entry.type) == (("ci", "web"), ("python",), "guide")
    assert entry.status == "draft"
    sections = unpack_record(rows[0].record).sections
    assert [section.heading for section in sections][:2] == ["Builds", "Builds > Order"]
    assert [section.anchor for section in sections][:2] == ["", "order"]
    assert sections[1].ordinal == 2
    assert entry.section_total == 4


def test_listings_have_no_row_and_still_count_as_tokens() -> None:
    entry, rows = described(PAGE)
    sections = unpack_record(rows[0].record).sections
    assert "Builds > Table of contents" not in [section.heading for section in sections]
    assert len(rows) == 1 + len(sections) == entry.rows
    assert entry.tokens == len(PAGE.rstrip()) - PAGE.index("# Builds")


def test_a_name_that_repeats_title_or_path_is_no_other_name() -> None:
    _, (about, *_) = described("---\nid: builds\naliases: [How We Build]\n---\n# How we build\n")
    assert "aliases" not in about.fields
    _, (about, *_) = described("---\nid: pipelines\n---\n# How we build\n")
    assert set(about.fields["aliases"]) == {"pipelines"}


def test_each_field_is_kept_apart() -> None:
    _, (about, first, order, *_) = described(PAGE)
    assert set(about.fields) == {"title", "aliases", "tags", "summary", "path"}
    assert set(about.fields["path"]) == {"cicd_", "ci", "cd", "builds"}
    assert set(first.fields["body"]) == {"they", "run", "in", "order"}
    assert set(order.fields["headings"]) == {"order"}
    assert set(order.fields["code"]) == {"make", "test"}
    assert unpack_record(about.record).sections[1].text == (
        "## Order\n\nFirst this: `make all`.\n\n```sh\nmake test\n```"
    )


def test_a_footer_is_not_indexed() -> None:
    document = parse_document(PAGE, ".knowledge/practices/x.md", "practices")
    footers = find_footers([(OWN, "practices", ending_keys(document.body))] * 4)
    _, rows = described(PAGE, footers)
    assert not any("handbook" in terms for row in rows for terms in row.fields.values())
    _, before = described(PAGE)
    assert any("handbook" in terms for row in before for terms in row.fields.values())
    assert described(PAGE, {(OWN, "core"): footers[OWN, "practices"]})[1] == before


def test_an_empty_page_has_a_card_and_one_row() -> None:
    entry, rows = described("")
    assert entry.indexed_sections == 0
    assert len(rows) == 1
    assert "title" in rows[0].fields


def behind(filling: str) -> tuple[Document, bool]:
    """A page with a word behind a long text, and whether that word is indexed."""
    text = f"# Page\n\n{filling}\n\n## Behind\n\nneedle\n"
    document = parse_document(text, ".knowledge/core/page.md", "core")
    entry, rows = describe(document, Stamp(1, 1, 1, 1), {}, Analyzer(), lambda *_: 1)
    assert entry.section_total == 2
    return document, any("needle" in row.fields.get("body", {}) for row in rows)


def test_a_long_page_is_searched_to_its_end() -> None:
    document, found = behind("What is said again and again. " * 10_000)
    assert document.problems == ()
    assert found


@pytest.mark.parametrize(
    "filling",
    [" ".join(f"word{number}" for number in range(20_000)), "日月火水木金土" * 20_000],
    ids=["different words", "one long run"],
)
def test_a_flood_of_words_is_searched_by_its_beginning_and_says_so(filling: str) -> None:
    document, found = behind(filling)
    (problem,) = document.problems
    assert "characters are searched; split it" in problem.message
    assert not found
