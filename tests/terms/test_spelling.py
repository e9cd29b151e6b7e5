import pytest

from sage.terms.spelling import RealWords, Spelling
from sage.token_counter import BundledVocabulary

ENGLISH = RealWords(BundledVocabulary())

WORDS = "database retry retries testing test error handling authentication timeout git go café"


@pytest.fixture
def spelling() -> Spelling:
    return Spelling(WORDS.split())


def occurs(_: str) -> int:
    return 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("databse", "database"),
        ("tiemout", "timeout"),
        ("handlling", "handling"),
        ("gti", "git"),
        ("itmeout", "timeout"),
        ("authentcaton", "authentication"),
        ("caffé", "café"),
    ],
)
def test_typos_are_corrected(spelling: Spelling, typed: str, meant: str) -> None:
    assert spelling.correction(typed, occurs, ENGLISH) == meant


def test_the_more_frequent_of_two_is_meant(spelling: Spelling) -> None:
    words, often = Spelling(["kubernotes", "kubernites"]), {"kubernotes": 1, "kubernites": 9}
    assert words.correction("kuberntes", often.__getitem__, ENGLISH) == "kubernites"


def test_short_words_are_not_bent_by_two_letters(spelling: Spelling) -> None:
    assert spelling.correction("bio", occurs, ENGLISH) is None


def test_a_word_that_no_longer_occurs_is_never_suggested(spelling: Spelling) -> None:
    assert spelling.correction("databse", lambda _: 0, ENGLISH) is None
    assert spelling.nearest("databse", lambda _: 0) == []
    assert spelling.split("errorhandling", lambda _: 0) is None


def test_words_written_together_are_split(spelling: Spelling) -> None:
    assert spelling.split("errorhandling", occurs) == ("error", "handling")
    assert spelling.split("errorxhandling", occurs) is None


def test_nearest_words_begin_alike(spelling: Spelling) -> None:
    assert spelling.nearest("timer", occurs)[0] == "timeout"
    assert spelling.nearest("zzz", occurs) == []


def test_a_single_character_is_not_taken_for_another() -> None:
    assert Spelling(["a", "b"]).correction("1", lambda _: 1, ENGLISH) is None


@pytest.mark.parametrize(
    ("word", "near"),
    [("raisin", "raising"), ("kennel", "kernel"), ("vespa", "vesper")],
)
def test_what_looks_like_a_word_is_none_that_looks_like_it(word: str, near: str) -> None:
    assert ENGLISH.is_real(word) or Spelling([near]).correction(word, occurs, ENGLISH) is None


def test_a_word_of_a_million_letters_is_near_to_nothing() -> None:
    forms = Spelling(["alpha", "beta"])
    endless = "a" * 1_000_000  # all that is one letter off would be 54 terabytes
    assert forms.nearest(endless, lambda _: 1) == []
    assert forms.split(endless, lambda _: 1) is None
    assert forms.correction(endless, lambda _: 1, ENGLISH) is None


def test_of_many_words_that_begin_alike_only_those_most_like_it_are_counted() -> None:
    words = [f"r{number:05}" for number in range(3_000)]
    counted: list[str] = []

    def frequency(word: str) -> int:
        counted.append(word)
        return 1

    near = Spelling([*words, "rzzx"]).nearest("rzzxwqv", frequency)
    assert near[0] == "rzzx"
    assert len(set(counted)) < 100
