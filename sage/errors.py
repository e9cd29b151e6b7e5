"""The errors of the domain. Each names its code for a tool and its exit code for the shell.

Edges convert them once: the MCP server into tool errors, the command line into one line on stderr.
"""

from typing import ClassVar


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


class ConfigError(SageError):
    """The root or a setting is wrong: nothing can be served until it is mended."""

    code = "INVALID_INPUT"
    exit_code = 4
