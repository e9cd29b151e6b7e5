import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.terms.analysis import (
    MAX_TERM,
    Analyzer,
    content_words,
    folded,
    terms_of,
    tokens,
    word_of,
)


def forms(text: str) -> list[str]:
    return list(Analyzer().places(text)[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case", ["snakecase_", "snake", "case"]),
        ("getUserName", ["getusername_", "get", "user", "name"]),
        ("HTTPServer", ["httpserver_", "http", "server"]),
        ("kebab-case", ["kebabcase_", "kebab", "case"]),
        ("os.path.join", ["ospathjoin_", "os", "path", "join"]),
        ("C++ and C#", ["c++", "and", "c#"]),
        ("on .NET 8", ["on", ".net", "8"]),
        ("version 3.11.2", ["version", "3.11.2"]),
        ("k8s utf8", ["k8s", "utf8", "utf"]),
        ("the APIs", ["the", "apis"]),
        ("don't user's", ["dont", "user"]),
        ("Café", ["cafe"]),
        ("ｆｕｌｌ", ["full"]),
        ("set -euo pipefail", ["set", "-euo", "euo", "pipefail"]),
        ("--no-cache", ["--no-cache", "no", "cache"]),
    ],
)
def test_words_are_taken_apart_and_kept_whole(text: str, expected: list[str]) -> None:
    assert forms(text) == expected


def test_chinese_gives_characters_and_pairs() -> None:
    assert forms("数据库") == ["数", "数据", "据", "据库", "库"]


def test_parts_of_an_identifier_stand_one_after_the_other() -> None:
    places, end = Analyzer().places("call getUserName now")
    assert places == {
        "call": [0],
        "getusername_": [1],
        "get": [1],
        "user": [2],
        "name": [3],
        "now": [4],
    }
    assert end == 5


def test_invisible_marks_do_not_divide_words() -> None:
    assert forms("know\u00adledge \u202efoo\u202c") == ["knowledge", "foo"]


def test_stop_words_go_unless_they_are_all_there_is() -> None:
    words = Analyzer().words("how do I test")
    assert [word.form for word in content_words(words)] == ["test"]
    assert len(content_words(Analyzer().words("to be or not to be"))) == 6


def test_a_long_word_is_cut_alike_in_text_and_query() -> None:
    word = word_of("x" * 500)
    assert word.form == "x" * MAX_TERM
    assert forms("x" * 500) == [word.form]


def test_decomposed_and_composed_letters_are_the_same() -> None:
    assert tokens("e\u0301te\u0301") == tokens("\u00e9t\u00e9") == ["ete"]


@given(st.text())
def test_any_text_gives_short_terms_that_can_be_kept(text: str) -> None:
    places, end = Analyzer().places(text)
    assert all(0 < len(form) <= 2 * MAX_TERM and form.encode() for form in places)
    assert all(0 <= position < end for held in places.values() for position in held)


@given(st.text())
def test_what_is_remembered_of_a_text_changes_nothing(text: str) -> None:
    analyzer = Analyzer()
    first = analyzer.places(text)
    assert analyzer.places(text) == first
    positions = 0
    for token in tokens(text):
        for form, offset in terms_of(word_of(token)):
            assert positions + offset in first[0][form]
        positions += 1 + max(term.offset for term in terms_of(word_of(token)))
    assert positions == first[1]


@given(st.text())
def test_a_query_finds_the_terms_of_the_same_text(text: str) -> None:
    from_words = {term.form for word in Analyzer().words(text) for term in terms_of(word)}
    assert from_words == set(forms(text))


def test_folding_leaves_ascii_alone() -> None:
    text = "plain text"
    assert folded(text) is text


def test_a_long_run_of_characters_gives_the_terms_of_its_parts_and_is_not_remembered() -> None:
    analyzer = Analyzer()
    run = "数据库迁移" * 20
    found, after = analyzer.places(run)
    assert after == len(run)
    assert {(form, at) for form, held in found.items() for at in held} == set(
        terms_of(word_of(run))
    )
    assert analyzer.places(f"a {run}")[0]["数"][0] == 1
    assert not analyzer._runs
