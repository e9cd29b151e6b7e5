"""The JSON schema of an answer, read from its type, so that neither can drift from the other.

Every host carries the schemas in each conversation: two levels are described, and what lies
deeper is only named by its kind.
"""

import types
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

DEPTH = 2

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", types.NoneType: "null"}


def answer_schema(answer: type) -> dict[str, Any]:
    """The schema of a TypedDict."""
    schema = _object_schema(answer, DEPTH)
    hints = get_type_hints(answer)
    required: frozenset[str] = getattr(answer, "__required_keys__", frozenset())
    return schema | {"required": [name for name in hints if name in required]}


def _schema(kind: Any, depth: int) -> dict[str, Any]:
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return _schema(parts[0], depth)
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
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
    properties = {name: _schema(hint, depth - 1) for name, hint in hints.items()}
    return {"type": "object", "properties": properties}
