"""The schema of an answer is read from its type."""

from typing import Literal, NotRequired, TypedDict

from sage.outputs import answer_schema


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
