"""Edits of one member or element in a JSON text. Every byte that is not its own stays as it was."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sage.install.json_parser import (
    Dialect,
    JsonTextError,
    Member,
    Node,
    line_of,
    parse_json,
    value_of,
)

_INDENT = "  "
_COMMENT = re.compile(r"//[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z)")
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?s:.*?)\*/)*(?://[^\r\n]*)?")


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def load_json(text: str, dialect: Dialect) -> dict[str, Any]:
    """The members of a text; none for an empty one.

    Raises:
        JsonTextError: it cannot be parsed or is not an object.
    """
    try:
        # The standard library is a hundred times faster, but knows no comments and says less.
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        root = parse_json(text, dialect)
        value = {} if root is None else value_of(text, root)
    if isinstance(value, dict):
        return value
    raise JsonTextError(f"expected an object, found a {type(value).__name__}", 1)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def put_fields(text: str, path: Sequence[str], fields: Mapping[str, Any], dialect: Dialect) -> str:
    """The text with these fields in the object at a path; its other fields are kept.

    Raises:
        JsonTextError: the text cannot be parsed, or something on the path is no object.
    """
    root = parse_json(text, dialect)
    if root is None:
        return _fresh(text, _nested(path, fields))
    if _find(text, root, path) is None:
        return _put(text, root, path, fields)
    for name, value in fields.items():
        root = parse_json(text, dialect)
        if root is not None:
            text = _put(text, root, (*path, name), value)
    return text


def remove_member(text: str, path: Sequence[str], dialect: Dialect) -> str:
    """The text without the member at a path.

    Raises:
        JsonTextError: the text cannot be parsed, or something on the path is no object.
    """
    root = parse_json(text, dialect)
    holder = _find(text, root, path[:-1]) if root else None
    member = _member(text, holder, path) if holder else None
    if holder is None or member is None:
        return text
    return _applied(text, _removal(text, holder, member))


def append_element(text: str, path: Sequence[str], value: Any, dialect: Dialect) -> str:
    """The text with a value at the end of the array at a path, which is made if need be.

    Raises:
        JsonTextError: the text cannot be parsed, or something on the path is of another kind.
    """
    root = parse_json(text, dialect)
    if root is None:
        return _fresh(text, _nested(path, [value]))
    array = _find(text, root, path)
    if array is None:
        return _put(text, root, path, [value])
    _check_array(text, array, path)
    return _applied(text, _insertion(text, array, None, value))


def remove_elements(
    text: str, path: Sequence[str], is_meant: Callable[[Any], bool], dialect: Dialect
) -> str:
    """The text without those elements of the array at a path; an array left empty goes as well.

    Raises:
        JsonTextError: the text cannot be parsed, or something on the path is of another kind.
    """
    while True:
        root = parse_json(text, dialect)
        array = _find(text, root, path) if root else None
        if array is None:
            return text
        _check_array(text, array, path)
        meant = [one for one in array.members if is_meant(value_of(text, one.value))]
        if not meant:
            return text
        if len(array.members) == 1:
            return remove_member(text, path, dialect)
        text = _applied(text, _removal(text, array, meant[-1]))


def _check_array(text: str, node: Node, path: Sequence[str]) -> None:
    if node.kind != "array":
        where = ".".join(path)
        raise JsonTextError(f"{where} is not a list", line_of(text, node.start))


def _find(text: str, root: Node, path: Sequence[str]) -> Node | None:
    node = root
    for depth in range(len(path)):
        member = _member(text, node, path[: depth + 1])
        if member is None:
            return None
        node = member.value
    return node


def _member(text: str, node: Node, path: Sequence[str]) -> Member | None:
    """The member that the last name of a path means in a node, which must be an object."""
    if node.kind != "object":
        where = ".".join(path[:-1]) or "the file"
        found = text[node.start : node.end] if node.kind == "word" else f"a {node.kind}"
        raise JsonTextError(f"{where} is {found}, not an object", line_of(text, node.start))
    return node.member(path[-1])


def _put(text: str, root: Node, path: Sequence[str], value: Any) -> str:
    node = root
    for depth, name in enumerate(path):
        member = _member(text, node, path[: depth + 1])
        if member is None:
            rest = _nested(path[depth + 1 :], value)
            return _applied(text, _insertion(text, node, name, rest))
        node = member.value
    if value_of(text, node) == value:
        return text
    one_line = "\n" not in text[node.start : node.end]
    rendered = _rendered(text, value, _indent_at(text, node.start), _unit(text), one_line)
    return _applied(text, [_Edit(node.start, node.end, rendered)])


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _fresh(text: str, value: Any) -> str:
    """A text of blanks or comments with a value after them."""
    newline = _newline(text)
    head = text if not text.strip() or text.endswith("\n") else text + newline
    head = head if text.strip() else ""
    return head + json.dumps(value, indent=_INDENT, ensure_ascii=False) + newline


def _insertion(text: str, holder: Node, name: str | None, value: Any) -> list[_Edit]:
    """Put a new member or element behind the last one, on a line of its own where others are."""
    if not holder.members:
        return _first_member(text, holder, name, value)
    last = holder.members[-1]
    trailing = "," if last.comma is not None else ""
    after = last.value.end if last.comma is None else last.comma + 1
    comma = [] if trailing else [_Edit(after, after, ",")]
    if "\n" not in text[holder.start : holder.members[0].start]:
        rendered = _pair(text, name, value, "", "", one_line=True)
        return [*comma, _Edit(after, after, f" {rendered}{trailing}")]
    indent = _indent_at(text, holder.members[0].start)
    unit = indent.removeprefix(_indent_at(text, holder.start)) or _INDENT
    place = _after_comments(text, after)
    rendered = _pair(text, name, value, indent, unit)
    return [*comma, _Edit(place, place, f"{_newline(text)}{indent}{rendered}{trailing}")]


def _after_comments(text: str, position: int) -> int:
    """Where the line of a value ends, or where its comments do if more stands on the line."""
    match = _REST_OF_LINE.match(text, position)
    end = match.end() if match else position
    if text[end : end + 1] in ("\r", "\n"):
        return end
    return position + len(text[position:end].rstrip())


def _first_member(text: str, holder: Node, name: str | None, value: Any) -> list[_Edit]:
    newline, base = _newline(text), _indent_at(text, holder.start)
    unit = _unit(text)
    inside = text[holder.start + 1 : holder.end - 1]
    place = holder.start + 1 + len(inside.rstrip())
    closing = "" if "\n" in text[place : holder.end] else newline + base
    rendered = _pair(text, name, value, base + unit, unit)
    return [_Edit(place, place, f"{newline}{base}{unit}{rendered}{closing}")]


def _removal(text: str, holder: Node, member: Member) -> list[_Edit]:
    """Cut a member with its comma; with the comma before it when none comes after."""
    position = holder.members.index(member)
    previous = holder.members[position - 1] if position else None
    comma = member.comma if member.comma is not None else previous and previous.comma
    start, end = member.start, member.value.end
    apart: list[_Edit] = []
    if comma is not None and comma >= end and not text[end:comma].strip():
        end = comma + 1
    elif comma is not None and comma < start and not text[comma + 1 : start].strip(" \t"):
        start = comma
    elif comma is not None:
        apart = [_Edit(comma, comma + 1, "")]  # a comment or a line break stands between
    gap_start = previous.value.end if previous else holder.start + 1
    span = _own_lines(text, start, end, gap_start)
    if span is None and start == member.start:
        span = _within_line(text, start, end, is_last=member is holder.members[-1])
    return [*apart, _Edit(*(span or (start, end)), "")]


def _within_line(text: str, start: int, end: int, *, is_last: bool) -> tuple[int, int]:
    """The span of a member on a line with others, with the blanks on one side of it."""
    if not is_last:
        return start, end + _blank_length(text, end)
    return (start - 1, end) if text[start - 1] == " " else (start, end)


def _own_lines(text: str, start: int, end: int, gap_start: int) -> tuple[int, int] | None:
    """The span with the line break before it, when no other member stands on its lines."""
    head = text[:start].rstrip(" \t")
    blanks = _blank_length(text, end)
    following = text[end + blanks : end + blanks + 1]
    if not head.endswith("\n") or following not in ("\r", "\n", "}", "]"):
        return None
    break_start = len(head) - (2 if head.endswith("\r\n") else 1)
    if following not in ("}", "]"):
        return break_start, end + blanks
    comments = list(_COMMENT.finditer(text, gap_start, start))
    if comments and comments[-1].group().startswith("//") and comments[-1].end() == break_start:
        return None  # the break ends a comment, which would swallow the bracket
    return break_start, end


def _blank_length(text: str, position: int) -> int:
    blanks = re.compile(r"[ \t]*").match(text, position)
    return len(blanks.group()) if blanks else 0


def _pair(
    text: str, name: str | None, value: Any, indent: str, unit: str, *, one_line: bool = False
) -> str:
    """A member as it is written; an element has no name."""
    shown = _rendered(text, value, indent, unit, one_line)
    return shown if name is None else f"{json.dumps(name, ensure_ascii=False)}: {shown}"


def _rendered(text: str, value: Any, indent: str, unit: str, one_line: bool) -> str:
    lines = json.dumps(value, indent=None if one_line else unit, ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _unit(text: str) -> str:
    """What one level adds to the indentation, as the first member of the file has it."""
    root = parse_json(text, "jsonc")
    if root and root.members and "\n" in text[root.start : root.members[0].start]:
        return _indent_at(text, root.members[0].start) or _INDENT
    return _INDENT


def _indent_at(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _applied(text: str, edits: Sequence[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
