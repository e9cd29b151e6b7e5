"""What a tool takes and what it answers, as JSON schemas that cannot drift from the code.

The schema of an argument is read from the declaration by which calls are checked, that of an answer
from its type.
"""

import types
from collections.abc import Sequence
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

from sage.values import Argument

# Every host carries the schemas in each conversation: two levels of an answer are described, and
# what lies deeper, or is there only sometimes, is only named by its kind.
DEPTH = 2

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", types.NoneType: "null"}


def input_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: _argument_schema(argument) for argument in arguments},
        "additionalProperties": False,
    }
    required = [argument.name for argument in arguments if argument.required]
    return schema | {"required": required} if required else schema


def _argument_schema(argument: Argument) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": argument.kind, "description": argument.doc}
    if argument.choices:
        schema["enum"] = list(argument.choices)
    if argument.default is not ... and argument.default is not None:
        schema["default"] = argument.default
    if argument.kind == "array":
        schema["items"] = {"type": "string"}
        schema["maxItems"] = argument.maximum
    else:
        bounds = {"minimum": argument.minimum, "maximum": argument.maximum}
        bounds["maxLength"] = argument.max_length
        schema |= {key: bound for key, bound in bounds.items() if bound is not None}
    return schema


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
