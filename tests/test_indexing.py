from sage.analysis import Analyzer
from sage.catalog import Card
from sage.documents import Document, parse_document
from sage.files import Stamp
from sage.indexing import describe, ending, find_footers
from sage.postings import Row

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


def described(text: str, footers: frozenset[str] = frozenset()) -> tuple[Card, list[Row]]:
    document = parse_document(text, ".knowledge/practices/ci-cd/builds.md", "practices")
    return describe(document, Stamp(1, 2, 3, 4), footers, Analyzer(), count)


def count(document: Document, start: int, end: int) -> int:
    return end - start


def test_a_card_says_what_results_and_filters_need() -> None:
    card, _ = described(PAGE)
    assert card.topic == "practices/ci-cd/builds"
    assert (card.tags, card.languages, card.type) == (("ci", "web"), ("python",), "guide")
    assert card.status == "draft"
    assert [section.heading for section in card.sections][:2] == ["Builds", "Builds > Order"]
    assert [section.anchor for section in card.sections][:2] == ["", "order"]
    assert card.sections[1].ordinal == 2
    assert card.section_total == 4


def test_listings_have_no_row_and_still_count_as_tokens() -> None:
    card, rows = described(PAGE)
    assert "Builds > Table of contents" not in [section.heading for section in card.sections]
    assert len(rows) == 1 + len(card.sections)
    assert card.tokens == len(PAGE) - PAGE.index("# Builds")


def test_each_field_is_kept_apart() -> None:
    _, (about, first, order, *_) = described(PAGE)
    assert set(about.fields) == {"title", "aliases", "tags", "summary", "path"}
    assert set(about.fields["path"]) == {"cicd_", "ci", "cd", "builds"}
    assert set(first.fields["body"]) == {"they", "run", "in", "order"}
    assert set(order.fields["headings"]) == {"order"}
    assert set(order.fields["code"]) == {"make", "test"}
    assert order.text == "First this: make all.\nmake test"


def test_a_footer_is_not_indexed() -> None:
    document = parse_document(PAGE, ".knowledge/core/x.md", "core")
    footers = find_footers([ending(document)] * 4)
    _, rows = described(PAGE, footers)
    assert not any("handbook" in terms for row in rows for terms in row.fields.values())
    _, before = described(PAGE)
    assert any("handbook" in terms for row in before for terms in row.fields.values())


def test_an_empty_page_has_a_card_and_one_row() -> None:
    card, rows = described("")
    assert card.sections == ()
    assert len(rows) == 1
    assert "title" in rows[0].fields
