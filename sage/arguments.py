"""What a tool takes: one declaration gives the schema that a client sees and the check of a call.

Nothing is coerced: the text "3" is not the number 3. A null stands for an argument left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sage.errors import InvalidInput
from sage.schema import nearest

_MAX_SHOWN = 60


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
    def expected(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind == "integer":
            return f"a whole number {self._range}"
        if self.kind == "array":
            return f"a list of at most {self.maximum} texts"
        return f"text of at most {self.max_length} characters" if self.max_length else "text"

    @property
    def _range(self) -> str:
        if self.maximum is None:
            return f"of at least {self.minimum}"
        return f"from {self.minimum} to {self.maximum}"

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        schema: dict[str, Any] = {"type": self.kind, "description": self.doc}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not ... and self.default is not None:
            schema["default"] = self.default
        if self.kind == "array":
            schema["items"] = {"type": "string"}
            schema["maxItems"] = self.maximum
        else:
            bounds = {"minimum": self.minimum, "maximum": self.maximum}
            bounds["maxLength"] = self.max_length
            schema |= {key: bound for key, bound in bounds.items() if bound is not None}
        return schema

    def checked(self, value: Any) -> Any:
        """The value in its final type.

        Raises:
            InvalidInput: it is not one of the allowed values.
        """
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not self._allows(value):
            close = nearest(value.casefold(), self.choices) if isinstance(value, str) else ""
            raise InvalidInput(f"{self.name} must be {self.expected}, not {shown(value)}{close}")
        return tuple(value) if self.kind == "array" else value

    def _allows(self, value: Any) -> bool:
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.kind == "integer":
            return isinstance(value, int) and not isinstance(value, bool) and self._within(value)
        if self.kind == "array":
            return (
                isinstance(value, list)
                and self._within(len(value))
                and all(isinstance(part, str) for part in value)
            )
        return isinstance(value, str) and (not self.max_length or len(value) <= self.max_length)

    def _within(self, number: int) -> bool:
        return (self.minimum is None or number >= self.minimum) and (
            self.maximum is None or number <= self.maximum
        )


def input_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: argument.schema() for argument in arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required]
    return schema | {"required": required} if required else schema


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


def shown(value: Any) -> str:
    """The value as a caller wrote it, cut to what fits in one line of an answer."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _value(argument: Argument, value: Any) -> Any:
    if value is not None:
        return argument.checked(value)
    if argument.required:
        raise InvalidInput(f"{argument.name} is missing; it must be {argument.expected}")
    return argument.default


def _unknown(name: str, known: Sequence[str]) -> str:
    takes = "it takes " + ", ".join(known) if known else "the call takes no arguments"
    return f"there is no argument {shown(name)}{nearest(name[:_MAX_SHOWN], known)} ({takes})"
