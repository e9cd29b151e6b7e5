"""One member comes and goes; every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sage.install.json_edit import load_json, put_fields, remove_member
from sage.install.json_parser import JsonTextError

PATH = ("mcpServers", "sage")
FIELDS: dict[str, Any] = {"command": "/py", "args": ["-m", "sage"]}

NAMES = st.sampled_from(["a", "b", "c d", 'q"', "é", "mcp"])
SCALARS = st.sampled_from(["1", "-2.5e3", "true", "null", '"x"', '"//no"', '"a\\u00e9\\"}"', "[]"])
GAPS = st.sampled_from(["", " ", "\n", "\r\n", "\n\t", " // c }\n", "/* , */", "\n  /* {\n */ "])


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str], at_least: int = 0) -> str:
    """An object with blanks and comments wherever they may stand."""
    names = draw(st.lists(NAMES, unique=True, min_size=at_least, max_size=3))
    members = []
    for name in names:
        a, b, c, d = draw(st.tuples(GAPS, GAPS, GAPS, GAPS))
        members.append(f"{a}{json.dumps(name)}{b}:{c}{draw(values)}{d}")
    trailing = draw(st.sampled_from(["", ","])) if members else ""
    return "{" + ",".join(members) + trailing + draw(GAPS) + "}"


def files(at_least: int) -> st.SearchStrategy[str]:
    """A client's file: other servers, other settings, odd formatting."""
    inner = objects(SCALARS | objects(SCALARS), at_least)
    return st.tuples(GAPS, objects(SCALARS), inner, st.booleans(), GAPS).map(_file)


def _file(parts: tuple[str, str, str, bool, str]) -> str:
    head, other, servers, first, tail = parts
    members = [f'"mcpServers": {servers}', f'"other":{other}']
    return head + "{" + ", ".join(members if first else members[::-1]) + "}" + tail


@settings(max_examples=300)
@given(files(at_least=1))
def test_a_member_put_and_removed_leaves_the_very_same_text(text: str) -> None:
    with_it = put_fields(text, PATH, FIELDS, dialect="jsonc")
    assert load_json(with_it, dialect="jsonc")["mcpServers"]["sage"] == FIELDS
    assert remove_member(with_it, PATH, dialect="jsonc") == text


@settings(max_examples=300)
@given(files(at_least=0))
def test_putting_adds_text_and_takes_none_away(text: str) -> None:
    before = load_json(text, dialect="jsonc")
    after = put_fields(text, PATH, FIELDS, dialect="jsonc")
    rest = iter(after)
    assert all(character in rest for character in text)  # a subsequence, in order
    servers = {**before["mcpServers"], "sage": FIELDS}
    assert load_json(after, dialect="jsonc") == {**before, "mcpServers": servers}


@given(files(at_least=0))
def test_putting_twice_changes_nothing_more(text: str) -> None:
    once = put_fields(text, PATH, FIELDS, dialect="jsonc")
    assert put_fields(once, PATH, FIELDS, dialect="jsonc") == once


@settings(max_examples=300)
@given(files(at_least=1), st.data())
def test_removing_any_member_leaves_the_others(text: str, data: st.DataObject) -> None:
    before = load_json(text, dialect="jsonc")
    name = data.draw(st.sampled_from(sorted(before["mcpServers"])))
    after = load_json(remove_member(text, ("mcpServers", name), dialect="jsonc"), dialect="jsonc")
    del before["mcpServers"][name]
    assert after == before


def test_a_new_member_looks_like_its_neighbours() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"a": {} // keep\n\t}\n}\n'
    assert put_fields(text, PATH, {"command": "x"}, dialect="jsonc") == (
        '{\n\t"mcpServers": {\n\t\t"a": {}, // keep\n'
        '\t\t"sage": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n'
    )


def test_the_first_member_takes_the_indentation_of_the_file() -> None:
    text = '{\n    "a": 1,\n    "mcpServers": {}\n}'
    after = put_fields(text, PATH, {"command": "x"}, dialect="json")
    assert '{\n        "sage": {\n            "command": "x"\n        }\n    }\n}' in after


def test_one_line_stays_one_line() -> None:
    text = '{"mcpServers":{"a":{}}}'
    after = put_fields(text, PATH, {"command": "x"}, dialect="json")
    assert after == '{"mcpServers":{"a":{}, "sage": {"command": "x"}}}'


def test_line_ends_of_the_file_are_used() -> None:
    text = '{\r\n  "mcpServers": {}\r\n}\r\n'
    after = put_fields(text, PATH, FIELDS, dialect="json")
    assert after.count("\n") == after.count("\r\n") > 3


def test_only_the_named_fields_of_a_member_change() -> None:
    text = '{"mcpServers": {"sage": {"env": {"A": "1"}, /* mine */ "command": "old"}}}'
    after = put_fields(text, PATH, {"command": "new"}, dialect="jsonc")
    assert after == text.replace("old", "new")


def test_a_text_of_comments_keeps_them() -> None:
    after = put_fields("// my settings", PATH, {"command": "x"}, dialect="jsonc")
    assert after.startswith("// my settings\n{\n")
    assert load_json(after, dialect="jsonc") == {"mcpServers": {"sage": {"command": "x"}}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "the file is a array"),
        ('{"mcpServers": null}', "mcpServers is null"),
        ('{"mcpServers": {"sage": 3}}', "mcpServers.sage is a number"),
        ('{"mcpServers": {}, "mcpServers": {}}', "appears twice"),
        ('{"mcpServers": {"sage": {}, "s\\u0061ge": {}}}', "appears twice"),
    ],
)
def test_what_is_no_object_is_not_edited(text: str, words: str) -> None:
    with pytest.raises(JsonTextError, match=words):
        put_fields(text, PATH, FIELDS, dialect="json")


def test_removing_what_is_not_there_is_no_change() -> None:
    for text in ("", "{}", '{"mcpServers": {}}', '{ "a": 1 }'):
        assert remove_member(text, PATH, dialect="json") == text
