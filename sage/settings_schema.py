"""Declared settings: a dataclass field with its words and the values it takes.

What the settings are and where their values come from is the business of `settings`.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from sage.values import Values

TextLists = Mapping[str, tuple[str, ...]]
Tree = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted key, what it means and which values it takes."""

    key: str
    default: object
    doc: str
    values: Values
    is_operators: bool = False
    """Whether only whoever runs the server decides it, never a file of the repository."""

    @property
    def variable(self) -> str:
        """The environment variable that overrides it; empty for kinds no variable can hold."""
        if self.values.kind not in _PARSERS:
            return ""
        return "SAGE_" + self.key.replace(".", "_").upper()

    def parsed(self, text: str) -> object:
        """The value that the text of an environment variable or a flag stands for.

        Raises:
            ValueError: with the allowed values, when it is not one of them.
        """
        try:
            value = _PARSERS[self.values.kind](text)
        except ValueError:
            value = text
        return self.values.checked(value)


def declare(
    default: object,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    max_text: int | None = None,
    operator: bool = False,
) -> Any:
    """A dataclass field that is a setting; the operator's own cannot stand in a repository."""
    metadata = {
        "doc": doc,
        "operator": operator,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "max_text": max_text,
    }
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
            given = dict(field.metadata)
            doc, operator = given.pop("doc"), given.pop("operator")
            values = Values(_KINDS[hint], **given)
            yield Setting(f"{prefix}{field.name}", _default(field), doc, values, operator)


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


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _parse_boolean(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _parse_list(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(",")) if part]


_KINDS: dict[object, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    tuple[str, ...]: "array",
    TextLists: "lists",
    Tree: "object",
}
_PARSERS: dict[str, Any] = {
    "boolean": _parse_boolean,
    "integer": int,
    "number": float,
    "string": str,
    "array": _parse_list,
}
