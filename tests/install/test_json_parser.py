"""The structure of JSON texts, strict and relaxed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.install.json_parser import Dialect, JsonTextError, parse_json, value_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def parsed(text: str, dialect: Dialect = "json") -> object:
    node = parse_json(text, dialect)
    assert node is not None
    return value_of(text, node)


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_json_text_has_the_value_that_the_standard_library_reads(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parsed(text) == json.loads(text)


@given(st.text(alphabet='{}[]",:/*\n \\ 01-.eEtrufalsn', max_size=30))
def test_what_the_standard_library_refuses_is_refused(text: str) -> None:
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        if text.strip(" \n"):
            with pytest.raises(JsonTextError):
                parse_json(text)
    else:
        assert parsed(text) == expected


def test_comments_and_trailing_commas_are_read_where_they_are_allowed() -> None:
    text = '// a\n{"a": [1, 2,], /* b */ "u": "http://x/*no*/", // c\n}\n// d'
    assert parsed(text, dialect="jsonc") == {"a": [1, 2], "u": "http://x/*no*/"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"a": 1,\n}', 2, "comma"),
        ('{"a": 1}\n// no', 2, "comment"),
        ('{\n"a" 1}', 2, "expected :"),
        ("{\n'a': 1}", 2, "unexpected"),
        ("{} {}", 1, "after the end"),
        ('{"a":', 1, "end of the file"),
        ('{"a": "x\ny"}', 1, "unexpected"),
        ("[" * 200, 1, "deeper"),
    ],
)
def test_strict_text_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(JsonTextError, match=words) as caught:
        parse_json(text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["", " \n", "// only a comment\n", "/* a */ // b"])
def test_a_text_without_a_value_is_empty_not_wrong(text: str) -> None:
    assert parse_json(text, dialect="jsonc") is None


def test_an_error_does_not_repeat_the_text_of_the_file() -> None:
    with pytest.raises(JsonTextError) as caught:
        parse_json('{"a" "topsecret"}')
    assert "topsecret" not in str(caught.value)
