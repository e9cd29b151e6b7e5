from collections.abc import Mapping, Sequence

from sage.analysis import Analyzer
from sage.concepts import EXACT, OTHER_FORM, SYNONYM, Interpreter, Understanding
from sage.postings import Row
from sage.query import parse
from sage.vocabulary import Vocabulary

WORDS = "retry retries database login error handling authentication 数据 据库 getusername_ get user"


def understood(
    text: str, synonyms: Mapping[str, Sequence[str]] | None = None, words: str = WORDS
) -> Understanding:
    vocabulary = Vocabulary()
    vocabulary.add([Row({"body": {word: [0] for word in words.split()}}, "")])
    query = parse(text, Analyzer())
    interpreter = Interpreter(vocabulary, lambda form: form in words.split(), synonyms or {})
    return interpreter.understand(query.words, query.joined)


def names(text: str) -> list[str]:
    return [concept.name for concept in understood(text).concepts]


def test_the_form_that_was_typed_counts_most() -> None:
    (concept,) = understood("retries").concepts
    assert concept.forms == (("retries", EXACT), ("retry", OTHER_FORM))


def test_synonyms_count_less() -> None:
    (concept,) = understood("db", {"db": ("database",)}).concepts
    assert concept.forms == (("database", SYNONYM),)
    assert SYNONYM < OTHER_FORM < EXACT


def test_an_identifier_is_its_whole_and_its_parts() -> None:
    concepts = understood("getUserName").concepts
    assert [concept.name for concept in concepts] == ["getusername", "get", "user"]
    assert concepts[0].forms == (("getusername_", EXACT),)
    assert concepts[0].weight > concepts[1].weight


def test_chinese_is_searched_by_pairs() -> None:
    assert names("数据库") == ["数据", "据库"]


def test_a_typo_is_corrected_and_reported() -> None:
    found = understood("databse authentcaton")
    assert found.corrected == (("databse", "database"), ("authentcaton", "authentication"))
    assert [concept.name for concept in found.concepts] == ["database", "authentication"]


def test_words_written_together_are_split() -> None:
    assert understood("errorhandling").corrected == (
        ("errorhandling", "error"),
        ("errorhandling", "handling"),
    )


def test_an_identifier_nobody_writes_as_one_word_is_split_too() -> None:
    found = understood("errorhandling", words="errorhandling_ error handling")
    assert [concept.name for concept in found.concepts] == ["errorhandling", "error", "handling"]
    assert found.corrected == ()


def test_words_written_apart_are_joined() -> None:
    assert names("log in") == ["login"]


def test_forms_of_one_stem_count_once() -> None:
    assert names("retry retries") == ["retry"]


def test_what_cannot_be_found_is_missing() -> None:
    found = understood("retry xyzzy 404")
    assert found.missing == ("xyzzy", "404")


def test_short_words_are_corrected_when_there_is_nothing_else() -> None:
    assert understood("gt").corrected == (("gt", "get"),)
    assert understood("gt retry").missing == ("gt",)


def test_single_characters_stand_in_for_pairs_that_do_not_occur() -> None:
    found = understood("库据", words="数 据 库")
    assert [concept.name for concept in found.concepts] == ["库", "据"]
