"""The settings of one knowledge base: what they are, and where their values come from.

Flags win over the environment, the environment over `sage.yaml`, the file over defaults.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sage.bounds import ALL_LAYERS
from sage.errors import ConfigError, InvalidInput
from sage.places import KNOWLEDGE_DIR, find_cache_dir, find_root, here, located
from sage.schema import (
    Setting,
    TextLists,
    Tree,
    assembled,
    declare,
    declared_in,
    nearest,
)
from sage.yamltext import YamlError, load_yaml

CONFIG_FILE = "sage.yaml"
LOG_LEVELS = ("debug", "info", "warning", "error")
FAIL_LEVELS = ("note", "warning", "error", "never")
MAX_CONFIG_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How long loaded documents and answers are trusted."""

    ttl_seconds: float = declare(
        300.0,
        "Longest time a loaded document is trusted before it is read again. An edit is seen at "
        "once whatever this says; the limit covers file systems that hide changes.",
        minimum=0,
        maximum=86_400,
    )
    max_documents: int = declare(
        50_000, "Most documents kept in memory.", minimum=1, maximum=1_000_000
    )
    max_answers: int = declare(256, "Most answers kept in memory.", minimum=1, maximum=100_000)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What one file and one call may cost."""

    max_file_bytes: int = declare(
        1_000_000,
        "A larger markdown file is left out and reported.",
        minimum=1_000,
        maximum=10_000_000,
    )
    max_files: int = declare(
        200_000, "Most files looked at in one layer.", minimum=1, maximum=10_000_000
    )
    call_timeout_ms: int = declare(
        30_000, "Longest time any tool call may take.", minimum=100, maximum=600_000
    )


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What `sage check` finds too large or too old, and what it lets pass."""

    stale_months: int = declare(
        12, "A page older than this is reported; 0 for none.", minimum=0, maximum=1_200
    )
    max_page_tokens: int = declare(
        8_000, "A larger page is reported.", minimum=1, maximum=1_000_000
    )
    max_section_tokens: int = declare(
        1_500, "A larger section is reported.", minimum=1, maximum=1_000_000
    )
    fail_on: str = declare(
        "error", "The level that fails a check, with those above it.", choices=FAIL_LEVELS
    )
    ignore: tuple[str, ...] = declare((), "Rules that are not applied to any page.")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, checked, for one root."""

    root: Path
    cache_dir: Path
    config_path: Path | None = None
    found_by: str = ""
    layers: tuple[str, ...] = declare(
        ("core", "guidelines", "frameworks", "practices"),
        "The folders of `.knowledge` that are served, in the order in which they are read.",
    )
    ignore: tuple[str, ...] = declare(
        (),
        "Patterns of files to leave out, as in `.gitignore`, relative to `.knowledge`. One may "
        "hold three stars beside those that stand for a whole folder.",
    )
    encoding: str = declare(
        "cl100k_base",
        "The tokenizer that counts. Only `cl100k_base` comes with the package; the vocabulary of "
        "another must lie in `TIKTOKEN_CACHE_DIR`.",
        choices=("cl100k_base", "o200k_base", "p50k_base", "r50k_base"),
    )
    log_level: str = declare("warning", "What is logged to stderr.", choices=LOG_LEVELS)
    synonyms: TextLists = declare(
        {}, "Words that mean the same in this team: each key is searched with its list."
    )
    recipes: Tree = declare(
        {}, "Changes to what each task type is given as context; see the context guide."
    )
    cache: CacheSettings = field(default_factory=CacheSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    check: CheckSettings = field(default_factory=CheckSettings)

    @property
    def knowledge_dir(self) -> Path:
        """The folder that holds the layers."""
        return self.root / KNOWLEDGE_DIR

    @property
    def has_folder(self) -> bool:
        """Whether that folder can be seen now."""
        try:
            return self.knowledge_dir.is_dir()
        except OSError:
            return False


def declared_settings() -> list[Setting]:
    """Every setting, for the reference page."""
    return list(declared_in(Settings))


def load_settings(
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    working_dir: Path | None = None,
) -> Settings:
    """The settings in force.

    Args:
        flags: values from the command line under dotted keys; `root` and `config` are paths.

    Raises:
        ConfigError: no root, an unreadable file, an unknown key or a wrong value.
        InvalidInput: a flag has a wrong value.
    """
    environment = dict(os.environ) if environment is None else environment
    try:
        return _found_settings(flags or {}, environment, working_dir or here())
    except OSError as error:
        reason = f"{error.filename} cannot be looked at: {error.strerror}"
        raise ConfigError(reason) from error


def _found_settings(
    flags: Mapping[str, object], environment: Mapping[str, str], working_dir: Path
) -> Settings:
    root, found_by = find_root(flags.get("root"), environment, working_dir)
    config = _config_path(root, flags, environment)
    values = _file_values(config, root) if config else {}
    values |= _environment_values(environment)
    values |= _flag_values(flags)
    values |= {
        "root": root,
        "cache_dir": find_cache_dir(environment),
        "config_path": config,
        "found_by": found_by,
    }
    settings: Settings = assembled(Settings, values)
    named_by_variable = environment.get("SAGE_LAYERS")
    _check_layers(settings.layers, "SAGE_LAYERS" if named_by_variable else f"{CONFIG_FILE}: layers")
    return settings


def _config_path(
    root: Path, flags: Mapping[str, object], environment: Mapping[str, str]
) -> Path | None:
    given = flags.get("config") or environment.get("SAGE_CONFIG")
    if given:
        path = located(given, here())
        if not path.is_file():
            source = "--config" if flags.get("config") else "SAGE_CONFIG"
            raise ConfigError(f"{source} names {given}, which is not a file")
        return path
    path = root / KNOWLEDGE_DIR / CONFIG_FILE
    if not path.is_file():
        return None
    # What is wrong in it is told with its own words: it must not be a file of somebody else's.
    if not path.resolve().is_relative_to(root):
        name = f"{KNOWLEDGE_DIR}/{CONFIG_FILE}"
        raise ConfigError(f"{name} is a symbolic link that leaves the repository; copy the file")
    return path


def _file_values(path: Path, root: Path) -> dict[str, object]:
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    tree = _load_tree(path, name)
    known = {setting.key: setting for setting in declared_settings()}
    groups = {key.split(".")[0] for key in known if "." in key}
    values: dict[str, object] = {}
    for key, value in _flattened(tree, groups, name):
        if key not in known:
            raise ConfigError(_unknown_key(name, key, list(known)))
        values[key] = _checked(known[key], value, f"{name}: {key}")
    return values


def _load_tree(path: Path, name: str) -> dict[str, Any]:
    try:
        tree = load_yaml(_read_bounded(path).decode("utf-8-sig"), MAX_CONFIG_BYTES)
    except YamlError as error:
        place = f"{name}:{error.line}" if error.line else name
        raise ConfigError(f"{place}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{name}: cannot be read: {reason}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{name}: expected a mapping of settings, found {type(tree).__name__}")
    return tree


def _read_bounded(path: Path) -> bytes:
    """What a file holds, if it is not too much for settings."""
    with path.open("rb") as file:
        data = file.read(MAX_CONFIG_BYTES + 1)
    if len(data) > MAX_CONFIG_BYTES:
        raise YamlError(f"more than {MAX_CONFIG_BYTES} bytes of YAML")
    return data


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
        f"{name}: {key} is not a setting{nearest(key, known)} "
        f"(allowed: {', '.join(sorted(allowed))})"
    )


def _environment_values(environment: Mapping[str, str]) -> dict[str, object]:
    return {
        setting.key: _parsed(setting, environment[setting.variable], setting.variable)
        for setting in declared_settings()
        if setting.variable and environment.get(setting.variable)
    }


def _flag_values(flags: Mapping[str, object]) -> dict[str, object]:
    known = {setting.key: setting for setting in declared_settings()}
    given = {key: value for key, value in flags.items() if value is not None}
    try:
        return {
            key: _checked(known[key], value, f"--{key.split('.')[-1].replace('_', '-')}")
            for key, value in given.items()
            if key not in ("root", "config")
        }
    except ConfigError as error:
        raise InvalidInput(str(error)) from error


def _checked(setting: Setting, value: object, where: str) -> object:
    try:
        return setting.checked(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _parsed(setting: Setting, text: str, where: str) -> object:
    try:
        return setting.parsed(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _check_layers(layers: tuple[str, ...], where: str) -> None:
    if not layers:
        raise ConfigError(f"{where}: name at least one folder of {KNOWLEDGE_DIR}")
    for name in layers:
        if not name.replace("-", "").replace("_", "").isalnum() or name.casefold() == ALL_LAYERS:
            raise ConfigError(
                f"{where}: {name!r} cannot be a layer; a layer is the name of one folder, of "
                f"letters, digits, - and _, and not {ALL_LAYERS!r}"
            )
    if len({name.casefold() for name in layers}) < len(layers):
        raise ConfigError(f"{where}: a layer stands twice")
