"""Declared settings: a dataclass field with its words and the values it takes, and the values that
files, the environment and the command line give to it, checked.

What the settings are, and which of these wins, is the business of `settings`.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from sage.errors import ConfigError, InvalidInput, did_you_mean
from sage.paths import CONFIG_FILE, find_user_config
from sage.safe_yaml import load_tree
from sage.sources import checked_places
from sage.values import Values

TextLists = Mapping[str, tuple[str, ...]]
Tree = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted key, what it means and which values it takes."""

    key: str
    default: object
    doc: str
    values: Values
    is_operators: bool = False
    """Whether only whoever runs the server decides it, never a file of the repository."""

    @property
    def variable(self) -> str:
        """The environment variable that overrides it; empty for kinds no variable can hold."""
        if self.values.kind not in _PARSERS:
            return ""
        return "SAGE_" + self.key.replace(".", "_").upper()

    def parsed(self, text: str) -> object:
        """The value that the text of an environment variable or a flag stands for.

        Raises:
            ValueError: with the allowed values, when it is not one of them.
        """
        try:
            value = _PARSERS[self.values.kind](text)
        except ValueError:
            value = text
        return self.values.checked(value)


def declare(
    default: object,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    max_text: int | None = None,
    operator: bool = False,
) -> Any:
    """A dataclass field that is a setting; the operator's own cannot stand in a repository."""
    metadata = {
        "doc": doc,
        "operator": operator,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "max_text": max_text,
    }
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared_in(cls: type, prefix: str = "") -> Iterator[Setting]:
    """The settings of a dataclass, those of its groups with dotted keys."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            yield from declared_in(hint, f"{prefix}{field.name}.")
        elif "doc" in field.metadata:
            given = dict(field.metadata)
            doc, operator = given.pop("doc"), given.pop("operator")
            values = Values(_KINDS[hint], **given)
            yield Setting(f"{prefix}{field.name}", _default(field), doc, values, operator)


def assembled(cls: type, values: Mapping[str, object], prefix: str = "") -> Any:
    """An instance of a dataclass of settings from values under dotted keys."""
    hints = get_type_hints(cls)
    arguments: dict[str, object] = {}
    for field in dataclasses.fields(cls):
        hint, key = hints[field.name], f"{prefix}{field.name}"
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            arguments[field.name] = assembled(hint, values, f"{key}.")
        elif key in values:
            arguments[field.name] = values[key]
    return cls(**arguments)


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _parse_boolean(text: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _parse_list(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(",")) if part]


_KINDS: dict[object, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    tuple[str, ...]: "array",
    TextLists: "lists",
    Tree: "object",
}
_PARSERS: dict[str, Any] = {
    "boolean": _parse_boolean,
    "integer": int,
    "number": float,
    "string": str,
    "array": _parse_list,
}


_MAX_SYNONYMS = 20


def file_values(
    path: Path, root: Path, settings: Sequence[Setting], is_operators: bool
) -> dict[str, object]:
    """What a file of settings says.

    Args:
        is_operators: whether it is a file of whoever runs SAGE, who may decide everything.

    Raises:
        ConfigError: it cannot be read, names an unknown key, or gives a wrong value.
    """
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    tree = load_tree(path, name)
    known = {setting.key: setting for setting in settings}
    groups = {key.split(".")[0] for key in known if "." in key}
    values: dict[str, object] = {}
    for key, value in _flattened(tree, groups, name):
        if key == "layers" and isinstance(value, dict):
            places = checked_places(value, f"{name}: {key}")
            values["layer_paths"] = {layer: given for layer, given in places.items() if given}
            value = list(places)
        if key not in known:
            raise ConfigError(_unknown_key(name, key, list(known)))
        values[key] = _checked(known[key], value, f"{name}: {key}")
        if not is_operators:
            _refuse_operators(known[key], value, name)
    return values


def flag_sources(flags: Mapping[str, object]) -> list[str]:
    """The sources that the command line names."""
    given = flags.get("sources")
    return [str(one) for one in given] if isinstance(given, list) else []


def check_groups(synonyms: TextLists) -> None:
    """Refuse large groups of synonyms.

    Each word of a group is searched with each other: that grows with the square of its size.

    Raises:
        ConfigError: a group has too many words.
    """
    for word, others in synonyms.items():
        if len(others) > _MAX_SYNONYMS:
            raise ConfigError(
                f"{CONFIG_FILE}: synonyms.{word[:40]}: {len(others)} words, at most "
                f"{_MAX_SYNONYMS} are allowed"
            )


def _refuse_operators(setting: Setting, value: object, name: str) -> None:
    """Refuse what a repository says although it is not for it to say."""
    if setting.is_operators:
        raise ConfigError(
            f"{name}: {setting.key} is for whoever runs SAGE to decide, not for a repository; "
            f"remove it there and set {setting.variable}, or put it into {find_user_config({})}"
        )
    if setting.key == "check.fail_on" and value == "never":
        raise ConfigError(f"{name}: check.fail_on: a repository cannot set never; use a flag")
    if setting.key == "search.model" and not str(value).isalnum():
        raise ConfigError(
            f"{name}: search.model: a repository can name a model, not a path; set "
            f"{setting.variable}, or put it into {find_user_config({})}"
        )
    if setting.key.endswith("_url") and not str(value).startswith(("https://", "http://", "/")):
        raise ConfigError(f"{name}: {setting.key}: expected an address with https://, or a path")


def _flattened(tree: dict[str, Any], groups: set[str], name: str) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in tree.items():
        if key not in groups:
            pairs.append((str(key), value))
        elif value is not None and not isinstance(value, dict):
            raise ConfigError(f"{name}: {key}: expected a mapping, found {value!r}")
        else:
            pairs += [(f"{key}.{inner}", part) for inner, part in (value or {}).items()]
    return pairs


def _unknown_key(name: str, key: str, known: list[str]) -> str:
    key = key if key.isprintable() else repr(key)
    group, dot, _ = key.rpartition(".")
    allowed = [other for other in known if other.startswith(group + dot)]
    return (
        f"{name}: {key} is not a setting{did_you_mean(key, known)} "
        f"(allowed: {', '.join(sorted(allowed))})"
    )


def environment_values(
    environment: Mapping[str, str], settings: Sequence[Setting]
) -> dict[str, object]:
    """What the variables of the environment say.

    Raises:
        ConfigError: one gives a wrong value.
    """
    return {
        setting.key: _parsed(setting, environment[setting.variable], setting.variable)
        for setting in settings
        if setting.variable and environment.get(setting.variable)
    }


def flag_values(flags: Mapping[str, object], settings: Sequence[Setting]) -> dict[str, object]:
    """What the command line says.

    Raises:
        InvalidInput: an option has a wrong value.
    """
    known = {setting.key: setting for setting in settings}
    given = {key: value for key, value in flags.items() if value is not None}
    try:
        return {
            key: _checked(known[key], value, f"--{key.split('.')[-1].replace('_', '-')}")
            for key, value in given.items()
            if key not in ("root", "config", "sources")
        }
    except ConfigError as error:
        raise InvalidInput(str(error)) from error


def _checked(setting: Setting, value: object, where: str) -> object:
    try:
        return setting.values.checked(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _parsed(setting: Setting, text: str, where: str) -> object:
    try:
        return setting.parsed(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
