from dataclasses import dataclass, field
from typing import Any

import pytest

from sage.errors import did_you_mean
from sage.settings_schema import (
    Setting,
    TextLists,
    Tree,
    assembled,
    declare,
    declared_in,
)
from sage.values import Values


@dataclass(frozen=True)
class Inner:
    depth: int = declare(3, "How deep.", minimum=1, maximum=9)


@dataclass(frozen=True)
class Outer:
    place: str
    colour: str = declare("red", "Which colour.", choices=("red", "blue"))
    words: TextLists = declare({"a": ("b",)}, "Words.")
    inner: Inner = field(default_factory=Inner)


def setting(kind: str, **bounds: Any) -> Setting:
    return Setting("group.key", None, "", Values(kind, **bounds))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("boolean", True, True),
        ("integer", 3, 3),
        ("number", 3, 3.0),
        ("string", "x", "x"),
        ("array", ["a", "b"], ("a", "b")),
        ("lists", {"a": "b", "c": ["d", "e"]}, {"a": ("b",), "c": ("d", "e")}),
        ("object", {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_right_value_comes_back_in_its_final_type(
    kind: str, value: object, expected: object
) -> None:
    checked = setting(kind).values.checked(value)
    assert checked == expected
    assert type(checked) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", 1),
        ("integer", True),
        ("integer", 1.5),
        ("integer", "1"),
        ("number", True),
        ("number", None),
        ("string", 1),
        ("array", "a"),
        ("array", ["a", 1]),
        ("lists", {"a": 1}),
        ("lists", {1: "a"}),
        ("lists", ["a"]),
        ("object", []),
    ],
)
def test_value_of_another_type_is_refused_with_what_was_found(kind: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"expected .* found"):
        setting(kind).values.checked(value)


def test_value_out_of_bounds_is_refused_with_the_bounds() -> None:
    bounded = setting("integer", minimum=1, maximum=10_000)
    assert bounded.values.checked(1) == 1
    assert bounded.values.checked(10_000) == 10_000
    for wrong in (0, 10_001):
        with pytest.raises(ValueError, match="a whole number from 1 to 10,000"):
            bounded.values.checked(wrong)


def test_not_a_number_is_out_of_every_bound() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        setting("number", minimum=0, maximum=1).parsed("nan")


def test_choice_is_refused_with_all_choices() -> None:
    colour = next(iter(declared_in(Outer)))
    with pytest.raises(ValueError, match="expected one of red, blue, found 'green'"):
        colour.values.checked("green")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "1", True),
        ("boolean", "true", True),
        ("boolean", "Yes", True),
        ("boolean", "0", False),
        ("boolean", "False", False),
        ("boolean", "no", False),
        ("integer", "12", 12),
        ("number", "1.5", 1.5),
        ("string", "a, b", "a, b"),
        ("array", " a , b,,c ", ("a", "b", "c")),
    ],
)
def test_text_of_a_variable_is_parsed(kind: str, text: str, value: object) -> None:
    assert setting(kind).parsed(text) == value


@pytest.mark.parametrize("kind", ["boolean", "integer", "number"])
def test_text_that_cannot_be_parsed_is_shown(kind: str) -> None:
    with pytest.raises(ValueError, match="found 'maybe'"):
        setting(kind).parsed("maybe")


def test_long_value_is_shown_shortened() -> None:
    with pytest.raises(ValueError) as caught:
        setting("integer").values.checked("x" * 500)
    assert str(caught.value).endswith("xxx...")
    assert len(str(caught.value)) < 100


def test_variable_is_named_after_the_key_and_missing_for_mappings() -> None:
    assert setting("integer").variable == "SAGE_GROUP_KEY"
    assert setting("lists").variable == ""
    assert setting("object").variable == ""


def test_declared_settings_carry_dotted_keys_and_defaults() -> None:
    declared = {one.key: (one.values.kind, one.default) for one in declared_in(Outer)}
    assert declared == {
        "colour": ("string", "red"),
        "words": ("lists", {"a": ("b",)}),
        "inner.depth": ("integer", 3),
    }


def test_instance_is_assembled_from_dotted_keys_and_defaults() -> None:
    made = assembled(Outer, {"place": "here", "inner.depth": 5})
    assert made == Outer("here", "red", {"a": ("b",)}, Inner(5))


def test_default_mapping_is_not_shared() -> None:
    assert Outer("x").words is not Outer("x").words


def test_nearest_word_is_suggested_only_when_close() -> None:
    assert did_you_mean("colur", ["colour", "inner"]) == "; did you mean colour?"
    assert did_you_mean("zzz", ["colour", "inner"]) == ""


def test_every_kind_of_a_field_can_be_declared() -> None:
    @dataclass
    class Every:
        tree: Tree = declare({}, "")

    assert [one.values.kind for one in declared_in(Every)] == ["object"]
