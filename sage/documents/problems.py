"""A problem: one thing in the knowledge base that a person should look at."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["note", "warning", "error"]


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
