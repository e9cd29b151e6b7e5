"""What `--help` shows, for every command there is."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from sage.cli.main import app
from tests.commands import Run, run

__all__ = ["run"]


def commands(group: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """The names of every command, those of groups below them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield (*names, name)


COMMANDS = list(commands(typer.main.get_command(app)))


def test_the_commands_stand_in_a_newcomers_order(run: Run) -> None:
    lines = run("--help")[1].partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    names = [line.split()[0] for line in lines]
    assert names[:4] == ["init", "search", "get", "context"]
    assert not any(line.endswith("...") for line in lines)


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_help_is_plain_text_with_an_example_and_no_type(run: Run, names: tuple[str, ...]) -> None:
    code, out, err = run(*names, "--help")
    assert (code, err) == (0, "")
    command = " ".join(names)
    assert out.startswith(f"Usage: sage {command} ")
    assert f"    sage {command}" in out.partition("Example")[2]
    assert "<" not in out
    assert "╭" not in out
    assert "None" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_parameter_says_what_it_is(names: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    for name in names:
        command = command.commands[name]
    for parameter in command.params:
        assert parameter.help, parameter.name
        assert parameter.metavar or parameter.is_flag, parameter.name
