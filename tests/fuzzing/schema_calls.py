"""Calls made up from the schemas of live tools: valid, at the bounds, and wrong in one way."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**30,
    "",
    "3",
    "nothing of the kind",
    "x" * 3_000,
    "\0\x1b[31m\u202e\U000e0041",
    "../../etc/passwd",
    [],
    [None],
    ["a", 1],
    {},
    {"a": {"b": []}},
)
TEXTS = (
    "testing",
    "how do we test?",
    "errors in go",
    "日本語 🎉",
    '"open -x (((( OR *',
    "practices/testing#fixtures",
    "\u202e\u200b",
    "a" * 600,
)


Arguments = dict[str, Any]


class Call(NamedTuple):
    """A call of a tool."""

    tool: str
    arguments: Arguments


def calls(tools: list[dict[str, Any]], seed: int, count: int) -> Iterator[Call]:
    """As many calls as wanted, the same for the same seed."""
    chance = random.Random(seed)
    while True:
        for tool in tools:
            for make in (_valid, _valid, _bounds, _wrong, _missing, _extra):
                if count <= 0:
                    return
                count -= 1
                yield Call(tool["name"], make(tool["inputSchema"], chance))


def _valid(schema: Mapping[str, Any], chance: random.Random) -> Arguments:
    required = schema.get("required", ())
    return {
        key: _value(one, chance)
        for key, one in schema["properties"].items()
        if key in required or chance.random() < 0.5
    }


def _bounds(schema: Mapping[str, Any], chance: random.Random) -> Arguments:
    """One number at its bound, or one beyond it."""
    arguments = _valid(schema, chance)
    numbers = [key for key, one in schema["properties"].items() if "minimum" in one]
    if numbers:
        key = chance.choice(numbers)
        least, most = (
            schema["properties"][key].get(name, 5_000) for name in ("minimum", "maximum")
        )
        arguments[key] = chance.choice((least, most, least - 1, most + 1))
    return arguments


def _wrong(schema: Mapping[str, Any], chance: random.Random) -> Arguments:
    """One argument of any type at all; it may even be right."""
    arguments = _valid(schema, chance)
    if schema["properties"]:
        arguments[chance.choice(sorted(schema["properties"]))] = chance.choice(JUNK)
    return arguments


def _missing(schema: Mapping[str, Any], chance: random.Random) -> Arguments:
    arguments = _valid(schema, chance)
    if schema.get("required"):
        del arguments[chance.choice(sorted(schema["required"]))]
    return arguments


def _extra(schema: Mapping[str, Any], chance: random.Random) -> Arguments:
    return {**_valid(schema, chance), chance.choice(("x", "path", "__class__")): 1}


def _value(schema: Mapping[str, Any], chance: random.Random) -> Any:
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if schema["type"] == "integer":
        return chance.choice((schema.get("default", 100), chance.randrange(1, 50)))
    if schema["type"] == "array":
        return [_value(schema["items"], chance) for _ in range(chance.randrange(4))]
    return chance.choice(TEXTS)[: schema.get("maxLength", 10_000)]
