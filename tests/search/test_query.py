import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.search.query import MAX_CHARACTERS, MAX_WORDS, Filters, FilterValues, Query, parse
from sage.terms.analysis import Analyzer

KNOWN = FilterValues(
    layers=("core", "practices"),
    tags=("ci", "web api", "Testing", "testing", "\u00fcber"),
    languages=("python",),
    is_flag=lambda flag: flag == "-euo",
)


def parsed(text: str) -> Query:
    return parse(text, Analyzer(), KNOWN)


def words(query: Query) -> list[str]:
    return [word.form for word in query.words]


def test_a_question_is_its_content_words() -> None:
    assert words(parsed("How do I write the tests?")) == ["write", "tests"]


def test_a_phrase_is_kept_and_its_words_are_searched() -> None:
    query = parsed('retry "idempotency key"')
    assert [[word.form for word in phrase] for phrase in query.phrases] == [["idempotency", "key"]]
    assert words(query) == ["retry", "idempotency", "key"]


def test_a_phrase_given_twice_is_one() -> None:
    assert len(parsed('"a b" "a b" "b a"').phrases) == 2


def test_an_unbalanced_quote_is_nothing() -> None:
    query = parsed('say "hello world')
    assert query.phrases == ()
    assert words(query) == ["say", "hello", "world"]


def test_a_dash_excludes_a_word() -> None:
    query = parsed("retry -idempotency")
    assert [word.form for word in query.excluded] == ["idempotency"]
    assert words(query) == ["retry"]


def test_a_flag_that_documents_name_is_a_word() -> None:
    query = parsed("set -euo pipefail")
    assert query.excluded == ()
    assert "-euo" in words(query)


def test_a_lone_exclusion_is_a_word() -> None:
    assert words(parsed("-retry")) == ["retry"]


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("layer:core x", Filters(layer=frozenset({"core"}))),
        ("LAYER:Core x", Filters(layer=frozenset({"core"}))),
        ('tag:"web api" x', Filters(tag=frozenset({"web api"}))),
        ("tag:TESTING x", Filters(tag=frozenset({"Testing", "testing"}))),
        ("tag:\u00dcber x", Filters(tag=frozenset({"\u00fcber"}))),
        ("type:bug-fix x", Filters(type=frozenset({"bug_fix"}))),
        ("lang:python lang:python x", Filters(lang=frozenset({"python"}))),
        ("tag:ci layer:core x", Filters(layer=frozenset({"core"}), tag=frozenset({"ci"}))),
    ],
)
def test_known_values_filter(text: str, filters: Filters) -> None:
    query = parsed(text)
    assert query.filters == filters
    assert words(query) == ["x"]


@pytest.mark.parametrize("text", ["layer:nowhere", "tag:", "type:novel", "xlayer:core", "a:b"])
def test_unknown_filters_are_words(text: str) -> None:
    query = parsed(text)
    assert query.filters == Filters()
    assert words(query)


def test_neighbours_are_joined_even_over_stop_words() -> None:
    assert "login" in parsed("log in page").joined


def test_a_repeated_word_is_one_word() -> None:
    assert words(parsed("test test test")) == ["test"]


def test_a_long_query_is_cut_and_says_so() -> None:
    query = parsed("word " * 5_000)
    assert query.notes == (f"the query was cut to its first {MAX_CHARACTERS} characters",)
    many = parsed(" ".join(f"w{number}" for number in range(200)))
    assert len(many.words) == MAX_WORDS
    assert many.notes == (f"only the first {MAX_WORDS} words were looked at",)


def test_stop_words_alone_are_searched() -> None:
    assert words(parsed("to be or not to be")) == ["to", "be", "or", "not"]


@given(st.text(max_size=2000))
def test_any_text_is_a_query(text: str) -> None:
    query = parsed(text)
    assert len(query.words) <= MAX_WORDS
    assert all(word.form for word in query.words)


def test_what_chinese_asks_with_is_no_word_of_the_question() -> None:
    assert [word.form for word in parse("书签有什么作用？", Analyzer()).words] == ["书签有", "作用"]
    assert [word.form for word in parse("什么", Analyzer()).words] == ["什么"]
