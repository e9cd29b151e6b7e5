"""Plain text in a pipe, colours on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from sage.console_team import print_line


def on_a_terminal(program: str, **variables: str) -> str:
    """What a program prints when a person is watching."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "40", **variables}
    subprocess.run([sys.executable, "-c", program], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        return terminal.read(10_000).decode()


PROGRAM = "from sage.console_team import print_line; print_line(('error', 'red'), (' x' * 40, ''))"


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(("error", "bold red"), (": a\u202eb", ""))
    assert capsys.readouterr().out == "error: ab\n"


def test_a_terminal_gets_colours_and_long_lines_whole() -> None:
    shown = on_a_terminal(PROGRAM)
    assert shown.startswith("\x1b[31merror\x1b[0m x x")
    assert shown.count("\n") == 1


def test_no_color_is_obeyed() -> None:
    assert "\x1b" not in on_a_terminal(PROGRAM, NO_COLOR="1")


def test_importing_it_does_not_import_rich() -> None:
    program = "import sys, sage.console_team; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=Path.home()).returncode == 0
