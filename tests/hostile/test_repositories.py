"""Every command over hostile repositories: nothing is started, nothing outside is written.

A few are made in each run; `python -m tests.hostile --repositories 500` makes that many.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from sage.cli.main import app
from tests.hostile.repositories import COMMANDS, misled

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="UNTESTED: only Linux tells where an open file really lies"
)


@pytest.mark.parametrize("number", range(6))
def test_no_command_is_misled_by_a_hostile_repository(number: int, tmp_path: Path) -> None:
    assert misled(number, tmp_path) == []


def test_every_command_is_tried() -> None:
    known = {name for name, _ in commands_below(typer.main.get_command(app))}
    tried = {name for name in known for words in COMMANDS if tuple(words[: len(name)]) == name}
    assert known - tried == set()


def test_every_command_is_tried_with_words_that_it_takes() -> None:
    """A command that ends at its arguments meets nothing of a repository."""
    options = dict(commands_below(typer.main.get_command(app)))
    for words in COMMANDS:
        name = tuple(words[:1] if tuple(words[:1]) in options else words[:2])
        given = [word for word in words if word.startswith("--") and " " not in word]
        assert set(given) <= options[name], words


def commands_below(command: Any, *before: str) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command with its options; a group is none itself."""
    inner = getattr(command, "commands", {})
    if not inner:
        yield before, {option for one in command.params for option in one.opts}
    for name, one in inner.items():
        yield from commands_below(one, *before, name)
