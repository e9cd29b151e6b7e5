"""Plain text in a pipe; on a terminal colours, and lines that break between words."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sage.cli.terminal import print_json, print_line


def on_a_terminal(statement: str, **variables: str) -> str:
    """What a statement prints when a person is watching."""
    program = f"from sage.cli.terminal import *\n{statement}"
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "40", **variables}
    subprocess.run([sys.executable, "-c", program], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        return terminal.read(10_000).decode().replace("\r\n", "\n")


LINE = "print_line(('error', 'red'), (': words and words and words and words', ''), indent=4)"


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(("error", "bold red"), (": a\u202eb", ""))
    assert capsys.readouterr().out == "error: ab\n"


def test_a_terminal_gets_colours_and_what_is_too_long_goes_on_at_the_indent() -> None:
    shown = on_a_terminal(LINE)
    assert shown == "\x1b[31merror\x1b[0m: words and words and words and\n    words\n"


def test_a_path_is_never_broken_over_two_lines() -> None:
    path = "/a/very/long/path/of/some/repository/.knowledge/core/page.md"
    assert on_a_terminal(f"print_line(('in ', ''), ('{path}', ''), (' (new)', ''))") == (
        f"in\n{path}\n(new)\n"
    )


def test_a_table_cuts_no_cell_at_any_width() -> None:
    row = ("172", "core/principles#prefer-the-change-that-is-easy-to-undo", "a core principle")
    statement = f"print_table(('tokens', 'topic', 'why'), [{row}])"
    assert all(cell in on_a_terminal(statement) for cell in row)
    wide = on_a_terminal(statement, COLUMNS="200").splitlines()
    assert wide[1].split("  ")[-1] == row[-1]


def test_the_last_column_of_a_table_goes_on_below_itself() -> None:
    statement = "print_rows([('status', 'words ' * 12), ('x', 'y')])"
    lines = re.sub(r"\x1b\[\d*m", "", on_a_terminal(statement)).splitlines()
    assert [line[:8].rstrip() for line in lines] == ["status", "", "", "x"]
    assert lines[1].lstrip().startswith("words")


def test_no_color_is_obeyed() -> None:
    assert "\x1b[31m" not in on_a_terminal(LINE, NO_COLOR="1")


def test_a_page_on_a_terminal_is_shown_under_its_path() -> None:
    page = "<!-- .knowledge/core/a.md:1-3 -->\\n\\n# A\\n\\ntext\\n\\n<!-- other -->"
    shown = on_a_terminal(f"print_content('{page}')")
    assert ".knowledge/core/a.md:1-3" in shown
    assert "other" not in shown


def test_a_page_without_a_heading_shows_its_title_on_a_terminal() -> None:
    page = "<!-- .knowledge/core/a.md -->\\n\\ntext\\n\\n<!-- .knowledge/core/b.md -->\\n\\n# B"
    titles = "lambda: {'.knowledge/core/a.md': 'From front matter', '.knowledge/core/b.md': 'No'}"
    shown = on_a_terminal(f"print_content('{page}', {titles})")
    assert "From front matter" in shown
    assert "No" not in shown


def test_importing_it_does_not_import_rich() -> None:
    program = "import sys, sage.cli.terminal, sage.cli.output; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=Path.home()).returncode == 0


def test_json_shows_a_terminal_nothing_that_steers_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"path": "a\x9b31m\u202eb\u200b\U000e0041.md"})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == {"path": "a\x9b31m\u202eb\u200b\U000e0041.md"}


def test_neither_a_title_nor_an_entity_of_a_page_steers_a_terminal() -> None:
    page = "<!-- .knowledge/core/a.md -->\\n\\ntext a&#x202e;b&#x9b;31m&#x200b;c `&#27;]0;`"
    titles = "lambda: {'.knowledge/core/a.md': 'T\\x1b]0;pwned\\x07\\x9b31m\\u202eitle'}"
    shown = on_a_terminal(f"print_content('{page}', {titles})", NO_COLOR="1", TERM="dumb")
    assert "text ab" in shown
    assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b]", shown) == []
