"""The vocabulary that counts answers is exact, and knows whole words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.bundled_vocabulary import BundledVocabulary
from sage.token_counter import TokenCounter

VOCABULARY = BundledVocabulary()
COUNTER = TokenCounter()


@pytest.mark.parametrize(
    "text",
    [
        "How do I retry a failed request?\n\n## Retries\n\n- once\n- twice\n",
        "def f(x):\n    return {'a': [1, 22, 4444]}  # don't\r\n",
        "数据库迁移要先备份。 ½ cup, x² and Ⅷ",
        "   \n\n \t trailing   ",
        "anticonstitutionnellement_SNAKE_caseHTTPServer" * 5,
    ],
)
def test_it_counts_what_tiktoken_counts(text: str) -> None:
    assert VOCABULARY.count(text) == COUNTER.count(text)
    as_json = json.dumps({"snippet": text}, ensure_ascii=False)
    assert VOCABULARY.count(as_json) == COUNTER.count(as_json)


@given(st.text(st.characters(codec="utf-8", max_codepoint=0x2FFF), max_size=80))
def test_it_counts_any_text_of_a_page_exactly(text: str) -> None:
    assert VOCABULARY.count(text) >= COUNTER.count(text)


def test_a_piece_that_is_no_word_of_anybodys_is_counted_by_its_bytes() -> None:
    assert VOCABULARY.count("x" * 5_000) == 5_000


def test_it_holds_words_and_not_their_ends() -> None:
    assert VOCABULARY.holds("convention")
    assert VOCABULARY.holds("kubernetes")
    assert not VOCABULARY.holds("databse")
    assert not VOCABULARY.holds("ilerplate")
