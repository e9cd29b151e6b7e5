"""PyYAML's home: loads YAML, and TOML, that anybody may have written, within fixed bounds.

Values keep what a writer sees: dates and times stay text, only true and false are booleans.
"""

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from sage.errors import ConfigError

MAX_BYTES = 16 * 1024
MAX_DEPTH = 20
MAX_CONFIG_BYTES = 64 * 1024
_TOML_LINE = re.compile(r"at line (\d+)")

# libyaml is several times faster; the pure loader is the same class elsewhere.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """The text is not YAML, or TOML, that we accept; `line` is 1-based, 0 when unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def load_yaml(text: str, max_bytes: int = MAX_BYTES) -> object:
    """The value of one YAML document; None for an empty one.

    Raises:
        YamlError: syntax, size, depth, an alias, a duplicate key or a value out of range.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise YamlError(f"{size} bytes of YAML, at most {max_bytes} are read")
    try:
        _refuse_bombs(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        raise YamlError(_sentence(error), _line(error, text)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(f"not valid YAML: {str(error).splitlines()[0]}") from error


def value_places(text: str) -> list[tuple[str, int, int]]:
    """The keys of a mapping with the place of each value: where it begins and ends in the text.

    Nothing is built, so that anchors and values of any kind do no harm.

    Raises:
        YamlError: syntax, size, or not a mapping.
    """
    if len(text) > MAX_BYTES:
        raise YamlError(f"more than {MAX_BYTES} characters of YAML")
    places: list[tuple[str, int, int]] = []
    try:
        depth, key, start = 0, None, 0
        for event in yaml.parse(text, Loader=_Base):
            opens = isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth == 0 and isinstance(event, (yaml.ScalarEvent, yaml.SequenceStartEvent)):
                raise YamlError("not `key: value`")
            is_node = opens or isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent))
            if depth == 1 and is_node and key is None:
                key = str(getattr(event, "value", ""))
                start = -1
            elif depth == 1 and key is not None:
                start = event.start_mark.index if start < 0 else start
                if not opens:
                    places.append((key, start, event.end_mark.index))
                    key = None
            depth += opens
    except yaml.MarkedYAMLError as error:
        raise YamlError(_sentence(error), _line(error, text)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise error if isinstance(error, YamlError) else YamlError("not valid YAML") from error
    return places


def _refuse_bombs(text: str) -> None:
    """Look at the events before anything is built.

    The C loader overflows its stack on deep nesting (a crash, not an exception), and a few
    levels of aliases expand to gigabytes when the value is serialised.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("anchors and aliases are not allowed", line)
        if getattr(event, "tag", None):
            raise YamlError("tags such as !!set are not allowed", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlError(f"nested deeper than {MAX_DEPTH}", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Loader(_Base):  # type: ignore[misc]  # the base is chosen at run time
    """The safe loader with plain scalars and without duplicate keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - filled below, as PyYAML does

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[object, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError("a key must be text", key_node.start_mark.line + 1)
            if key_node.value in seen:
                line = key_node.start_mark.line + 1
                raise YamlError(f"the key {key_node.value!r} appears twice", line)
            seen.add(key_node.value)
        return dict(super().construct_mapping(node, deep=deep))


# YAML 1.1 reads 12:30 as 750, no as False and 2024-01-31 as a date: none is what a writer meant.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]{0,17})$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?$"),
    list("-+0123456789."),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)


def _sentence(error: yaml.MarkedYAMLError) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return "not valid YAML: " + ", ".join(parts)


def _line(error: yaml.MarkedYAMLError, text: str) -> int:
    """The line to look at: what is missing at the end is marked on the line after the last."""
    mark = error.problem_mark or error.context_mark
    return min(mark.line + 1, len(text.splitlines())) if mark else 0


def load_toml(text: str) -> dict[str, object]:
    """The table of one TOML document; dates and times stay text, as in YAML.

    Raises:
        YamlError: syntax, size or depth.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise YamlError(f"{size} bytes of TOML, at most {MAX_BYTES} are read")
    try:
        table = tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if not isinstance(error, RecursionError) else "too deep"
        line = _TOML_LINE.search(reason)
        raise YamlError(f"not valid TOML: {reason}", int(line[1]) if line else 0) from error
    return {key: _plain_toml(value, 1) for key, value in table.items()}


def _plain_toml(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise YamlError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {key: _plain_toml(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain_toml(inner, depth + 1) for inner in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return value


def load_tree(path: Path, name: str) -> dict[str, Any]:
    """The mapping in a file of settings, with words for what is wrong in it.

    Args:
        name: what the file is called in messages.

    Raises:
        ConfigError: it cannot be read, is not YAML, or is no mapping.
    """
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
