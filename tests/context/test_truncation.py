"""How a markdown text may end."""

import pytest

from sage.context.passages import closer, cut_points, without_ending


def beginnings(text: str) -> list[str]:
    """The texts that a cut may leave."""
    lines = text.splitlines()
    return ["\n".join(lines[:count]).rstrip() for count in cut_points(text)]


def test_a_text_is_cut_between_paragraphs() -> None:
    assert beginnings("## A\n\none\n\ntwo\nlines\n\nthree") == [
        "## A\n\none",
        "## A\n\none\n\ntwo\nlines",
    ]


def test_a_list_is_cut_between_its_top_items() -> None:
    assert beginnings("- one\n  - inner\n- two\n- three") == [
        "- one\n  - inner",
        "- one\n  - inner\n- two",
    ]


def test_a_table_keeps_its_head_and_a_row() -> None:
    assert beginnings("| a |\n|---|\n| 1 |\n| 2 |\n| 3 |") == [
        "| a |\n|---|\n| 1 |",
        "| a |\n|---|\n| 1 |\n| 2 |",
    ]


def test_a_fence_is_never_cut() -> None:
    text = "one\n\n````\n```\n\n# no\n\n```\n````\n\ntwo"
    assert beginnings(text) == ["one", "one\n\n````\n```\n\n# no\n\n```\n````"]


def test_no_text_ends_in_words_that_only_announce_the_next() -> None:
    assert beginnings("one\n\n## Steps\n\nRun this:\n\n```\nmake\n```\n\ntwo") == [
        "one",
        "one\n\n## Steps\n\nRun this:\n\n```\nmake\n```",
    ]


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("```\ncode", "\n```"),
        ("````md\n```\ncode", "\n````"),
        ("~~~\ncode", "\n~~~"),
        ("<!-- comment", "\n-->"),
        ("<pre>\ntext", "\n</pre>"),
        ("```\ncode\n```", ""),
        ("- item\n  ```\n  code", ""),
        ("plain", ""),
    ],
)
def test_what_is_left_open_is_closed(text: str, closing: str) -> None:
    assert closer(text) == closing


def test_rules_and_footers_are_no_ending() -> None:
    assert without_ending("text\n\n---\n\n***\n") == "text"
    assert without_ending("text\n\n---\n\n*The team*\n", {"*The team*"}) == "text"
    assert without_ending("text\n\n*The team*\n") == "text\n\n*The team*"
    assert without_ending("---\n") == ""


def test_rules_without_end_are_removed_in_one_pass() -> None:
    assert without_ending("said\n" + "---\n" * 200_000) == "said"


def test_a_text_of_link_definitions_alone_is_not_cut() -> None:
    assert cut_points("[a]: /x\n[b]: /y\n") == []
