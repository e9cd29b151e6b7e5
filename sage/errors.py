"""The errors of the domain. Each names its code for a tool and its exit code for the shell.

Edges convert them once: the MCP server into tool errors, the command line into one line on stderr.
The words that messages share are here too.
"""

import difflib
from collections.abc import Iterable
from typing import ClassVar

_MAX_WORD = 100


class SageError(Exception):
    """What went wrong, which values would be right, and what to do next."""

    code: ClassVar[str] = "INTERNAL"
    exit_code: ClassVar[int] = 1


class InvalidInput(SageError):
    """An argument is outside what the call accepts."""

    code = "INVALID_INPUT"
    exit_code = 2


class NotFound(SageError):
    """The knowledge base holds nothing under that name."""

    code = "NOT_FOUND"


class TimeoutExceeded(SageError):
    """A deadline passed before anything could be answered."""

    code = "TIMEOUT"
    exit_code = 3


class Unavailable(SageError):
    """What the answer is kept in cannot be reached now; nothing is wrong with the call."""

    code = "UNAVAILABLE"
    exit_code = 3


class ConfigError(SageError):
    """The root or a setting is wrong: nothing can be served until it is fixed."""

    code = "INVALID_INPUT"
    exit_code = 4


class WrongOption(ConfigError):
    """An option has a value that it cannot have."""

    exit_code = 2


CODES = frozenset(
    one.code for one in (SageError, InvalidInput, NotFound, TimeoutExceeded, Unavailable)
)
"""What an error may begin with."""


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things: `1 document`, `1,200 documents`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that names the closest known word; empty when none is close."""
    # Comparing grows with the square of the length, and no name is that long.
    close = difflib.get_close_matches(word[:_MAX_WORD], list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
