import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sage.safe_yaml import MAX_BYTES, YamlError, load_toml, load_yaml, value_places

YAMLISH = st.text(alphabet="ab:-[]{}#&*!|>'\"%@`?,~ \n\t0123.\r\\\ufeff\x85\u2028", max_size=60)


def error(text: str, max_bytes: int = 1_000_000) -> YamlError:
    with pytest.raises(YamlError) as caught:
        load_yaml(text, max_bytes)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ("2024-13-45", "2024-13-45"),
        ("no", "no"),
        ("on", "on"),
        ("0o17", "0o17"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("007", "007"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("9" * 5_000, "9" * 5_000),
        ("1.2.3", "1.2.3"),
        ("<<", "<<"),
        ("=", "="),
        ("true", True),
        ("FALSE", False),
        ("42", 42),
        ("-7", -7),
        ("1.5", 1.5),
        ("1e3", "1e3"),
        ("1.0e3", 1000.0),
        ("~", None),
        ("null", None),
        ("", None),
        ("'12'", "12"),
    ],
)
def test_scalar_is_what_its_writer_sees(text: str, value: object) -> None:
    assert load_yaml(text) == value


def test_mapping_and_list_keep_their_order() -> None:
    value = load_yaml("b: [2, 1]\na: {d: 1, c: 2}")
    assert json.dumps(value) == '{"b": [2, 1], "a": {"d": 1, "c": 2}}'


def test_merge_key_is_an_ordinary_key() -> None:
    assert load_yaml("<<: {a: 1}\nb: 2") == {"<<": {"a": 1}, "b": 2}


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: &x 1", "anchors and aliases are not allowed", 1),
        ("a: 1\nb: *x", "anchors and aliases are not allowed", 2),
        ("a: !!python/object:os.system x", "tags such as !!set are not allowed", 1),
        ("a: 1\nb: !!set {x}", "tags such as !!set are not allowed", 2),
        ("a: 1\n\na: 2", "the key 'a' appears twice", 3),
        ("a:\n  b: 1\n  b: 2", "the key 'b' appears twice", 3),
        ("1: a\n'1': b", "the key '1' appears twice", 2),
        ("? [a]\n: 1", "a key must be text", 1),
        ("? {a: 1}\n: 1", "a key must be text", 1),
        ("a: [1", "not valid YAML", 1),
        ("a: 'x", "not valid YAML", 1),
        ("a: 1\nb: c: d", "mapping values are not allowed", 2),
        ("\ta: 1", "cannot start any token", 1),
        ("a: 1\n---\nb: 2", "not valid YAML", 2),
        ("a: \x00", "not valid YAML", 0),
        ("a: \ud800", "not valid YAML", 0),
    ],
)
def test_text_that_is_refused_names_the_reason_and_the_line(
    text: str, words: str, line: int
) -> None:
    refused = error(text)
    assert words in str(refused)
    assert refused.line == line


def test_alias_bomb_is_refused_before_anything_is_built() -> None:
    rows = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert "anchors" in str(error("\n".join(rows)))


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_and_never_crashes(bracket: str) -> None:
    assert error(bracket * 30_000).args[0].startswith(("nested deeper", "not valid"))


def test_nesting_up_to_the_bound_is_loaded() -> None:
    assert load_yaml("[" * 20 + "]" * 20) is not None
    assert "nested deeper than 20" in str(error("[" * 21 + "]" * 21))


def test_long_text_that_is_not_deep_is_loaded() -> None:
    assert load_yaml("[" + "[{}], " * 30 + "]") == [[{}]] * 30


def test_size_is_counted_in_bytes() -> None:
    assert load_yaml("é" * 8, 16) == "é" * 8
    assert str(error("é" * 8 + "x", 16)) == "17 bytes of YAML, at most 16 are read"


@given(st.one_of(st.text(max_size=80), YAMLISH))
@example("\ufeff")
@example("? ")
@example("%YAML 9.9\n--- a")
@example("- - - - [")
@example("!")
@example('"\\ud800"')
@example("a: |-9\n x")
def test_any_text_is_a_value_or_a_yaml_error(text: str) -> None:
    try:
        json.dumps(load_yaml(text))
    except YamlError as error:
        refused = error
    else:
        return
    assert str(refused)
    assert 0 <= refused.line <= max(1, len(text.splitlines()))


def test_the_places_of_values_are_those_of_the_text() -> None:
    text = "title: A page\ntags: [a, b]\nowner: {name: ann}\n"
    found = {key: text[start:end] for key, start, end in value_places(text)}
    assert (found["title"], found["tags"]) == ("A page", "[a, b]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "x" * MAX_BYTES, "characters of YAML"),
        ("just words", "not `key: value`"),
        ("- a\n- b", "not `key: value`"),
        ("a: [", "expected"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_a_text_without_places_is_refused(text: str, message: str) -> None:
    with pytest.raises(YamlError, match=message):
        value_places(text)


def test_toml_is_counted_in_bytes_too() -> None:
    assert load_toml(f'title = "{"ü" * 100}"') == {"title": "ü" * 100}
    with pytest.raises(YamlError, match=f"at most {MAX_BYTES} are read"):
        load_toml(f'title = "{"ü" * (MAX_BYTES // 2)}"')
