"""Declared settings: a dataclass field with its words and bounds, and the check of one value.

What the settings are and where their values come from is the business of `settings`.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

TextLists = Mapping[str, tuple[str, ...]]
Tree = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted key, what it means and which values it takes."""

    key: str
    kind: str
    default: object
    doc: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that overrides it; empty for kinds no variable can hold."""
        if self.kind not in _PARSERS:
            return ""
        return "SAGE_" + self.key.replace(".", "_").upper()

    @property
    def expected(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.minimum is not None and self.maximum is not None:
            return f"{_ARTICLES[self.kind]} from {self.minimum:,} to {self.maximum:,}"
        return _ARTICLES[self.kind]

    def checked(self, value: object) -> object:
        """The value in its final type.

        Raises:
            ValueError: with the allowed values, when it is not one of them.
        """
        if not _CHECKS[self.kind](value) or not self._within_bounds(value):
            close = nearest(str(value), self.choices)
            raise ValueError(f"expected {self.expected}, found {_shown(value)}{close}")
        return _FINISH[self.kind](value) if self.kind in _FINISH else value

    def parsed(self, text: str) -> object:
        """The value that the text of an environment variable or a flag stands for."""
        try:
            value = _PARSERS[self.kind](text)
        except ValueError:
            value = text
        return self.checked(value)

    def _within_bounds(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )


def declare(
    default: object,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that is a setting."""
    metadata = {"doc": doc, "minimum": minimum, "maximum": maximum, "choices": choices}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared_in(cls: type, prefix: str = "") -> Iterator[Setting]:
    """The settings of a dataclass, those of its groups with dotted keys."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            yield from declared_in(hint, f"{prefix}{field.name}.")
        elif "doc" in field.metadata:
            yield Setting(f"{prefix}{field.name}", _KINDS[hint], _default(field), **field.metadata)


def assembled(cls: type, values: Mapping[str, object], prefix: str = "") -> Any:
    """An instance of a dataclass of settings from values under dotted keys."""
    hints = get_type_hints(cls)
    arguments: dict[str, object] = {}
    for field in dataclasses.fields(cls):
        hint, key = hints[field.name], f"{prefix}{field.name}"
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            arguments[field.name] = assembled(hint, values, f"{key}.")
        elif key in values:
            arguments[field.name] = values[key]
    return cls(**arguments)


def nearest(word: str, known: Iterable[str]) -> str:
    """A question that names the closest known word; empty when none is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _is_text_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)


def _is_text_lists(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and (isinstance(part, str) or _is_text_list(part))
        for key, part in value.items()
    )


def _finish_text_lists(value: Any) -> TextLists:
    return {key: (part,) if isinstance(part, str) else tuple(part) for key, part in value.items()}


def _parse_boolean(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _parse_list(text: str) -> list[str]:
    return [part for part in re.split(r"\s*,\s*", text.strip()) if part]


_KINDS: dict[object, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    tuple[str, ...]: "list",
    TextLists: "lists",
    Tree: "tree",
}
_ARTICLES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
    "list": "a list of text",
    "lists": "a mapping from a word to a list of words",
    "tree": "a mapping",
}
_CHECKS: dict[str, Callable[[object], bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "list": _is_text_list,
    "lists": _is_text_lists,
    "tree": lambda value: isinstance(value, dict),
}
_FINISH: dict[str, Any] = {"number": float, "list": tuple, "lists": _finish_text_lists}
_PARSERS: dict[str, Any] = {
    "boolean": _parse_boolean,
    "integer": int,
    "number": float,
    "text": str,
    "list": _parse_list,
}
