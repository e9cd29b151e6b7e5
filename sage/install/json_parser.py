"""The structure of a JSON text with the place of everything in it, comments kept aside.

Three dialects: `json`, `commented` with comments, `jsonc` with trailing commas too, as editors
allow. Edits are in `json_edit`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

MAX_DEPTH = 100
# About a minute of parsing; a larger file is edited by hand.
MAX_CHARACTERS = 8_000_000

Dialect = Literal["json", "commented", "jsonc"]

_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t\r\n]+)
    |(?P<comment>//[^\r\n]*|/\*(?s:.*?)\*/)
    |(?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
    |(?P<word>true|false|null)
    |(?P<mark>[{}\[\],:])
    """,
    re.VERBOSE,
)


class JsonTextError(ValueError):
    """The text is not JSON that can be edited safely; `line` is 1-based, 0 when unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Token(NamedTuple):
    """A token and its place."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Node(NamedTuple):
    """A value and its place in the text."""

    kind: str
    start: int
    end: int
    members: tuple["Member", ...] = ()
    """What an object holds; what an array holds, without names."""

    def member(self, name: str) -> "Member | None":
        """The member of that name.

        Raises:
            JsonTextError: it appears twice, so which one counts depends on the reader.
        """
        named = [member for member in self.members if member.name == name]
        if len(named) > 1:
            raise JsonTextError(f'"{name}" appears twice')
        return named[0] if named else None


class Member(NamedTuple):
    """A value in an object or an array, and the place of the comma after it, if any."""

    name: str
    start: int
    value: Node
    comma: int | None


def parse_json(text: str, dialect: Dialect = "json") -> Node | None:
    """The value of a text; None when it holds nothing but blanks and comments.

    Raises:
        JsonTextError: it is not JSON, nested too deeply, or too large.
    """
    if len(text) > MAX_CHARACTERS:
        raise JsonTextError(f"larger than {MAX_CHARACTERS // 1_000_000} MB")
    reader = _JsonReader(text, dialect)
    if reader.current.kind == "end":
        return None
    node = reader.value(0)
    if reader.current.kind != "end":
        raise reader.error("text after the end of the value")
    return node


def value_of(text: str, node: Node) -> Any:
    """The value as Python has it; of two members with one name the last counts."""
    if node.kind == "object":
        return {member.name: value_of(text, member.value) for member in node.members}
    if node.kind == "array":
        return [value_of(text, member.value) for member in node.members]
    try:
        return json.loads(text[node.start : node.end])
    except ValueError as error:  # Python converts no number of more than 4,300 digits
        raise JsonTextError(str(error), line_of(text, node.start)) from error


def scan(text: str, dialect: Dialect) -> Iterator[Token]:
    """The tokens without blanks and comments, then one of kind `end`.

    Raises:
        JsonTextError: something that is no token, or a comment where none is allowed.
    """
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JsonTextError(f"unexpected {text[at : at + 1]!r}", line_of(text, at))
        kind = str(match.lastgroup)
        if kind == "comment" and dialect == "json":
            raise JsonTextError("a comment, which this program does not read", line_of(text, at))
        if kind not in ("blank", "comment"):
            yield Token(kind, match.group(), at)
        at = match.end()
    yield Token("end", "", len(text))


def line_of(text: str, position: int) -> int:
    """The line of a position, counted from 1."""
    return text.count("\n", 0, position) + 1


class _JsonReader:
    """A reader of one text, one token ahead."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._tokens = scan(text, dialect)
        self.current = next(self._tokens)

    def value(self, depth: int) -> Node:
        token = self._take()
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH}")
        if token.text == "{":
            return self._object(token.start, depth)
        if token.text == "[":
            return self._array(token.start, depth)
        if token.kind in ("string", "number", "word"):
            return Node(token.kind, token.start, token.end)
        raise JsonTextError(
            f"expected a value, found {_shown(token)}", line_of(self._text, token.start)
        )

    def error(self, message: str) -> JsonTextError:
        return JsonTextError(message, line_of(self._text, self.current.start))

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        while self.current.text != "}":
            name = self._take("string")
            self._take(":")
            value = self.value(depth + 1)
            members.append(Member(json.loads(name.text), name.start, value, self._comma("}")))
        return Node("object", start, self._take("}").end, members=tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        while self.current.text != "]":
            value = self.value(depth + 1)
            members.append(Member("", value.start, value, self._comma("]")))
        return Node("array", start, self._take("]").end, members=tuple(members))

    def _comma(self, closing: str) -> int | None:
        """Take the comma after a value; none is needed before the closing bracket."""
        if self.current.text == closing:
            return None
        comma = self._take(",")
        if self.current.text == closing and self._dialect != "jsonc":
            raise self.error("a comma before the closing bracket")
        return comma.start

    def _take(self, expected: str = "") -> Token:
        token = self.current
        if expected and expected not in (token.text, token.kind):
            raise self.error(f"expected {expected}, found {_shown(token)}")
        if token.kind != "end":
            self.current = next(self._tokens)
        return token


def _shown(token: Token) -> str:
    """A token in words; a text is not repeated, it may be somebody's secret."""
    names = {"end": "the end of the file", "string": "a text", "number": "a number"}
    return names.get(token.kind, repr(token.text))
