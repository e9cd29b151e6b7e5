import pytest

from sage.postings import Row
from sage.vocabulary import Vocabulary

WORDS = "database retry retries testing test error handling authentication timeout git go café"


@pytest.fixture
def vocabulary() -> Vocabulary:
    words = Vocabulary()
    words.add([Row({"body": {word: [0] for word in WORDS.split()}, "title": {"test": [0]}}, "")])
    return words


def test_forms_of_one_stem_belong_together(vocabulary: Vocabulary) -> None:
    assert set(vocabulary.forms("retrying")) == {"retry", "retries"}
    assert "retry" in vocabulary
    assert "retrying" not in vocabulary


def test_the_fields_of_a_form_are_known(vocabulary: Vocabulary) -> None:
    assert vocabulary.fields("test") == ["title", "body"]
    assert vocabulary.fields("nothing") == []


def test_joined_forms_belong_to_their_word_and_are_nobodys_spelling(
    vocabulary: Vocabulary,
) -> None:
    vocabulary.add([Row({"body": {"getuser_": [0]}}, "")])
    assert vocabulary.forms("getuser") == ("getuser_",)
    assert vocabulary.spelling.correction("getusr", 1, lambda _: 1) is None


def test_a_new_form_can_be_a_correction(vocabulary: Vocabulary) -> None:
    assert vocabulary.spelling.correction("zebrra", 1, lambda _: 1) is None
    vocabulary.add([Row({"body": {"zebra": [0]}}, "")])
    assert vocabulary.spelling.correction("zebrra", 1, lambda _: 1) == "zebra"


def test_it_survives_being_written_down(vocabulary: Vocabulary) -> None:
    again = Vocabulary(vocabulary.to_json())
    assert again.forms("retry") == vocabulary.forms("retry")
    assert again.fields("test") == ["title", "body"]


def test_an_addition_leaves_what_was_written_down_alone(vocabulary: Vocabulary) -> None:
    before = vocabulary.to_json()
    vocabulary.add([Row({"body": {"retrying": [0]}}, "")])
    assert "retrying" not in before["retri"]
