"""What may leave in a string."""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sage.sanitize import Form, clean, clean_value, is_clean, json_text, normal_form

HARMLESS = [
    "",
    "plain words, `code`\tand\nlines",
    "Größe, naïve, Ελληνικά, кириллица, ไทย",
    "日本語のテキスト\n中文\n한국어",
    "non\u00a0breaking \u2014 dash \u2028 separator",
    "\U0001f600 \u2764\ufe0f 1\ufe0f\u20e3 \u00a9\ufe0f \u303d\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0001f469\U0001f3fd\u200d\U0001f680 \U0001f1e9\U0001f1ea",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u0915\u094d\u200d\u0937",
]
CLEANED = [
    ("lone \ud800 and \udc80", "lone \ufffd and \ufffd"),
    ("\ud83d\ude00", "\ufffd\ufffd"),
    ("a\x00b\x07c\x7fd\x85e\x9be", "abcde"),
    ("one\r\ntwo\rthree", "one\ntwo\nthree"),
    ("\x1b[31mred\x1b[0m \x1b[1;4mbold", "red bold"),
    ("\x9b31mred\x9b0m", "red"),
    ("\x1b]0;title\x07after \x1b]8;;http://x\x1b\\link", "after link"),
    ("\x1bPpayload\x9cafter\x90more\x1b\\!", "after!"),
    ("\x1b(Bset \x1b7saved \x1bcreset", "set saved reset"),
    ("\x1b]0;never ended: what follows stays", "]0;never ended: what follows stays"),
    ("\x1b\x1b[0m[31m", "[31m"),
    ("\u202egnp.exe\u202c \u2066x\u2069 \u200e\u200f\u061c", "gnp.exe x "),
    ("zero\u200bwidth\u2060joined\ufeff soft\u00adhyphen", "zerowidthjoined softhyphen"),
    ("pass\u200cword \u200d", "password "),
    ("x\ufe0f\u200d\U0001f469", "x\U0001f469"),
    ("\U0001f600\ufe0f\ufe0f", "\U0001f600\ufe0f"),
    ("data\U000e0068\U000e0069 in tags", "data in tags"),
    ("\U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f3f4"),
    ("smuggled\U000e0100\U000e01ef", "smuggled"),
    ("\u115f\u3164\uffa0\u180e\u2062\ufffa", ""),
]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_left_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize("text", HARMLESS[:5])
def test_text_without_invisible_characters_is_not_rewritten(text: str) -> None:
    assert is_clean(text)
    assert clean(text) is text


@pytest.mark.parametrize(("text", "cleaned"), CLEANED)
def test_what_breaks_or_deceives_is_removed(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(("text", "cleaned"), CLEANED)
def test_it_is_removed_from_the_middle_of_long_text_too(text: str, cleaned: str) -> None:
    around = "Zeile über Zeile\n" * 2000
    assert clean(around + text + around) == around + cleaned + around


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
@example("\u0645\u200c\u200c\u0645")
@example("\U0001f469\u200d\u200d\U0001f469")
@example("\r\x00\n")
def test_clean_text_is_encodable_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned.encode()) >= len(cleaned)
    assert clean(cleaned) == cleaned


SUSPECTS = st.sampled_from(
    "a1#\n\r\t\x00\x1b\x9b\x07\x9c[]0;m\\\u00ad\u200b\u200c\u200d\u202e\u2066\ufe0e\ufe0f\ufeff"
    "\u0645\u0915\u094d\u2764\U0001f469\U0001f3f4\U000e0067\U000e007f\U000e0100\ud800\udfff"
)


@given(st.lists(SUSPECTS, max_size=14).map("".join))
def test_mixtures_of_suspects_come_clean_in_one_pass(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not set(cleaned) & set("\r\x00\x1b\x9b\x07\x9c\u200b\u202e\u2066\ufeff\U000e0100")


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_printable_ascii_always_survives(text: str) -> None:
    assert clean(text) is text


def test_every_string_of_a_value_is_cleaned_keys_included() -> None:
    value = {"a\x00": ["x\ud800", 1, None, True, 2.5, ("\u202ey", {"k": "\x1b[0mz"})]}
    assert clean_value(value) == {"a": ["x\ufffd", 1, None, True, 2.5, ["y", {"k": "z"}]]}
    json.dumps(clean_value(value)).encode()


def test_a_megabyte_of_openings_takes_no_longer_than_its_length() -> None:
    assert clean("\x1b]" * 500_000) == "]" * 500_000
    assert clean("\x1b[" * 300_000) == "[" * 300_000


WORDS = st.lists(st.text(max_size=40), max_size=8).map(" ".join)


@given(text=WORDS, form=st.sampled_from(["NFC", "NFKC", "NFKD"]))
def test_text_has_the_form_that_unicode_gives_it(text: str, form: Form) -> None:
    many = " ".join([text] * 20)
    assert normal_form(form, many) == unicodedata.normalize(form, many)


def test_accents_without_end_are_sorted_in_pieces() -> None:
    accents = "\u0336\u0315" * 250_000
    assert len(normal_form("NFKD", f"z{accents}")) == 500_001


UNSEEN = "\x00\x1b[31m\x7f\x9b\u200b\u202e\u2066\ufeff\ufe0f\u2028\U000e0041\U000e0001\ud800"


def test_json_for_a_terminal_holds_nothing_unseen_and_means_the_same() -> None:
    value = {f"k{UNSEEN}": [UNSEEN, "é漢 \U0001f600 \t\n", 1.5, None]}
    for indent in (None, 2):
        text = json_text(value, indent)
        assert json.loads(text) == value
        assert not set(UNSEEN) & set(text) - set("[31m")
        assert "é漢 \U0001f600" in text


@given(value=st.recursive(st.text() | st.integers(), lambda one: st.lists(one, max_size=3)))
def test_json_of_any_value_is_read_back_and_shows_no_control(value: object) -> None:
    text = json_text(value, indent=2)
    assert json.loads(text) == value
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
