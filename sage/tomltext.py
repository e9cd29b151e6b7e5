"""Edits of one table in a TOML text. Every byte that is not the table's stays as it was.

The standard library parses; this module only finds where a statement stands. A new table goes to
the end of the text, where it cannot change the meaning of anything else.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_TRIVIA = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*(?:([\w-]+)|("(?:\\.|[^"\\\n])*"|'[^'\n]*'))[ \t]*(\.?)""", re.ASCII)
_EQUALS = re.compile(r"=[ \t]*")
_VALUE_PART = re.compile(
    r'''"""(?s:(?:\\.|[^\\])*?)""""{0,2}'''
    r"""|'''(?s:.*?)''''{0,2}"""
    r'''|"(?:\\.|[^"\\\n])*"'''
    r"""|'[^'\n]*'|#[^\n]*|[\[\]{}\n]|[^"'#\[\]{}\n]+"""
)


class TomlTextError(ValueError):
    """The text is not TOML, or has the table in a form that is not edited."""


class Statement(NamedTuple):
    """A table header or a key with its value: its full path and its place."""

    path: tuple[str, ...]
    is_table: bool
    start: int
    value_start: int
    end: int


def load_toml(text: str) -> dict[str, Any]:
    """The tables of a text.

    Raises:
        TomlTextError: it cannot be parsed.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlTextError(str(error)) from error


def put_fields(text: str, path: Sequence[str], fields: Mapping[str, Any]) -> str:
    """The text with these fields in the table at a path; its other fields are kept.

    Raises:
        TomlTextError: it cannot be parsed, or has the table in a form that is not edited.
    """
    table = _find(load_toml(text), path)
    if table is None:
        return _checked(_appended(text, path, fields))
    for name, value in fields.items():
        if table.get(name) != value:
            text = _put(text, (*path, name), value)
    return _checked(text)


def remove_table(text: str, path: Sequence[str]) -> str:
    """The text without the table at a path and what lies below it.

    Raises:
        TomlTextError: it cannot be parsed, or has the table in a form that is not edited.
    """
    if _find(load_toml(text), path) is None:
        return text
    ours = [part for part in scan(text) if part.path[: len(path)] == tuple(path)]
    for part in reversed(ours):
        start = text.rfind("\n", 0, part.start) + 1
        end = text.find("\n", part.end)
        end = len(text) if end < 0 else end + 1
        if part.is_table and part.path == tuple(path):
            start = _without_blank_line(text, start, end)
        text = text[:start] + text[end:]
    if _find(load_toml(text), path) is not None:
        raise TomlTextError(f"{'.'.join(path)} is written as part of an inline table")
    return text


def scan(text: str) -> Iterator[Statement]:
    """The statements of a text that the standard library has parsed."""
    table: tuple[str, ...] = ()
    at = _after(_TRIVIA, text, 0)
    while at < len(text):
        start = at
        if text[at] == "[":
            brackets = 2 if text.startswith("[[", at) else 1
            table, at = _keys(text, at + brackets)
            at += brackets
            yield Statement(table, True, start, at, at)
        else:
            keys, at = _keys(text, at)
            value_start = _after(_EQUALS, text, at)
            at = _value_end(text, value_start)
            yield Statement(table + keys, False, start, value_start, at)
        at = _after(_TRIVIA, text, at)


def _find(tables: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any] | None:
    found: Any = tables
    for depth, name in enumerate(path):
        if not isinstance(found, dict):
            raise TomlTextError(f"{'.'.join(path[:depth])} is not a table")
        if name not in found:
            return None
        found = found[name]
    if not isinstance(found, dict):
        raise TomlTextError(f"{'.'.join(path)} is not a table")
    return found


def _appended(text: str, path: Sequence[str], fields: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(name)} = {_value(value)}" for name, value in fields.items()]
    gap = "" if not text or text.endswith("\n") else newline
    gap += newline if text.strip() else ""
    return text + gap + newline.join(lines) + newline


def _put(text: str, path: tuple[str, ...], value: Any) -> str:
    statements = list(scan(text))
    for part in statements:
        if part.path == path and not part.is_table:
            return text[: part.value_start] + _value(value) + text[part.end :]
    for part in statements:
        if part.path == path[:-1] and part.is_table:
            end = text.find("\n", part.end)
            head, tail = (text, "") if end < 0 else (text[: end + 1], text[end + 1 :])
            newline = "\r\n" if "\r\n" in text else "\n"
            gap = "" if head.endswith("\n") else newline
            return f"{head}{gap}{_key(path[-1])} = {_value(value)}{newline}{tail}"
    raise TomlTextError(f"{'.'.join(path[:-1])} has no [{'.'.join(path[:-1])}] heading")


def _checked(text: str) -> str:
    load_toml(text)
    return text


def _without_blank_line(text: str, start: int, end: int) -> int:
    """Where to cut so that the blank line before a table goes with it, if another follows."""
    at_end = not text[end:].strip() or text[end:].lstrip(" \t\r").startswith("\n")
    above = text[:start].removesuffix("\n").removesuffix("\r")
    return len(above) if at_end and above.endswith("\n") else start


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    keys: list[str] = []
    while match := _KEY.match(text, at):
        bare, quoted, dot = match.groups()
        keys.append(bare if bare is not None else str(tomllib.loads(f"k={quoted}")["k"]))
        at = match.end()
        if not dot:
            break
    return tuple(keys), at


def _value_end(text: str, at: int) -> int:
    """Where a value ends: at a line break or comment outside of brackets and strings."""
    depth, end = 0, at
    while match := _VALUE_PART.match(text, at):
        part = match.group()
        if not depth and part[0] in "\n#":
            break
        depth += (part in "[{") - (part in "]}")
        at = match.end()
        if part[0] != "#" and part.strip():
            end = match.start() + len(part.rstrip())
    return end


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    """A text or list of texts; JSON's escapes are TOML's, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
