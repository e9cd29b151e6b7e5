"""Recipes: the built-in ones, and what `sage.yaml` changes."""

from typing import Any

import pytest

from sage.context.recipes import BUILT_IN, Recipe, load_recipes, recipes_for_layers, task_types
from sage.errors import ConfigError
from tests.conftest import Base


def recipe(base: Base, yaml: str, name: str = "debugging") -> Recipe:
    base.write({"sage.yaml": yaml})
    return load_recipes(base.settings())[name]


def built_in(name: str) -> Recipe:
    return next(one for one in BUILT_IN if one.name == name)


def test_five_task_types_need_no_settings(base: Base) -> None:
    assert task_types(base.settings()) == (
        "coding",
        "debugging",
        "reviewing",
        "planning",
        "documenting",
    )


def test_a_change_leaves_the_rest_of_a_recipe_alone(base: Base) -> None:
    changed = recipe(base, "recipes: {debugging: {layers: {practices: 80}, words: [pager]}}")
    before = built_in("debugging")
    assert changed.layers == {**before.layers, "practices": 80.0}
    assert changed.words == (*before.words, "pager")
    assert (changed.kinds, changed.types) == (before.kinds, before.types)


def test_a_new_task_type_starts_even_or_from_another(base: Base) -> None:
    base.write(
        {
            "sage.yaml": "recipes:\n"
            "  onboarding: {always: core/principles, kinds: [principles]}\n"
            "  triage: {based_on: debugging, language: 0}\n"
        }
    )
    recipes = load_recipes(base.settings())
    assert list(recipes)[-2:] == ["onboarding", "triage"]
    assert recipes["onboarding"].layers == {"other": 1.0}
    assert recipes["onboarding"].kinds == {"principles": 1.0}
    assert recipes["onboarding"].always == ("core/principles",)
    assert recipes["triage"].words == built_in("debugging").words
    assert recipes["triage"].language == 0


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("{debugging: 3}", "recipes.debugging: expected a mapping with some of based_on, layers"),
        ("{debugging: {layer: {}}}", "recipes.debugging.layer: not a part of a recipe; did you"),
        (
            "{debugging: {layers: {croe: 1}}}",
            "recipes.debugging.layers: 'croe' is unknown; did you",
        ),
        ("{debugging: {layers: {core: x}}}", "recipes.debugging.layers.core: expected a number"),
        ("{debugging: {layers: {core: 101}}}", "from 0 to 100, found 101"),
        ("{debugging: {layers: 5}}", "layers: expected a mapping from core, guidelines"),
        ("{debugging: {kinds: {rules: 1}}}", "kinds: 'rules' is unknown (allowed: principles,"),
        ("{debugging: {types: [bug]}}", "types: 'bug' is unknown; did you mean bug_fix?"),
        ("{debugging: {words: {a: b}}}", "words: expected a list of text, found {'a': 'b'}"),
        ("{debugging: {always: ['']}}", "always: expected a list of text"),
        ("{debugging: {language: 2}}", "language: expected a number from 0 to 1, found 2"),
        ("{debugging: {language: true}}", "language: expected a number from 0 to 1, found True"),
        ("{triage: {based_on: debuging}}", "triage.based_on: 'debuging' is not a task type; did"),
        ("{triage: {layers: {other: 0}}}", "triage.layers: at least one layer needs a share"),
        ("{'a b': {}}", "recipes.a b: a task type is a word of letters"),
    ],
)
def test_a_wrong_recipe_is_refused_with_what_is_right(base: Base, yaml: str, message: str) -> None:
    base.write({"sage.yaml": f"recipes: {yaml}"})
    with pytest.raises(ConfigError) as refused:
        load_recipes(base.settings())
    assert str(refused.value).startswith("sage.yaml: recipes.")
    assert message in str(refused.value)


def test_a_recipe_may_name_the_layers_of_the_team(base: Base) -> None:
    changed = recipe(
        base, "layers: [core, runbooks]\nrecipes: {debugging: {layers: {runbooks: 60}}}"
    )
    assert changed.layers["runbooks"] == 60


@pytest.mark.parametrize(
    ("layers", "narrowed"),
    [
        ({"core": 1, "practices": 3}, {"core": 1}),
        (["core", "practices"], ["core"]),
        ({"core": 0, "practices": 3}, None),
        ({"practices": 3}, None),
        ({"other": 2, "practices": 3}, {"other": 2}),
    ],
)
def test_a_recipe_names_layers_that_some_tokens_do_not_see(layers: Any, narrowed: Any) -> None:
    recipes = {"onboarding": {"layers": layers, "words": ["welcome"]}}
    changes = recipes_for_layers(recipes, ("core",))["onboarding"]
    assert isinstance(changes, dict)
    assert changes.get("layers") == narrowed
    assert changes["words"] == ["welcome"]
