"""What values are right: the bounds of what a call may ask for, and one check of one value.

The bounds and defaults are the same for tools and commands. The check is the same wherever a value
was written: a setting, a tool's argument, a recipe, a page.

A kind with its bounds says which values are right, in words too. What becomes of a wrong one
(an error, a problem of a page) and how a caller's text is read first is up to whoever asks. Of a
tool's arguments nothing is coerced: the text "3" is not the number 3, and a null stands for an
argument left out.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sage.errors import InvalidInput, NotFound, did_you_mean

ALL_LAYERS = "all"
OWN = "own"
"""The name of the repository among the sources."""

MAX_TOKENS = 1_000_000
DEFAULT_MAX_TOKENS = 8_000
MAX_TOPIC = 500
DEFAULT_TIMEOUT_MS = 2_000

MAX_RESULTS = 50
DEFAULT_RESULTS = 10
MIN_ANSWER = 100
MAX_ANSWER = 100_000
DEFAULT_ANSWER = 1_000
"""Tokens of the whole answer of a search."""

RELEVANCE = "relevance"
DATE = "date"
SEARCH_ORDERS = (RELEVANCE, DATE, "path")
MAX_OFFSET = 1_000_000
MAX_FILTERS = 50
"""Types or tags of one search."""

DEFAULT_PAGES = 50
MAX_PAGES = 10_000

MAX_BUDGET = 200_000
DEFAULT_BUDGET = 4_000
DEFAULT_LANGUAGE = "python"
MAX_LANGUAGE = 50
MAX_TASK = 20_000
MAX_CURRENT_FILES = 500


PUBLISHED = "published"


def state_of(status: str, superseded_by: str) -> str:
    """The status of a page; one that names its successor is superseded whatever else it says."""
    return "superseded" if superseded_by and status == PUBLISHED else status


def check_range(name: str, value: int, most: int, least: int = 1) -> None:
    """Refuse what is not between the least and the most.

    Raises:
        InvalidInput: with both bounds.
    """
    if not least <= value <= most:
        raise InvalidInput(f"{name} is {value}; use a whole number from {least} to {most:,}")


def one_of(name: str, value: str, known: Collection[str]) -> str:
    """One of some known words, however it is written.

    Raises:
        InvalidInput: with the words, and the nearest of them.
    """
    wanted = as_known(value)
    if wanted not in known:
        close = did_you_mean(wanted, known)
        raise InvalidInput(f"{name}: there is no {value[:60]!r}; use {', '.join(known)}{close}")
    return wanted


def as_known(value: str) -> str:
    """A word as it is known: `Bug fix` is `bug_fix`."""
    return re.sub(r"[-\s]+", "_", value.strip().casefold())


def checked_topic(topic: str | None) -> str | None:
    """The topic without blanks around it; None when it names nothing.

    Raises:
        InvalidInput: it is too long to be one.
    """
    if topic is None or not topic.strip():
        return None
    if len(topic) > MAX_TOPIC:
        raise InvalidInput(f"topic has {len(topic)} characters, at most {MAX_TOPIC} are allowed")
    return topic.strip()


def layers_meant(layer: str, layers: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the layers that a `layer` argument means.

    Raises:
        InvalidInput: there is no such layer.
    """
    if layer == ALL_LAYERS:
        return layers
    if layer in layers:
        return (layer,)
    known = (*layers, ALL_LAYERS)
    close = did_you_mean(layer, known)
    raise InvalidInput(f"there is no layer {layer!r}; use one of {', '.join(known)}{close}")


def source_meant(name: str | None, names: Sequence[str]) -> str | None:
    """That of the sources that a `source` argument means; None for all.

    Raises:
        InvalidInput: there is no such source.
        NotFound: there is none at all.
    """
    if not name or name in names:
        return name or None
    if not names:
        raise NotFound(
            f"there is no source {name[:60]!r}, nor any other that this token may see; "
            "ask whoever made it for another one"
        )
    close = did_you_mean(name, names)
    raise InvalidInput(f"there is no source {name[:60]!r}; use one of {', '.join(names)}{close}")


_MAX_SHOWN = 60


class WrongValue(ValueError):
    """A value is not one of the allowed ones; the message says which are."""

    def __init__(self, expected: str, found: str, close: str = "") -> None:
        super().__init__(f"expected {expected}, found {found}{close}")


@dataclass(frozen=True, slots=True)
class Values:
    """The values that are allowed in one place."""

    kind: str
    """A type of JSON, or `lists`: a mapping from a word to a list of words."""
    minimum: float | None = None
    maximum: float | None = None
    """Of a number the largest value, of text its characters, of anything else its parts."""
    choices: tuple[str, ...] = ()
    max_text: int | None = None
    """Characters of each text in a list or a mapping."""

    @property
    def expected(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = _WORDS[self.kind]
        if self.kind in _NUMBERS:
            return words + self._range
        if self.maximum is None:
            return words
        each = f", each of up to {self.max_text:,} characters" if self.max_text else ""
        if self.kind == "array":
            return f"a list of at most {self.maximum:,} texts{each}"
        return f"{words} of at most {self.maximum:,} {_UNITS[self.kind]}{each}"

    @property
    def _range(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum:,} to {self.maximum:,}"
        return "" if self.minimum is None else f" of at least {self.minimum:,}"

    def allows(self, value: object) -> bool:
        """Whether a value has the right type and lies within the bounds."""
        if self.choices:
            return isinstance(value, str) and value in self.choices
        return _CHECKS[self.kind](value) and self._within_bounds(value)

    def _within_bounds(self, value: Any) -> bool:
        size = value if self.kind in _NUMBERS or self.kind == "boolean" else _size(value)
        if self.max_text is not None and any(len(text) > self.max_text for text in _texts(value)):
            return False
        return (self.minimum is None or size >= self.minimum) and (
            self.maximum is None or size <= self.maximum
        )

    def checked(self, value: object) -> Any:
        """The value in its final type.

        Raises:
            WrongValue: it is not one of the allowed ones.
        """
        if not self.allows(value):
            close = did_you_mean(value.casefold(), self.choices) if isinstance(value, str) else ""
            raise WrongValue(self.expected, shown(value), close)
        return _FINISH[self.kind](value) if self.kind in _FINISH else value


def shown(value: object) -> str:
    """A value as a writer knows it, cut to what fits in one line of an answer."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def is_number(value: object) -> bool:
    """Whether a value is a number; true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _size(value: Any) -> int:
    """Characters of a text, parts of a list, all keys and parts of a mapping."""
    if isinstance(value, dict):
        return len(value) + sum(_size(part) for part in value.values() if not _is_plain(part))
    return len(value)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a list or a mapping, keys included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def _is_plain(value: object) -> bool:
    return not isinstance(value, (list, tuple, dict))


def _is_text_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)


def _is_text_lists(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and (isinstance(part, str) or _is_text_list(part))
        for key, part in value.items()
    )


def _finish_text_lists(value: Any) -> dict[str, tuple[str, ...]]:
    return {key: (part,) if isinstance(part, str) else tuple(part) for key, part in value.items()}


_NUMBERS = ("integer", "number")
_WORDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list of text",
    "lists": "a mapping from a word to a list of words",
    "object": "a mapping",
}
_UNITS = {"string": "characters", "lists": "words", "object": "parts"}
_CHECKS: dict[str, Callable[[object], bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": _is_text_list,
    "lists": _is_text_lists,
    "object": lambda value: isinstance(value, dict),
}
_FINISH: dict[str, Any] = {"number": float, "array": tuple, "lists": _finish_text_lists}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool; without a default it is required, None means optional."""

    name: str
    kind: str
    doc: str
    default: Any = ...
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    max_length: int | None = None

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is ...

    @property
    def values(self) -> Values:
        most = self.maximum if self.max_length is None else self.max_length
        return Values(self.kind, self.minimum, most, self.choices)

    def checked(self, value: Any) -> Any:
        """The value in its final type.

        Raises:
            InvalidInput: it is not one of the allowed values.
        """
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not self.values.allows(value):
            close = did_you_mean(value.casefold(), self.choices) if isinstance(value, str) else ""
            expected = self.values.expected
            raise InvalidInput(f"{self.name} must be {expected}, not {as_json(value)}{close}")
        return self.values.checked(value)


def check_arguments(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument with its value, defaults filled in.

    Raises:
        InvalidInput: an argument is unknown, missing or not one of its allowed values.
    """
    known = [argument.name for argument in arguments]
    for name in given:
        if name not in known:
            raise InvalidInput(_unknown(name, known))
    return {argument.name: _value(argument, given.get(argument.name)) for argument in arguments}


def as_json(value: Any) -> str:
    """A value as a caller of a tool wrote it, cut to what fits in one line of an answer."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _value(argument: Argument, value: Any) -> Any:
    if value is not None:
        return argument.checked(value)
    if argument.required:
        raise InvalidInput(f"{argument.name} is missing; it must be {argument.values.expected}")
    return argument.default


def _unknown(name: str, known: Sequence[str]) -> str:
    takes = "it takes " + ", ".join(known) if known else "the call takes no arguments"
    return f"there is no argument {as_json(name)}{did_you_mean(name[:_MAX_SHOWN], known)} ({takes})"
