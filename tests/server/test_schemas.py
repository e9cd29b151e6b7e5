"""The schema of an answer is read from its type."""

from typing import Literal, NotRequired, TypedDict

from sage.server.schemas import answer_schema, input_schema
from tests.test_values import ALL, LIMIT


class Deepest(TypedDict):
    never: str


class Inner(TypedDict):
    count: int
    below: Deepest
    several: list[Deepest]


class Outer(TypedDict):
    text: str
    share: float
    flag: bool
    state: Literal["good", "bad"]
    maybe: int | None
    words: list[str]
    inner: Inner
    rows: list[Inner]
    note: NotRequired[str]


INNER = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "below": {"type": "object"},
        "several": {"type": "array"},
    },
}


def test_two_levels_are_described_and_the_rest_named_by_its_kind() -> None:
    assert answer_schema(Outer) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "state": {"type": "string", "enum": ["good", "bad"]},
            "maybe": {"type": ["integer", "null"]},
            "words": {"type": "array", "items": {"type": "string"}},
            "inner": INNER,
            "rows": {"type": "array", "items": INNER},
            "note": {"type": "string"},
        },
        "required": ["text", "share", "flag", "state", "maybe", "words", "inner", "rows"],
    }


def test_the_schema_shows_types_bounds_choices_and_defaults() -> None:
    schema = input_schema(ALL)
    assert schema["required"] == ["layer"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "layer": {
            "type": "string",
            "description": "A layer.",
            "enum": ["core", "practices", "all"],
        },
        "limit": {
            "type": "integer",
            "description": "A number.",
            "default": 10,
            "minimum": 1,
            "maximum": 50,
        },
        "wait": {"type": "integer", "description": "A time.", "default": 5, "minimum": 1},
        "topic": {"type": "string", "description": "A name.", "maxLength": 5},
        "query": {"type": "string", "description": "Any text."},
        "files": {
            "type": "array",
            "description": "Paths.",
            "items": {"type": "string"},
            "maxItems": 2,
        },
    }


def test_a_tool_without_required_arguments_requires_none() -> None:
    assert "required" not in input_schema((LIMIT,))
