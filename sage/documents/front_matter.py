"""Front matter: what a document says of itself. A wrong value is a problem, never a failure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any

from sage.documents.problems import Problem
from sage.documents.scopes import split_globs
from sage.safe_yaml import YamlError, load_toml, load_yaml
from sage.values import Values, WrongValue, is_number

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
MAX_ID = 64
SCOPE_KEYS = ("applies_to", "paths", "globs", "applyTo", "fileMatchPattern")
"""Where a page names the files it belongs to: our word, and those of other tools."""
ORDER_KEYS = ("weight", "sidebar_position", "nav_order")
"""Where Hugo, Docusaurus and Jekyll's themes put what is our `order`."""

# Cursor writes its globs as they are, which YAML takes for an alias or a mapping.
_BARE_GLOB = re.compile(
    r"(?:^|(?<=[\r\n]))((?:(?:globs|paths|applyTo|fileMatchPattern|applies_to):|[ \t]{0,8}-)"
    r"[ \t]{1,8})([*{!\[][^\r\n\"]*)"
)

_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ].*)?", re.ASCII)
_DAY = "a date such as 2027-01-31"

_TEXT = Values("string")
_WORDS = Values("array")
_ORDER = Values("number")
_PRIORITY = Values("integer", -100, 100)


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write front matter."""

    fence: str
    example: str
    opening: re.Pattern[str]
    closing: re.Pattern[str]
    key: re.Pattern[str]
    load: Callable[[str], object]


_FORMS = (
    _Form(
        "---",
        "key: value",
        re.compile(r"---[ \t]*(?:\r\n?|\n)"),
        # Not `^`: it does not match after a lone carriage return.
        re.compile(r"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)"),
        re.compile(r"(?<![\w.-])[\"']?[\w.-]+[\"']?[ \t]*:(?:\s|\Z)"),
        load_yaml,
    ),
    _Form(
        "+++",
        "key = value",
        re.compile(r"\+\+\+[ \t]*(?:\r\n?|\n)"),
        re.compile(r"(?<=[\r\n])\+\+\+[ \t]*(?:\r\n?|\n|\Z)"),
        re.compile(r"(?<![\w.-])[\"']?[\w.-]+[\"']?[ \t]*=|\["),
        load_toml,
    ),
)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields a document may set; everything is optional."""

    id: str = ""
    """A name that stays when the page moves; `sage note` gives one."""
    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    task_types: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()
    """Globs of the files that the page belongs to."""
    priority: int = 0
    order: float | None = None
    status: str = "published"
    superseded_by: str = ""
    type: str = ""
    last_updated: str = ""
    """A day as 2027-01-31, so that days are in order as text; so is `review_by`."""
    owner: str = ""
    source: str = ""
    """Where it was learned: a link, a person."""
    review_by: str = ""
    """The day by which somebody should look at it again."""
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def names(self) -> tuple[str, ...]:
        """What a page is called beside its title and its path."""
        return (self.id, *self.aliases) if self.id else self.aliases


_EMPTY = FrontMatter()


@dataclass(frozen=True, slots=True)
class Split:
    """A text divided: its front matter, where the body begins, and what was wrong."""

    meta: FrontMatter
    body_start: int
    problems: tuple[Problem, ...] = ()


def day_in(text: str) -> str:
    """The day that a text begins with, as 2027-01-31; empty when it begins with none."""
    found = _DATE.fullmatch(text.strip())
    if found is None:
        return ""
    try:
        return date(*map(int, found.groups())).isoformat()
    except ValueError:
        return ""


def split_front_matter(text: str, path: str) -> Split:
    """Divide a document's text; a text that only begins with a rule has no front matter."""
    for form in _FORMS:
        opening = form.opening.match(text)
        if opening:
            return _split(form, text, opening.end(), path)
    return Split(_EMPTY, 0)


def _split(form: _Form, text: str, start: int, path: str) -> Split:
    closing = form.closing.search(text, start)
    if not closing:
        if form.key.match(text, start):
            return _as_text(f"the front matter has no closing {form.fence} line", path)
        return Split(_EMPTY, 0)
    source = text[start : closing.start()]
    no_keys = f"the text between the first two {form.fence} lines is not `{form.example}`"
    try:
        value = _loaded(form, source)
    except YamlError as error:
        if _is_prose(source, form.key):
            return _as_text(no_keys, path)
        line = error.line + 1 if error.line else 1
        problem = Problem(path, "front-matter", f"front matter ignored: {error}", line)
        return Split(_EMPTY, closing.end(), (problem,))
    if value is None:
        return Split(_EMPTY, closing.end())
    if not isinstance(value, dict):
        return _as_text(no_keys, path)
    reader = _KeyReader(value, source, path)
    return Split(reader.read(), closing.end(), tuple(reader.problems))


def _loaded(form: _Form, source: str) -> object:
    """What front matter holds; globs that are not quoted are read as they are meant."""
    try:
        return form.load(source)
    except YamlError:
        quoted = _BARE_GLOB.sub(_quoted_glob, source)
        if form.load is not load_yaml or quoted == source:
            raise
        return form.load(quoted)


def _quoted_glob(found: re.Match[str]) -> str:
    value = found[2].rstrip()
    if value.startswith("[") and value.endswith("]"):
        return found[1] + "[" + ", ".join(f'"{one}"' for one in split_globs(value[1:-1])) + "]"
    return f'{found[1]}"{value}"'


def _as_text(reason: str, path: str) -> Split:
    return Split(_EMPTY, 0, (Problem(path, "front-matter", f"{reason}; served as text", 1),))


def _is_prose(source: str, key: re.Pattern[str]) -> bool:
    """Whether what does not load is text between two rules, which must not be lost.

    Front matter begins with a key, and after a blank line goes on with one.
    """
    above = ""
    for line in source.splitlines():
        starts_block = not above.strip() and line.strip()
        if starts_block and not line[0].isspace() and line[0] != "#" and not key.match(line):
            return True
        above = line
    return False


class _KeyReader:
    """Reads the known keys of one mapping and notes what does not fit."""

    def __init__(self, values: dict[Any, Any], source: str, path: str) -> None:
        self._values = {str(key): value for key, value in values.items()}
        self._source = source
        self._path = path
        self.problems: list[Problem] = []

    def read(self) -> FrontMatter:
        languages = self._words("languages") + self._words("language")
        return FrontMatter(
            id=self._id(),
            title=self._text("title"),
            summary=self._text("summary"),
            tags=self._words("tags"),
            aliases=self._words("aliases"),
            languages=tuple(dict.fromkeys(word.casefold() for word in languages)),
            task_types=tuple(word.casefold() for word in self._words("task_types")),
            applies_to=self._globs(),
            priority=self._priority(),
            order=self._order(),
            status=self._status(),
            superseded_by=self._text("superseded_by"),
            type=self._choice("type", TYPES),
            last_updated=self._day("last_updated") or day_in(self._text_of_others("lastmod")),
            owner=", ".join(self._words("owner")),
            source=self._own_text("source"),
            review_by=self._day("review_by"),
            extra=MappingProxyType(self._values),
        )

    def _id(self) -> str:
        """A short name in one word; what other tools keep under this key is theirs."""
        value = self._values.get("id")
        text = str(value) if is_number(value) else value
        is_name = isinstance(text, str) and len(text) <= MAX_ID and len(text.split()) == 1
        if is_name and is_number(value):
            self._values["id"] = text
        return self._own_text("id") if is_name else ""

    def _own_text(self, key: str) -> str:
        """A text under a key that other tools use too; what is no text is theirs."""
        if not isinstance(self._values.get(key), str):
            return ""
        return " ".join(self._values.pop(key).split())

    def _text(self, key: str) -> str:
        value = self._values.pop(key, None)
        text = self._checked(key, _TEXT, str(value) if is_number(value) else value)
        return " ".join((text or "").split())

    def _day(self, key: str) -> str:
        """The day of a date, whatever time follows it."""
        text = self._text(key)
        day = day_in(text)
        if text and not day:
            self._reject(key, text, _DAY)
        return day

    def _words(self, key: str) -> tuple[str, ...]:
        value = self._values.pop(key, None)
        if isinstance(value, str):
            value = value.split(",")
        elif is_number(value):
            value = [value]
        if isinstance(value, list):
            value = [str(part) if isinstance(part, (int, float)) else part for part in value]
        given = self._checked(key, _WORDS, value) or ()
        words = (" ".join(word.split()) for word in given[:MAX_LIST])
        return tuple(dict.fromkeys(word for word in words if word))

    def _globs(self) -> tuple[str, ...]:
        """The scope, under the names that several tools give it."""
        globs: list[str] = []
        everywhere = self._values.get("alwaysApply") is True or (
            self._values.get("inclusion") in ("always", "manual", "auto")
        )
        for key in SCOPE_KEYS:
            value = self._values.pop(key, None)
            found = split_globs(value) if isinstance(value, str) else value
            if everywhere and key != SCOPE_KEYS[0]:
                continue  # the host gives the page to whoever works on anything
            if isinstance(found, list) and all(isinstance(one, str) for one in found):
                globs += (glob for one in found for glob in split_globs(one))
            elif value is not None and key == SCOPE_KEYS[0]:
                self._reject(key, value, "a list of globs")
        return tuple(dict.fromkeys(globs))[:MAX_LIST]

    def _priority(self) -> int:
        value = self._values.pop("priority", None)
        if isinstance(value, str) and value.casefold() in PRIORITIES:
            return PRIORITIES[value.casefold()]
        expected = f"one of {', '.join(PRIORITIES)} or -100 to 100"
        return self._checked("priority", _PRIORITY, value, expected) or 0

    def _order(self) -> float | None:
        order: float | None = self._checked("order", _ORDER, self._values.pop("order", None))
        if order is None:
            others = (self._values.get(key) for key in ORDER_KEYS)
            order = next((value for value in others if is_number(value)), None)
        return order

    def _status(self) -> str:
        status = self._choice("status", STATUSES)
        return status or ("draft" if self._values.get("draft") is True else "published")

    def _text_of_others(self, key: str) -> str:
        """The text under a key of another tool, which may hold anything else as well."""
        value = self._values.get(key)
        return " ".join(value.split()) if isinstance(value, str) else ""

    def _choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self._values.pop(key, None)
        if isinstance(value, str):
            word = "_".join(value.replace("-", " ").casefold().split())
            value = word if word in choices else value
        return self._checked(key, Values("string", choices=choices), value) or ""

    def _checked(self, key: str, values: Values, value: object, expected: str = "") -> Any:
        """The value; None when there is none, or a wrong one, which is noted."""
        if value is None:
            return None
        try:
            return values.checked(value)
        except WrongValue:
            self._reject(key, value, expected or values.expected)
            return None

    def _reject(self, key: str, value: object, expected: str) -> None:
        shown = repr(value) if len(repr(value)) <= 40 else type(value).__name__
        message = f"front matter: {key}: expected {expected}, found {shown}; ignored"
        self.problems.append(Problem(self._path, "front-matter", message, self._line(key)))

    def _line(self, key: str) -> int:
        match = re.search(rf"(?<![^\r\n])[\"']?{re.escape(key)}[\"']?\s*[:=]", self._source)
        if not match:
            return 1
        return len(re.findall(r"\r\n?|\n", self._source[: match.start()])) + 2
