"""A problem: one thing in the knowledge base that a person should look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["note", "warning", "error"]
_LEVELS: Mapping[str, Level] = {"note": "note", "warning": "warning", "error": "error"}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in which file.

    A note is expected (a hidden file, an ignored pattern); a warning or an error means that
    something a writer meant to share is not served as written.
    """

    path: str
    rule: str
    message: str
    line: int = 0
    level: Level = "warning"

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"

    @property
    def on_page(self) -> str:
        """Everything but the path, on one line."""
        return f"{self.line} {self.level} {self.rule} {self.message}"


def problem_on(path: str, on_page: str) -> Problem:
    """A problem of a page from what was kept of it.

    Raises:
        LookupError, ValueError: it is something else.
    """
    line, level, rule, message = on_page.split(" ", 3)
    return Problem(path, rule, message, int(line), _LEVELS[level])
