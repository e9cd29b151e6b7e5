import pytest

from sage.search.spelling import Spelling

WORDS = "database retry retries testing test error handling authentication timeout git go café"


@pytest.fixture
def spelling() -> Spelling:
    return Spelling(WORDS.split())


def occurs(_: str) -> int:
    return 1


@pytest.mark.parametrize(
    ("typed", "meant", "letters"),
    [
        ("databse", "database", 1),
        ("tiemout", "timeout", 1),
        ("retri", "retry", 1),
        ("gti", "git", 1),
        ("igt", "git", 1),
        ("authentcaton", "authentication", 2),
        ("caffé", "café", 1),
    ],
)
def test_typos_are_corrected(spelling: Spelling, typed: str, meant: str, letters: int) -> None:
    assert spelling.correction(typed, letters, occurs) == meant


def test_the_more_frequent_of_two_is_meant(spelling: Spelling) -> None:
    words = Spelling(["cart", "care"])
    assert words.correction("cat", 1, {"cart": 9, "care": 1}.__getitem__) == "cart"


def test_short_words_are_not_bent_by_two_letters(spelling: Spelling) -> None:
    assert spelling.correction("bio", 2, occurs) is None


def test_a_word_that_no_longer_occurs_is_never_suggested(spelling: Spelling) -> None:
    assert spelling.correction("databse", 1, lambda _: 0) is None
    assert spelling.nearest("databse", lambda _: 0) == []
    assert spelling.split("errorhandling", lambda _: 0) is None


def test_words_written_together_are_split(spelling: Spelling) -> None:
    assert spelling.split("errorhandling", occurs) == ("error", "handling")
    assert spelling.split("errorxhandling", occurs) is None


def test_nearest_words_begin_alike(spelling: Spelling) -> None:
    assert spelling.nearest("timer", occurs)[0] == "timeout"
    assert spelling.nearest("zzz", occurs) == []


def test_a_single_character_is_not_taken_for_another() -> None:
    assert Spelling(["a", "b"]).correction("1", 1, lambda _: 1) is None
