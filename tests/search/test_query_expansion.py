from collections.abc import Mapping, Sequence

from sage.search.query import (
    CORRECTED,
    EXACT,
    OTHER_FORM,
    SYNONYM,
    Interpreter,
    Understanding,
    parse,
)
from sage.terms.analysis import Analyzer, stem_of
from sage.terms.postings import Row, Vocabulary
from sage.terms.segments import SegmentStore
from sage.terms.spelling import RealWords
from sage.token_counter import BundledVocabulary

WORDS = "retry retries database login error handling authentication 数据 据库 getusername_ get user"

ENGLISH = RealWords(BundledVocabulary())
TOGETHER = ("error handling", "data base")


def understood(
    text: str, synonyms: Mapping[str, Sequence[str]] | None = None, words: str = WORDS
) -> Understanding:
    store = SegmentStore(stem_of)
    store.change((), [Row({"body": {word: [0] for word in words.split()}})])
    vocabulary = Vocabulary(store.reader)
    query = parse(text, Analyzer())
    interpreter = Interpreter(
        vocabulary,
        lambda form: form in words.split(),
        synonyms or {},
        ENGLISH,
        stand_together=lambda forms: " ".join(forms) in TOGETHER,
    )
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
    assert understood("usre").corrected == (("usre", "user"),)
    assert understood("usre retry").missing == ("usre",)


def test_a_word_is_not_taken_for_another_word() -> None:
    found = understood("wake", words="make retry")
    assert (found.corrected, found.missing) == ((), ("wake",))
    assert understood("waalk", words="make walk retry").corrected == (("waalk", "walk"),)


def test_a_corrected_word_counts_less() -> None:
    (meant,) = understood("retyr").concepts
    assert (meant.name, meant.weight) == ("retry", CORRECTED)


def test_a_name_in_code_is_missing_although_its_parts_occur() -> None:
    found = understood("retry_policy_budget retry", words="retry policy budget")
    assert found.missing == ("retry_policy_budget",)
    assert understood("error_handling", words="error handling").missing == ()


def test_two_words_are_parted_only_where_they_stand_together() -> None:
    found = understood("errorhandling", words="error handling")
    assert found.corrected == (("errorhandling", "error"), ("errorhandling", "handling"))
    assert understood("errorpolicy", words="error policy").corrected == ()


def test_single_characters_stand_in_for_pairs_that_do_not_occur() -> None:
    found = understood("库据", words="数 据 库")
    assert [concept.name for concept in found.concepts] == ["库", "据"]
