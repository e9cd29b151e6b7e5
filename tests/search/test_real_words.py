"""What is a word is never taken for a misspelling."""

import pytest

from sage.search.spelling import RealWords
from sage.token_counter import BundledVocabulary

WORDS = RealWords(BundledVocabulary())


@pytest.mark.parametrize(
    "word",
    [
        "convention",
        "refunds",
        "wake",
        "refused",
        "printer",
        "planning",
        "stopped",
        "unplugged",
        "raisins",
    ],
)
def test_words_and_their_forms_are_real(word: str) -> None:
    assert WORDS.is_real(word)


@pytest.mark.parametrize(
    "word",
    [
        "databse",
        "recieve",
        "seperate",
        "rollling",
        "releaseed",
        "kuberntes",
        "detecttion",
        "timess",
    ],
)
def test_misspellings_are_not_even_those_that_many_write(word: str) -> None:
    assert not WORDS.is_real(word)
