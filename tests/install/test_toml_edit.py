"""One table comes and goes in a TOML text; every other byte stays."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sage.install.toml_edit import TomlTextError, put_fields, remove_table

PATH = ("mcp_servers", "sage")
FIELDS: dict[str, Any] = {"command": "/py", "args": ["-m", "sage"]}

LINES = st.sampled_from(
    [
        "# [mcp_servers.sage] in a comment",
        "",
        "  # indented",
        'a = "x # not a comment"',
        'b = """\n[mcp_servers.sage]\ncommand = "no"\n"""',
        "c = '''\n[mcp_servers.sage]'''''",
        "d = [ # first\n  1,\n  [2, 3], # ]\n]",
        'e.f."g h" = { x = 1, y = "}" }',
        "h = 2026-01-02T03:04:05Z # when",
        'i = "\\"]"',
    ]
)
TABLES = st.sampled_from(
    [
        "[t]",
        "[ t . u ] # end",
        '["mcp_servers"]',
        "[mcp_servers.other]",
        "[[many]]",
        "[mcp_servers.'o t'.env]",
    ]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A configuration with tables, strings and comments that look like each other."""
    tables = [None, *draw(st.lists(TABLES, unique=True, max_size=4))]
    lines: list[str] = []
    for table in tables:
        lines += [table] if table else []
        lines += draw(st.lists(LINES, unique=True, max_size=5))
    text = "\n".join(lines) + "\n"
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@settings(max_examples=300)
@given(texts())
def test_a_table_put_and_removed_leaves_the_very_same_text(text: str) -> None:
    with_it = put_fields(text, PATH, FIELDS)
    assert with_it.startswith(text)
    assert tomllib.loads(with_it)["mcp_servers"]["sage"] == FIELDS
    assert remove_table(with_it, PATH) == text


@settings(max_examples=150)
@given(texts(), texts())
def test_a_table_between_others_is_found_and_removed(head: str, tail: str) -> None:
    ours = (
        '[mcp_servers . "sage"] # ours\ncommand = "old"\n# kept\n[mcp_servers.sage.env]\nA = "1"\n'
    )
    text = head + ours + "[zz]\nk = 1\n"
    assert remove_table(text, PATH) == head + "# kept\n[zz]\nk = 1\n"
    changed = put_fields(text, PATH, FIELDS)
    assert tomllib.loads(changed)["mcp_servers"]["sage"] == {**FIELDS, "env": {"A": "1"}}
    assert remove_table(changed, PATH) == head + "# kept\n[zz]\nk = 1\n"


def test_only_a_changed_value_is_rewritten() -> None:
    text = '[mcp_servers.sage]\nargs = [\n  "-m", # module\n  "sage",\n]\ncommand = "old" # why\n'
    after = put_fields(text, PATH, FIELDS)
    assert after == text.replace('"old"', '"/py"')


def test_dotted_keys_are_edited_where_they_stand() -> None:
    text = 'mcp_servers.sage.command = "old"\nmcp_servers.sage.args = []\nx = 1\n'
    after = put_fields(text, PATH, FIELDS)
    assert after == text.replace('"old"', '"/py"').replace("[]", '["-m", "sage"]')
    assert remove_table(text, PATH) == "x = 1\n"


def test_a_missing_field_goes_below_the_heading() -> None:
    after = put_fields('[mcp_servers.sage]\ncommand = "/py"', PATH, FIELDS)
    assert after == '[mcp_servers.sage]\nargs = ["-m", "sage"]\ncommand = "/py"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "Invalid value"),
        ("mcp_servers = 3", "mcp_servers is not a table"),
        ("[mcp_servers]\nsage = 3", "mcp_servers.sage is not a table"),
        ("[[mcp_servers]]\na = 1", "mcp_servers is not a table"),
        ('mcp_servers = { other = { command = "x" } }', "Cannot"),
        ('[mcp_servers]\nsage = { command = "x" }', "no .* heading"),
    ],
)
def test_what_cannot_be_edited_with_certainty_is_refused(text: str, words: str) -> None:
    with pytest.raises(TomlTextError, match=words):
        put_fields(text, PATH, FIELDS)


def test_part_of_an_inline_table_is_not_removed() -> None:
    with pytest.raises(TomlTextError, match="inline table"):
        remove_table('mcp_servers = { sage = { command = "x" } }', PATH)


def test_an_inline_server_is_removed_as_one_line() -> None:
    text = '[mcp_servers]\nsage = { command = "x" }\nother = { command = "y" }\n'
    assert remove_table(text, PATH) == '[mcp_servers]\nother = { command = "y" }\n'


def test_windows_paths_are_written_as_they_are_read() -> None:
    fields = {"command": 'C:\\Users\\Zoë\\py "3"\x7f.exe'}
    assert tomllib.loads(put_fields("", PATH, fields))["mcp_servers"]["sage"] == fields


def test_a_list_of_tables_between_two_servers_stays_where_it_is() -> None:
    text = "[mcp_servers.a]\nx = 1\n[[hooks]]\ny = 2\n[mcp_servers.sage]\nz = 3\n[[hooks]]\ny = 4\n"
    assert remove_table(text, PATH) == text.replace("[mcp_servers.sage]\nz = 3\n", "")


def test_the_comment_of_the_next_table_stays_with_it() -> None:
    text = '[mcp_servers.sage]\ncommand = "x"\n\n# about profiles\n[profiles]\n'
    assert remove_table(text, PATH) == "# about profiles\n[profiles]\n"
    after = put_fields(text, PATH, FIELDS)
    assert after.endswith("\n\n# about profiles\n[profiles]\n")


def test_a_list_of_many_lines_that_look_like_headings_is_refused_in_time() -> None:
    text = "[mcp_servers.sage]\na = 1\n[x]\nrows = [\n" + "[1],\n" * 300 + "]\n"
    with pytest.raises(TomlTextError, match="look like headings"):
        remove_table(text, PATH)
