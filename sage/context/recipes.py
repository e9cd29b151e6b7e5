"""Recipes: what each task type asks for, as data, and the changes to them in `sage.yaml`.

How a recipe is weighed against a document is the business of `scoring`.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sage.context.section_kinds import KINDS
from sage.documents.front_matter import TYPES
from sage.errors import ConfigError, did_you_mean
from sage.paths import CONFIG_FILE
from sage.settings import Settings
from sage.settings_schema import Tree
from sage.values import Values, WrongValue, shown

OTHER_LAYERS = "other"
"""The share of all layers that a recipe does not name."""
_WEIGHT = Values("number", 0, 100)
_SHARE = Values("number", 0, 1)

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a task type is given."""

    name: str
    layers: Weights
    """How the budget is divided; only the proportion counts, and a layer with 0 stays out."""
    kinds: Weights
    """How much a kind of section is wanted, 1 being the most."""
    types: Weights
    """How much a `type` in front matter is wanted."""
    words: tuple[str, ...]
    """What it is about: words of titles, headings, tags and names."""
    language: float
    """How much pages for the asked language are preferred, 1 being the most."""
    always: tuple[str, ...] = ()
    """Topics that belong in every context of this type."""


def load_recipes(settings: Settings) -> Mapping[str, Recipe]:
    """The recipe of every task type: the built-in ones, changed and joined by the settings'.

    Raises:
        ConfigError: a recipe in `sage.yaml` is wrong; the message names the key and what is right.
    """
    recipes = {recipe.name: recipe for recipe in BUILT_IN}
    for name, changes in settings.recipes.items():
        where = f"{CONFIG_FILE}: recipes.{name}"
        _check_name(name, where)
        if not isinstance(changes, dict):
            raise ConfigError(
                f"{where}: expected a mapping with some of {', '.join(_KEYS)}; "
                f"found {shown(changes)}"
            )
        base = _base(name, changes.get("based_on"), recipes, where)
        recipes[name] = _changed(base, name, changes, settings.layers, where)
    return MappingProxyType(recipes)


def recipes_for_layers(recipes: Tree, layers: Collection[str]) -> dict[str, object]:
    """The changes to recipes as they are for some of the layers only.

    What names another layer goes: it is right in `sage.yaml`, and not served here.
    """
    return {name: _for_layers(changes, layers) for name, changes in recipes.items()}


def _for_layers(changes: object, layers: Collection[str]) -> object:
    if not isinstance(changes, dict) or not isinstance(changes.get("layers"), (dict, list)):
        return changes
    known = {*layers, OTHER_LAYERS}
    shares = changes["layers"]
    rest = {key: value for key, value in changes.items() if key != "layers"}
    if isinstance(shares, list):
        kept: object = [layer for layer in shares if layer in known]
    else:
        kept = {layer: share for layer, share in shares.items() if layer in known}
        kept = kept if any(kept.values()) else None
    return {**rest, "layers": kept} if kept else rest


def task_types(settings: Settings) -> tuple[str, ...]:
    """The task types that a context can be asked for, the built-in ones first."""
    return tuple(load_recipes(settings))


def _weights(words: str) -> Weights:
    """`core 20, practices 30` as weights."""
    pairs = (part.split() for part in words.split(","))
    return MappingProxyType({name: float(weight) for name, weight in pairs})


BUILT_IN = (
    Recipe(
        "coding",
        layers=_weights("core 20, guidelines 35, frameworks 15, practices 30, other 30"),
        kinds=_weights(
            "guidelines 1, patterns 0.9, pitfalls 0.8, principles 0.6, testing 0.5, "
            "checklists 0.5, design 0.3, templates 0.3, background 0"
        ),
        types=_weights("gotcha 1, guide 0.6, trade_off 0.4, reference 0.4"),
        language=1,
        words=(
            "coding", "code", "代码", "编码", "style", "convention", "naming", "language",
            "engineering", "error handling", "testing", "quality", "security",
            "api",
        ),
    ),
    Recipe(
        "debugging",
        layers=_weights("core 12, guidelines 20, frameworks 28, practices 40, other 40"),
        kinds=_weights(
            "diagnosis 1, pitfalls 0.9, checklists 0.5, patterns 0.3, guidelines 0.3, "
            "testing 0.2, principles 0.3, background 0"
        ),
        types=_weights("gotcha 1, bug_fix 1, discovery 0.8, guide 0.3"),
        language=0.5,
        words=(
            "debug", "troubleshoot", "diagnos", "root cause", "调试", "排查", "故障", "bisect",
            "reproduce", "incident", "outage", "error", "exception", "failure", "known issues",
            "logging", "日志", "tracing", "profiling", "flaky", "leak", "crash", "recovery",
            "runbook", "faq", "observability", "monitoring", "performance", "timeout", "on-call",
        ),
    ),
    Recipe(
        "reviewing",
        layers=_weights("core 20, guidelines 40, frameworks 15, practices 25, other 25"),
        kinds=_weights(
            "review 1, checklists 1, pitfalls 0.7, guidelines 0.7, principles 0.5, testing 0.4, "
            "design 0.2, background 0"
        ),
        types=_weights("gotcha 0.8, guide 0.6, reference 0.5, trade_off 0.3"),
        language=0.8,
        words=(
            "review", "评审", "审查", "pull request", "merge request", "checklist",
            "definition of done", "quality", "质量", "feedback", "anti-pattern", "security",
            "testing", "standard", "convention", "style",
        ),
    ),
    Recipe(
        "planning",
        layers=_weights("core 18, guidelines 16, frameworks 40, practices 26, other 26"),
        kinds=_weights(
            "plans 1, decisions 1, principles 0.6, design 0.5, checklists 0.4, guidelines 0.3, "
            "pitfalls 0.3, background 0"
        ),
        types=_weights("decision 1, trade_off 1, plan 0.8, guide 0.5"),
        language=0.2,
        words=(
            "planning", "plan", "计划", "规划", "estimation", "estimate", "roadmap", "scope",
            "slicing", "milestone", "decision", "决策", "architecture", "架构", "adr", "rfc",
            "proposal", "trade-off", "risk", "threat model", "prioriti",
            "rollout", "migration", "design", "设计",
        ),
    ),
    Recipe(
        "documenting",
        layers=_weights("core 12, guidelines 33, frameworks 15, practices 40, other 40"),
        kinds=_weights(
            "writing 1, templates 0.8, guidelines 0.5, checklists 0.4, patterns 0.4, "
            "pitfalls 0.3, principles 0.4, background 0"
        ),
        types=_weights("guide 0.6, reference 0.5, decision 0.2"),
        language=0.2,
        words=(
            "documentation", "document", "docs", "文档", "writing", "写作", "readme", "docstring",
            "comments", "注释", "changelog", "release notes", "diagram", "markdown", "template",
            "commit message", "style guide", "tutorial", "adr", "postmortem", "runbook",
        ),
    ),
)  # fmt: skip


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(
            f"{where}: a task type is a word of letters, digits, - and _, found {name!r}"
        )


def _base(name: str, based_on: object, recipes: Mapping[str, Recipe], where: str) -> Recipe:
    """The recipe that the changes start from: its own, the one it names, or an even one."""
    if based_on is None:
        return recipes.get(name, Recipe(name, {OTHER_LAYERS: 1.0}, {}, {}, (), 0.5))
    if not isinstance(based_on, str) or based_on not in recipes:
        raise ConfigError(
            f"{where}.based_on: {based_on!r} is not a task type"
            f"{did_you_mean(str(based_on), recipes)} (allowed: {', '.join(recipes)})"
        )
    return recipes[based_on]


def _changed(
    base: Recipe, name: str, changes: dict[Any, Any], layers: tuple[str, ...], where: str
) -> Recipe:
    values: dict[str, Any] = {"name": name}
    for key, value in changes.items():
        place = f"{where}.{key}"
        if key not in _KEYS:
            raise ConfigError(
                f"{place}: not a part of a recipe{did_you_mean(str(key), _KEYS)} "
                f"(allowed: {', '.join(_KEYS)})"
            )
        if key in ("words", "always"):
            added = getattr(base, key) + _checked_words(value, place)
            values[key] = tuple(dict.fromkeys(added))
        elif key == "language":
            values[key] = _checked(_SHARE, value, place)
        elif key != "based_on":
            allowed = {"layers": (*layers, OTHER_LAYERS), "kinds": tuple(KINDS), "types": TYPES}
            changed = _checked_weights(value, allowed[key], place)
            values[key] = MappingProxyType({**getattr(base, key), **changed})
    recipe = dataclasses.replace(base, **values)
    if not any(recipe.layers.values()):
        raise ConfigError(f"{where}.layers: at least one layer needs a share above 0")
    return recipe


_KEYS = ("based_on", "layers", "kinds", "types", "words", "language", "always")


def _checked_words(value: object, place: str) -> tuple[str, ...]:
    words = _checked(Values("array"), [value] if isinstance(value, str) else value, place)
    stripped = tuple(map(str.strip, words))
    if not all(stripped):
        raise ConfigError(f"{place}: expected a list of text, found an empty one in it")
    return stripped


def _checked_weights(value: object, allowed: tuple[str, ...], place: str) -> Weights:
    if isinstance(value, list):
        # A list names the wanted ones, all alike.
        value = dict.fromkeys((word if isinstance(word, str) else repr(word) for word in value), 1)
    if not isinstance(value, dict):
        expected = f"a mapping from {', '.join(allowed)} to numbers"
        raise ConfigError(f"{place}: {WrongValue(expected, shown(value))}")
    return MappingProxyType(
        {
            _name(key, allowed, place): _checked(_WEIGHT, part, f"{place}.{key}")
            for key, part in value.items()
        }
    )


def _checked(values: Values, value: object, place: str) -> Any:
    try:
        return values.checked(value)
    except WrongValue as error:
        raise ConfigError(f"{place}: {error}") from error


def _name(key: object, allowed: tuple[str, ...], place: str) -> str:
    if isinstance(key, str) and key in allowed:
        return key
    raise ConfigError(
        f"{place}: {key!r} is unknown{did_you_mean(str(key), allowed)} "
        f"(allowed: {', '.join(allowed)})"
    )
