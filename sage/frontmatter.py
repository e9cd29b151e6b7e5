"""Front matter: what a document says of itself. A wrong value is a problem, never a failure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sage.problems import Problem
from sage.yamltext import YamlError, load_yaml

STATUSES = ("draft", "published", "resolved", "superseded", "deprecated")
TYPES = (
    "guide",
    "reference",
    "gotcha",
    "bug_fix",
    "decision",
    "discovery",
    "trade_off",
    "plan",
)
PRIORITIES = {"low": -1, "normal": 0, "high": 1, "critical": 2}
MAX_LIST = 200

_FENCE = re.compile(r"---[ \t]*(?:\r\n?|\n)")
# Not `^`: it does not match after a lone carriage return.
_CLOSING = re.compile(r"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)")
_KEY = re.compile(r"[\"']?[\w.-]+[\"']?[ \t]*:(?:\s|\Z)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields a document may set; everything is optional."""

    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    task_types: tuple[str, ...] = ()
    priority: int = 0
    order: float | None = None
    status: str = "published"
    superseded_by: str = ""
    type: str = ""
    last_updated: str = ""
    owner: str = ""
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


_EMPTY = FrontMatter()


@dataclass(frozen=True, slots=True)
class Split:
    """A text divided: its front matter, where the body begins, and what was wrong."""

    meta: FrontMatter
    body_start: int
    problems: tuple[Problem, ...] = ()


def split_front_matter(text: str, path: str) -> Split:
    """Divide a document's text; a text that only begins with a rule has no front matter."""
    opening = _FENCE.match(text)
    if not opening:
        return Split(_EMPTY, 0)
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        return _unclosed(_KEY.match(text, opening.end()) is not None, path)
    source = text[opening.end() : closing.start()]
    try:
        value = load_yaml(source)
    except YamlError as error:
        if _is_prose(source):
            return _as_text("the text between the first two --- lines is not `key: value`", path)
        line = error.line + 1 if error.line else 1
        problem = Problem(path, "front-matter", f"front matter ignored: {error}", line)
        return Split(_EMPTY, closing.end(), (problem,))
    if value is None:
        return Split(_EMPTY, closing.end())
    if not isinstance(value, dict):
        return _as_text("the text between the first two --- lines is not `key: value`", path)
    reader = _Reader(value, source, path)
    return Split(reader.read(), closing.end(), tuple(reader.problems))


def _unclosed(has_key: bool, path: str) -> Split:
    if has_key:
        return _as_text("the front matter has no closing --- line", path)
    return Split(_EMPTY, 0)


def _as_text(reason: str, path: str) -> Split:
    return Split(_EMPTY, 0, (Problem(path, "front-matter", f"{reason}; served as text", 1),))


def _is_prose(source: str) -> bool:
    """Whether YAML that does not load is text between two rules, which must not be lost.

    Front matter begins with a key, and after a blank line goes on with one.
    """
    above = ""
    for line in source.splitlines():
        starts_block = not above.strip() and line.strip()
        if starts_block and not line[0].isspace() and line[0] != "#" and not _KEY.match(line):
            return True
        above = line
    return False


class _Reader:
    """Reads the known keys of one mapping and notes what does not fit."""

    def __init__(self, values: dict[Any, Any], source: str, path: str) -> None:
        self._values = {str(key): value for key, value in values.items()}
        self._source = source
        self._path = path
        self.problems: list[Problem] = []

    def read(self) -> FrontMatter:
        languages = self._words("languages") + self._words("language")
        return FrontMatter(
            title=self._text("title"),
            summary=self._text("summary"),
            tags=self._words("tags"),
            aliases=self._words("aliases"),
            languages=tuple(dict.fromkeys(word.casefold() for word in languages)),
            task_types=tuple(word.casefold() for word in self._words("task_types")),
            priority=self._priority(),
            order=self._order(),
            status=self._choice("status", STATUSES) or "published",
            superseded_by=self._text("superseded_by"),
            type=self._choice("type", TYPES),
            last_updated=self._text("last_updated"),
            owner=", ".join(self._words("owner")),
            extra=MappingProxyType(self._values),
        )

    def _text(self, key: str) -> str:
        value = self._values.pop(key, None)
        if value is None:
            return ""
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return " ".join(str(value).split())
        self._reject(key, value, "text")
        return ""

    def _words(self, key: str) -> tuple[str, ...]:
        value = self._values.pop(key, None)
        if value is None:
            return ()
        if isinstance(value, str):
            value = value.split(",")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(v, (str, int, float)) for v in value):
            self._reject(key, value, "a list of words")
            return ()
        words = (" ".join(str(word).split()) for word in value[:MAX_LIST])
        return tuple(dict.fromkeys(word for word in words if word))

    def _priority(self) -> int:
        value = self._values.pop("priority", None)
        if value is None:
            return 0
        if isinstance(value, str) and value.casefold() in PRIORITIES:
            return PRIORITIES[value.casefold()]
        if isinstance(value, int) and not isinstance(value, bool) and -100 <= value <= 100:
            return value
        self._reject("priority", value, f"one of {', '.join(PRIORITIES)} or -100 to 100")
        return 0

    def _order(self) -> float | None:
        value = self._values.pop("order", None)
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        self._reject("order", value, "a number")
        return None

    def _choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self._values.pop(key, None)
        if value is None:
            return ""
        word = re.sub(r"[-\s]+", "_", value.strip().casefold()) if isinstance(value, str) else ""
        if word in choices:
            return word
        self._reject(key, value, f"one of {', '.join(choices)}")
        return ""

    def _reject(self, key: str, value: object, expected: str) -> None:
        shown = repr(value) if len(repr(value)) <= 40 else type(value).__name__
        message = f"front matter: {key}: expected {expected}, found {shown}; ignored"
        self.problems.append(Problem(self._path, "front-matter", message, self._line(key)))

    def _line(self, key: str) -> int:
        match = re.search(rf"(?<![^\r\n])[\"']?{re.escape(key)}[\"']?\s*:", self._source)
        if not match:
            return 1
        return len(re.findall(r"\r\n?|\n", self._source[: match.start()])) + 2
