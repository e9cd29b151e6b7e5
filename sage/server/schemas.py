"""What a tool takes and what it answers, as JSON schemas that cannot drift from the code.

One declaration of an argument gives the schema that a client sees and the check of a call. Nothing
is coerced: the text "3" is not the number 3. A null stands for an argument left out. The schema of
an answer is read from its type.
"""

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

from sage.errors import InvalidInput, did_you_mean
from sage.values import Values

# Every host carries the schemas in each conversation: two levels of an answer are described, and
# what lies deeper, or is there only sometimes, is only named by its kind.
DEPTH = 2

_MAX_SHOWN = 60
_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", types.NoneType: "null"}


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
        if not self.values.allows(value):
            close = did_you_mean(value.casefold(), self.choices) if isinstance(value, str) else ""
            expected = self.values.expected
            raise InvalidInput(f"{self.name} must be {expected}, not {shown(value)}{close}")
        return self.values.checked(value)


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
        raise InvalidInput(f"{argument.name} is missing; it must be {argument.values.expected}")
    return argument.default


def _unknown(name: str, known: Sequence[str]) -> str:
    takes = "it takes " + ", ".join(known) if known else "the call takes no arguments"
    return f"there is no argument {shown(name)}{did_you_mean(name[:_MAX_SHOWN], known)} ({takes})"


def answer_schema(answer: type, depth: int = DEPTH) -> dict[str, Any]:
    """The schema of a TypedDict, so many levels of it."""
    schema = _object_schema(answer, depth)
    hints = get_type_hints(answer)
    required: frozenset[str] = getattr(answer, "__required_keys__", frozenset())
    return schema | {"required": [name for name in hints if name in required]}


def _schema(kind: Any, depth: int) -> dict[str, Any]:
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return _schema(parts[0], 0)
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if origin is list and not depth:
        return {"type": "array"}
    if origin is list:
        items = _schema(parts[0], depth)
        return (
            {"type": "array", "items": items} if items != {"type": "object"} else {"type": "array"}
        )
    if origin is types.UnionType:
        return {"type": [_SCALARS[part] for part in parts]}
    return _object_schema(kind, depth)


def _object_schema(kind: Any, depth: int) -> dict[str, Any]:
    if not depth:
        return {"type": "object"}
    hints = get_type_hints(kind, include_extras=True)
    if depth < DEPTH:
        # What an inner object holds only sometimes is described in words, where it matters.
        hints = {name: hint for name, hint in hints.items() if get_origin(hint) is not NotRequired}
    properties = {name: _schema(hint, depth - 1) for name, hint in hints.items()}
    return {"type": "object", "properties": properties}
