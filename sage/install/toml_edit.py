"""Edits of one table in a TOML text. Every byte that is not the table's stays as it was.

tomlkit's home: it parses a piece of a text and writes it back byte for byte. A piece has one
heading at most, as tomlkit 0.15 moves lists of tables that stand between two tables of a parent. A
new table goes to the end of the text, where it cannot change the meaning of anything else.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Item, Key, Table

# Stands for a moment as the comment of each heading that goes.
_MARK = "sage removes this line"
# Each costs another parsing of its list.
MAX_FALSE_HEADINGS = 200
_HEADING = re.compile(r"^[ \t]*\[", re.MULTILINE)


class TomlTextError(ValueError):
    """The text is not TOML, or has the table in a form that is not edited."""


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
    newline = "\r\n" if "\r\n" in text else "\n"
    if table is None:
        after = _appended(text, path, fields, newline)
    else:
        changed = {name: value for name, value in fields.items() if table.get(name) != value}
        after = _changed(text, path, changed, newline)
    load_toml(after)
    return after


def remove_table(text: str, path: Sequence[str]) -> str:
    """The text without the table at a path and what lies below it.

    Raises:
        TomlTextError: it cannot be parsed, or has the table in a form that is not edited.
    """
    if _find(load_toml(text), path) is None:
        return text
    if _MARK in text:
        raise TomlTextError(f"the text holds the words {_MARK!r}")
    pieces = [_parsed(piece) for piece in _pieces(text)]
    for container, key, item in list(_all_places(pieces, path)):
        _empty(container, key, item)
    after = "".join(piece.as_string() for piece in pieces)
    while (mark := after.rfind(_MARK)) >= 0:
        after = _without_line(after, mark)
    if _find(load_toml(after), path) is not None:
        raise TomlTextError(f"{'.'.join(path)} is written as part of an inline table")
    return after


def _pieces(text: str) -> Iterator[str]:
    """The text cut before each heading; a line in a string or a list may look like one."""
    start, tries = 0, 0
    for match in _HEADING.finditer(text):
        piece = text[start : match.start()]
        if _is_whole(piece):
            yield piece
            start = match.start()
        elif (tries := tries + 1) > MAX_FALSE_HEADINGS:
            raise TomlTextError(f"more than {MAX_FALSE_HEADINGS} lines only look like headings")
    yield text[start:]


def _is_whole(piece: str) -> bool:
    try:
        load_toml(piece)
    except TomlTextError:
        return False
    return True


def _parsed(piece: str) -> tomlkit.TOMLDocument:
    try:
        document = tomlkit.parse(piece)
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise TomlTextError(str(error)) from error
    if document.as_string() != piece:
        raise TomlTextError("a part of it cannot be written back as it was")
    return document


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


def _appended(text: str, path: Sequence[str], fields: Mapping[str, Any], newline: str) -> str:
    tree: Any = dict(fields)
    for name in reversed(path):
        tree = {name: tree}
    gap = "" if not text or text.endswith("\n") else newline
    gap += newline if text.strip() else ""
    return text + gap + tomlkit.dumps(tree).replace("\n", newline)


def _changed(text: str, path: Sequence[str], fields: Mapping[str, Any], newline: str) -> str:
    pieces = [_parsed(piece) for piece in _pieces(text)]
    for name, value in fields.items():
        known = next(_all_places(pieces, (*path, name)), None)
        if known is not None:
            container, key, _ = known
            container[key] = value  # keeps the comment behind it
        else:
            _put_below_heading(pieces, path, {name: value}, newline)
    return "".join(piece.as_string() for piece in pieces)


def _put_below_heading(
    pieces: Sequence[Container], path: Sequence[str], field: Mapping[str, Any], newline: str
) -> None:
    """At the end of the table a field would follow comments that belong to the next one."""
    for _, _, table in _all_places(pieces, path):
        if isinstance(table, Table) and not table.is_super_table():
            line = tomlkit.dumps(field).rstrip("\n")
            table.trivia.trail = f"{newline}{line}{table.trivia.trail}"
            return
    raise TomlTextError(f"{'.'.join(path)} has no [{'.'.join(path)}] heading")


def _empty(container: Container, key: Key, item: Item) -> None:
    """Take out every field, and mark every heading; comments between them stay."""
    if isinstance(item, AoT):
        raise TomlTextError(f"{key.key} is a list of tables")
    if not isinstance(item, Table) or key.is_dotted():
        container.remove(key)
        return
    if not item.is_super_table():
        item.comment(_MARK)
    for inner_key, inner in list(item.value.body):
        if inner_key is not None:
            _empty(item.value, inner_key, inner)


def _without_line(text: str, position: int) -> str:
    """Cut the line at a position, and a blank line beside it that would not divide anything."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end + 1
    above, below = text[:start], text[end:]
    if not below.strip() or below.lstrip(" \t\r").startswith("\n"):
        line_above = above.removesuffix("\n").removesuffix("\r")
        if line_above.endswith("\n"):
            above = line_above
        elif not above:
            below = below.lstrip(" \t\r").removeprefix("\n")
    return above + below


def _all_places(
    pieces: Sequence[Container], path: Sequence[str]
) -> Iterator[tuple[Container, Key, Item]]:
    for piece in pieces:
        yield from _places(piece, path)


def _places(container: Container, path: Sequence[str]) -> Iterator[tuple[Container, Key, Item]]:
    """Everything that a text says of a path; a table may come in several pieces."""
    for key, item in container.body:
        if key is None or key.key != path[0]:
            continue
        if len(path) == 1:
            yield container, key, item
        elif isinstance(item, Table):
            yield from _places(item.value, path[1:])
