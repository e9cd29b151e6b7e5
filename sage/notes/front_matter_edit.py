"""Keys of a page's front matter set to new values, every other byte as it was.

YAML between `---`, TOML between `+++`, or none yet. What cannot be edited with certainty is
refused, and the page stays.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

from sage.documents.front_matter import split_front_matter
from sage.errors import ConfigError
from sage.safe_yaml import YamlError, load_yaml, value_places

_BOM = "\ufeff"
_TOML = re.compile(
    r"\+\+\+[ \t]*(?:\r\n|\n)(?P<body>(?s:.*?))(?P<end>^\+\+\+[ \t]*(?:\r?\n|\Z))", re.M
)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_/][\w./ +-]*")
_WORDS_OF_YAML = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


class _FrontMatterBlock(NamedTuple):
    """The lines of a front matter without its fences, and where they stand."""

    start: int
    end: int


def set_keys(data: bytes, values: Mapping[str, str]) -> bytes:
    """The bytes of a page with these keys in its front matter; an empty value takes one out.

    Raises:
        ConfigError: the front matter cannot be edited without touching more.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("the page is not UTF-8; change it by hand") from error
    head = len(text) - len(text.lstrip(_BOM))
    after = text[:head] + _edited(text[head:], values)
    return after.encode("utf-8")


def rendered(value: str) -> str:
    """A text as YAML that is read as that text again."""
    plain = _PLAIN.fullmatch(value) and value.casefold() not in _WORDS_OF_YAML
    if plain and value == value.strip() and " #" not in value:
        return value
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\x7f")


def _edited(text: str, values: Mapping[str, str]) -> str:
    toml = _TOML.match(text)
    if toml:
        return _toml_edited(text, _FrontMatterBlock(toml.start("body"), toml.end("body")), values)
    block = _yaml_block(text)
    newline = "\r\n" if "\r\n" in text[:4_096] else "\n"
    if block is None:
        lines = [f"{key}: {rendered(value)}" for key, value in values.items() if value]
        return newline.join(["---", *lines, "---", "", ""]) + text if lines else text
    return _yaml_edited(text, block, values, newline)


def _yaml_block(text: str) -> _FrontMatterBlock | None:
    split = split_front_matter(text, "")
    if not split.body_start:
        return None
    opening = re.match(r"---[ \t]*(?:\r\n?|\n)", text)
    closing = re.search(r"(?:---|\.\.\.)[ \t]*(?:\r\n?|\n)?\Z", text[: split.body_start])
    if opening is None or closing is None:
        return None
    return _FrontMatterBlock(opening.end(), max(opening.end(), closing.start()))


def _yaml_edited(
    text: str, block: _FrontMatterBlock, values: Mapping[str, str], newline: str
) -> str:
    source = text[block.start : block.end]
    for key, value in values.items():
        source = _yaml_set(source, key, value, newline)
    _prove_yaml(text[block.start : block.end], source, values)
    return text[: block.start] + source + text[block.end :]


def _yaml_set(source: str, key: str, value: str, newline: str) -> str:
    places = [place for place in _places(source) if place[0] == key]
    if len(places) > 1:
        raise ConfigError(f"front matter: {key} appears twice; fix it first")
    if not places:
        if not value:
            return source
        end = "" if not source or source.endswith(("\n", "\r")) else newline
        return f"{source}{end}{key}: {rendered(value)}{newline}"
    _, start, stop = places[0]
    held = source[start:stop].rstrip()
    stop = start + len(held)
    if held[:1] in ("&", "*"):
        raise ConfigError(f"front matter: {key} is an anchor or an alias; change it by hand")
    if not value:
        return _without_line(source, start, stop)
    blank = " " if source[start - 1 : start] == ":" else ""
    return source[:start] + blank + rendered(value) + source[stop:]


def _without_line(source: str, start: int, stop: int) -> str:
    begin = max(source.rfind("\n", 0, start), source.rfind("\r", 0, start)) + 1
    end = re.compile(r"[^\r\n]*(?:\r\n?|\n)?").match(source, stop)
    return source[:begin] + source[end.end() if end else stop :]


def _places(source: str) -> list[tuple[str, int, int]]:
    if not source.strip() or all(
        not line.strip() or line.lstrip().startswith("#") for line in source.splitlines()
    ):
        return []
    try:
        return value_places(source)
    except YamlError as error:
        raise ConfigError(f"front matter: {error}; fix it first") from error


def _prove_yaml(before: str, after: str, values: Mapping[str, str]) -> None:
    """Every other key has the very same text, and each of ours is read as it was meant."""
    try:
        old, new = _texts(before, values), _texts(after, values)
        read = {key: _read_back(after, key) for key in values}
    except (YamlError, ConfigError) as error:
        raise ConfigError(
            f"front matter cannot be edited safely ({error}); do it by hand"
        ) from error
    if old != new or read != dict(values):
        raise ConfigError("front matter cannot be edited without touching more; do it by hand")


def _texts(source: str, values: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (key, source[start:stop].strip())
        for key, start, stop in _places(source)
        if key not in values
    ]


def _read_back(source: str, key: str) -> str:
    """What a key is read as, on its own: the rest may hold what we do not load."""
    for name, start, stop in _places(source):
        if name == key:
            value = load_yaml(f"x: {source[start:stop].strip()}\n")
            held = value.get("x") if isinstance(value, dict) else None
            return str(held)
    return ""


def _toml_edited(text: str, block: _FrontMatterBlock, values: Mapping[str, str]) -> str:
    before = text[block.start : block.end]
    newline = "\r\n" if "\r\n" in before else "\n"
    source = before
    for key, value in values.items():
        table = _TABLE.search(source)
        top = table.start() if table else len(source)
        line = re.compile(
            rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*(?P<value>\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s#]+)",
            re.MULTILINE,
        ).search(source, 0, top)
        written = json.dumps(value, ensure_ascii=False)
        if line and value:
            source = source[: line.start("value")] + written + source[line.end("value") :]
        elif line:
            source = _without_line(source, line.start("value"), line.end("value"))
        elif value:
            source = f"{source[:top]}{key} = {written}{newline}{source[top:]}"
    _prove_toml(before, source, values)
    return text[: block.start] + source + text[block.end :]


def _prove_toml(before: str, after: str, values: Mapping[str, str]) -> None:
    try:
        old, new = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"front matter: {error}; fix it first") from error
    wanted = {**old, **values}
    if new != {key: value for key, value in wanted.items() if value != "" or key not in values}:
        raise ConfigError("front matter cannot be edited without touching more; do it by hand")
