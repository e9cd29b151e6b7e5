import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.search.answering import MAX_SNIPPET, shortened, snippet
from sage.search.sections import owners_of
from sage.terms.analysis import JOIN

LONG = "Filler sentence without a match stands here. " * 30


def shown(text: str, *words: str) -> str:
    return snippet(text, owners_of([[word] for word in words]), [1.0] * len(words), "instead")


def test_a_short_text_is_shown_whole() -> None:
    assert shown("One zebra.\nAnd more.", "zebra") == "One zebra. And more."


def test_the_sentence_around_the_match_is_shown() -> None:
    text = f"{LONG}The zebra crossing is here. {LONG}"
    assert shown(text, "zebra").startswith("The zebra crossing is here.")


def test_the_densest_place_wins() -> None:
    text = f"A zebra alone. {LONG}A zebra at the crossing. {LONG}"
    assert shown(text, "zebra", "crossing").startswith("A zebra at the crossing.")


def test_the_rarer_word_wins() -> None:
    text = f"Here is common. {LONG}Here is rare. {LONG}"
    owners = owners_of([["common"], ["rare"]])
    assert snippet(text, owners, [0.1, 5.0]).startswith("Here is rare.")


def test_only_whole_words_match() -> None:
    text = f"A concatenation. {LONG}A cat. {LONG}"
    assert shown(text, "cat").startswith("A cat.")


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_section_shows_the_summary_instead(text: str) -> None:
    assert shown(text, "zebra") == "instead"


def test_a_sentence_that_is_too_long_is_cut_around_the_match() -> None:
    text = "word " * 200 + "zebra " + "word " * 200
    cut = shown(text, "zebra")
    assert "zebra" in cut
    assert cut.startswith("… ")
    assert cut.endswith(" …")
    assert len(cut) <= MAX_SNIPPET


def test_chinese_is_found_and_cut_at_its_full_stop() -> None:
    text = "这是别的内容。" * 60 + "数据库迁移需要计划。" + "这是别的内容。" * 60
    assert shown(text, "迁移").startswith("数据库迁移需要计划。")


def test_accents_do_not_hide_a_match() -> None:
    assert shown(f"{LONG}A café opens. {LONG}", "cafe").startswith("A café opens.")


def test_a_text_is_shortened_at_a_word() -> None:
    assert shortened("short\n text ") == "short text"
    assert len(shortened("word " * 100)) <= MAX_SNIPPET
    assert shortened("word " * 100).endswith("word …")


@given(st.text(), st.lists(st.text(min_size=1, max_size=3), max_size=4))
def test_any_snippet_is_short_and_on_one_line(text: str, words: list[str]) -> None:
    # No form is the mark of joined ones alone: a form has a letter.
    cut = shown(text * 20, *[word.casefold() for word in words if word != JOIN])
    assert len(cut) <= MAX_SNIPPET
    assert len(cut.splitlines()) <= 1 or not any(c in cut for c in "\n\r")
