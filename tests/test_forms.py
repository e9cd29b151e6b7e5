import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sage.forms import Form, normal_form

WORDS = st.lists(st.text(max_size=40), max_size=8).map(" ".join)


@given(text=WORDS, form=st.sampled_from(["NFC", "NFKC", "NFKD"]))
def test_text_has_the_form_that_unicode_gives_it(text: str, form: Form) -> None:
    many = " ".join([text] * 20)
    assert normal_form(form, many) == unicodedata.normalize(form, many)


def test_accents_without_end_are_sorted_in_pieces() -> None:
    accents = "\u0336\u0315" * 250_000
    assert len(normal_form("NFKD", f"z{accents}")) == 500_001
