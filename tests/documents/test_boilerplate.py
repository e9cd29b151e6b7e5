import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.boilerplate import find_footers, is_listing, last_lines


@pytest.mark.parametrize(
    ("heading", "body"),
    [
        ("Table of Contents", "- [1. Overview](#1-overview)\n- [2. Use](#2-use)"),
        ("2. Contents", "* [Overview](#overview)"),
        ("Related", "- `.knowledge/core/x.md` — what it says\n- [b](b.md)"),
        ("See also", "- [a](a.md): a long remark that says what the other page is about"),
        ("目录", "- [一](#一)"),
        ("Pages", "- [a](a.md)\n- [b](b.md)\n\n---"),
    ],
)
def test_sections_that_only_point_elsewhere_are_listings(heading: str, body: str) -> None:
    assert is_listing(heading, f"## {heading}\n\n{body}\n", 2)


@pytest.mark.parametrize(
    ("heading", "body"),
    [
        ("Related work", "Others have tried to measure this before us, with little success."),
        ("Contents", "The crate contains the parts below, weighed and labelled by hand."),
        ("Links", ""),
        ("Setup", "- [Install it](a.md)\n- Then run the migration before the first start."),
    ],
)
def test_sections_that_say_something_are_no_listings(heading: str, body: str) -> None:
    assert not is_listing(heading, f"## {heading}\n\n{body}\n", 2)


@given(st.text(), st.integers(0, 6))
def test_any_section_is_a_listing_or_none(source: str, level: int) -> None:
    assert is_listing("Links", source, level) in (True, False)


@pytest.mark.parametrize("line", [" " * 500_000 + "x", "`" + "./" * 300_000, "|" + "-" * 500_000])
def test_line_without_end_is_looked_at_once(line: str) -> None:
    assert not is_listing("Links", line, 1)


def test_last_lines_leave_rules_out() -> None:
    source = "Text.\n\n---\n\n*The Team Handbook*\n"
    assert last_lines(source) == ("*The Team Handbook*", "Text.")


def endings(layer: str, *lines: str, source: str = "own") -> tuple[str, str, tuple[str, ...]]:
    return source, layer, lines


def test_a_line_is_a_footer_when_many_documents_end_with_it() -> None:
    some = [endings("core", "end")]
    found = find_footers(some * 4 + [endings("core", "other")] * 2)
    assert found == {("own", "core"): {"end"}}
    assert not find_footers(some * 3)
    assert not find_footers(some * 5 + [endings("core")] * 50)


@pytest.mark.parametrize("other", [endings("rules", "end"), endings("core", "end", source="s")])
def test_the_documents_of_another_layer_or_source_make_no_footer(
    other: tuple[str, str, tuple[str, ...]],
) -> None:
    some = [endings("core", "end")]
    assert not find_footers(some * 3 + [other])
    assert find_footers(some * 4 + [(*other[:2], ())] * 50) == {("own", "core"): {"end"}}
