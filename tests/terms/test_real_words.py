"""What is a word is never taken for a misspelling."""

from string import ascii_lowercase

import pytest

from docs.known_words import make_filter
from sage.terms.spelling import RealWords, filter_places
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
        "germinate",
        "varnish",
        "behaviours",
        "pyjamas",
        "kustomize",
        "siobhan",
        "dockerfiles",
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
        "mangement",
        "facors",
    ],
)
def test_misspellings_are_not_even_those_that_many_write(word: str) -> None:
    assert not WORDS.is_real(word)


def test_filter_finds_its_words_and_hardly_any_other() -> None:
    words = [f"word{letter}{other}" for letter in ascii_lowercase for other in ascii_lowercase]
    data = make_filter(words[:100])
    bits = 8 * len(data)
    held = [
        all(data[at >> 3] >> (at & 7) & 1 for at in filter_places(word, bits)) for word in words
    ]
    assert all(held[:100])
    assert sum(held[100:]) <= 6
