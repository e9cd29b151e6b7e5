import pytest

from sage.terms.analysis import stem_of
from sage.terms.postings import Row, Vocabulary
from sage.terms.segments import SegmentStore
from sage.terms.spelling import RealWords
from sage.token_counter import BundledVocabulary

ENGLISH = RealWords(BundledVocabulary())

WORDS = "database retry retries testing test error handling authentication timeout git go café"


def row(words: str, field: str = "body") -> Row:
    return Row({field: {word: [0] for word in words.split()}})


@pytest.fixture
def store() -> SegmentStore:
    made = SegmentStore(stem_of)
    made.change((), [row(WORDS), row("test", "title")])
    return made


def test_forms_of_one_stem_belong_together(store: SegmentStore) -> None:
    store.change((), [row("retrying retried")])
    vocabulary = Vocabulary(store.reader)
    assert set(vocabulary.forms("retrying")) == {"retry", "retries", "retrying", "retried"}
    assert "retried" in vocabulary
    assert "retryings" not in vocabulary


def test_the_fields_of_a_form_are_known(store: SegmentStore) -> None:
    vocabulary = Vocabulary(store.reader)
    assert vocabulary.fields("test") == ["title", "body"]
    assert vocabulary.fields("nothing") == []


def test_joined_forms_belong_to_their_word_and_are_nobodys_spelling(store: SegmentStore) -> None:
    store.change((), [row("getuser_")])
    vocabulary = Vocabulary(store.reader)
    assert vocabulary.forms("getuser") == ("getuser_",)
    assert vocabulary.spelling.correction("getusr", lambda _: 1, ENGLISH) is None


def test_a_new_form_can_be_a_correction(store: SegmentStore) -> None:
    before = Vocabulary(store.reader)
    assert before.spelling.correction("timezonne", lambda _: 1, ENGLISH) is None
    store.change((), [row("timezone")])
    after = Vocabulary(store.reader, before)
    assert after.spelling.correction("timezonne", lambda _: 1, ENGLISH) == "timezone"


def test_without_a_new_form_the_spelling_is_not_made_again(store: SegmentStore) -> None:
    before = Vocabulary(store.reader)
    spelling = before.spelling
    store.change((), [row("git timeout getuser_")])
    assert Vocabulary(store.reader, before).spelling is spelling
