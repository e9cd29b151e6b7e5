"""What a call gives is checked against the declarations of its arguments; nothing is coerced."""

from typing import Any

import pytest

from sage.errors import InvalidInput
from sage.values import Argument, as_json, check_arguments

LAYER = Argument("layer", "string", "A layer.", choices=("core", "practices", "all"))
LIMIT = Argument("limit", "integer", "A number.", default=10, minimum=1, maximum=50)
WAIT = Argument("wait", "integer", "A time.", default=5, minimum=1)
TOPIC = Argument("topic", "string", "A name.", default=None, max_length=5)
QUERY = Argument("query", "string", "Any text.", default=None)
FILES = Argument("files", "array", "Paths.", default=None, maximum=2)
ALL = (LAYER, LIMIT, WAIT, TOPIC, QUERY, FILES)


def test_left_out_arguments_get_their_defaults() -> None:
    assert check_arguments(ALL, {"layer": "core"}) == {
        "layer": "core",
        "limit": 10,
        "wait": 5,
        "topic": None,
        "query": None,
        "files": None,
    }


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("limit", 50, 50),
        ("limit", 3.0, 3),
        ("limit", None, 10),
        ("wait", 10**9, 10**9),
        ("topic", "tests", "tests"),
        ("query", "x" * 100_000, "x" * 100_000),
        ("files", ["a.py", "b.py"], ("a.py", "b.py")),
    ],
)
def test_allowed_values_are_taken(name: str, value: Any, taken: Any) -> None:
    assert check_arguments(ALL, {"layer": "all", name: value})[name] == taken


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("limit", "3", 'limit must be a whole number from 1 to 50, not "3"'),
        ("limit", True, "limit must be a whole number from 1 to 50, not true"),
        ("limit", 0, "limit must be a whole number from 1 to 50, not 0"),
        ("limit", 2.5, "limit must be a whole number from 1 to 50, not 2.5"),
        ("wait", 0, "wait must be a whole number of at least 1, not 0"),
        ("layer", 7, "layer must be one of core, practices, all, not 7"),
        (
            "layer",
            "Practice",
            'layer must be one of core, practices, all, not "Practice"; did you mean practices?',
        ),
        ("topic", "longer", 'topic must be text of at most 5 characters, not "longer"'),
        ("query", ["a"], 'query must be text, not ["a"]'),
        ("files", "a.py", 'files must be a list of at most 2 texts, not "a.py"'),
        ("files", ["a", 1], 'files must be a list of at most 2 texts, not ["a", 1]'),
        ("files", ["a", "b", "c"], "files must be a list of at most 2 texts, not"),
    ],
)
def test_a_wrong_value_is_refused_with_the_right_ones(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_arguments(ALL, {"layer": "core", name: value})
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("given", [{}, {"layer": None}])
def test_a_missing_argument_is_named_with_its_values(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="layer is missing; it must be one of core, practices"):
        check_arguments(ALL, given)


def test_an_unknown_argument_is_refused_with_the_nearest_and_all() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_arguments((LAYER, LIMIT), {"layer": "core", "limt": 3})
    assert str(refused.value) == (
        'there is no argument "limt"; did you mean limit? (it takes layer, limit)'
    )


def test_a_tool_without_arguments_says_so() -> None:
    with pytest.raises(InvalidInput, match="the call takes no arguments"):
        check_arguments((), {"x": 1})


def test_a_long_value_is_shown_in_part() -> None:
    assert as_json("x" * 1000) == '"' + "x" * 58 + "…"
