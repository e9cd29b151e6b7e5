"""The patterns of `ignore`, written as in `.gitignore`, matched in time that their length bounds.

A name is compared part by part, and within a part each star takes the shortest text that lets the
next letters follow: no star is tried in a second way. Libraries try every way to divide a name
among the stars: 200 patterns with three stars each kept a server from ever being ready.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sage.errors import ConfigError

MAX_PATTERNS = 100
MAX_PATTERN = 100
_KEPT_FOLDERS = 10_000
_ANY_DEPTH = "**"

Part = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line: what it matches, and whether that is left out or kept."""

    parts: tuple[Part | None, ...]
    """How each part of a path must be; None stands for any number of folders."""
    is_anchored: bool
    for_folders: bool
    keeps: bool

    def matches(self, names: Sequence[str], is_folder: bool) -> bool:
        if self.for_folders and not is_folder:
            return False
        return _fit(self.parts, names if self.is_anchored else names[-1:])


def ignore_rule(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a path below `.knowledge` matches one of the patterns.

    Raises:
        ConfigError: a pattern is none, or there is too much of them.
    """
    if len(patterns) > MAX_PATTERNS:
        raise ConfigError(f"ignore: {len(patterns)} patterns, at most {MAX_PATTERNS} are allowed")
    known = [_parsed(line) for line in patterns if line.strip() and not line.startswith("#")]
    if not known:
        return lambda _: False
    folders: dict[tuple[str, ...], bool] = {}

    def leaves_out(names: tuple[str, ...], is_folder: bool) -> bool:
        """Whether the last pattern that matches leaves it out; nothing in such a folder is kept."""
        if len(names) > 1 and folder_is_left_out(names[:-1]):
            return True
        last = next((one for one in reversed(known) if one.matches(names, is_folder)), None)
        return last is not None and not last.keeps

    def folder_is_left_out(names: tuple[str, ...]) -> bool:
        if names not in folders:
            if len(folders) >= _KEPT_FOLDERS:
                folders.clear()
            folders[names] = leaves_out(names, is_folder=True)
        return folders[names]

    return lambda path: leaves_out(tuple(path.split("/")), is_folder=False)


def _fit(parts: Sequence[Part | None], names: Sequence[str]) -> bool:
    """Whether parts match names one by one; any number of folders is taken as short as possible."""
    at = part = 0
    again_at, again_part = 0, -1
    while at < len(names):
        if part < len(parts) and (wanted := parts[part]) is None:
            part += 1
            again_at, again_part = at, part
        elif part < len(parts) and wanted is not None and wanted(names[at]):
            at, part = at + 1, part + 1
        elif again_part >= 0:
            again_at += 1
            at, part = again_at, again_part
        else:
            return False
    return part == len(parts)


def _parsed(line: str) -> _Pattern:
    text = line.rstrip() if not line.rstrip().endswith("\\") else line.rstrip() + " "
    keeps = text.startswith("!")
    body = text.removeprefix("!") if keeps else text
    if len(body) > MAX_PATTERN or not body.strip("/"):
        reason = f"has more than {MAX_PATTERN} characters" if body.strip("/") else "names nothing"
        raise ConfigError(f"ignore: {line[:MAX_PATTERN]!r} {reason}; write it as in .gitignore")
    words = body.strip("/").split("/")
    parts = [None if word == _ANY_DEPTH else _part(word, line) for word in words]
    if words[-1] == _ANY_DEPTH:
        parts.append(_part("*", line))  # what lies in a folder, not the folder itself
    return _Pattern(
        parts=tuple(parts),
        is_anchored="/" in body.rstrip("/"),
        for_folders=body.endswith("/"),
        keeps=keeps,
    )


def _part(word: str, line: str) -> Part:
    """What tells whether one name matches a part of a pattern."""
    first, *rest = _segments(word)
    expression = first
    for middle in rest[:-1]:
        expression += f"(?>.*?{middle})"
    if rest:
        expression += f".*{rest[-1]}"
    try:
        return re.compile(expression, re.DOTALL).fullmatch
    except re.error as error:
        reason = f"ignore: the pattern {line!r} is wrong: {error}"
        raise ConfigError(f"{reason}; write it as in .gitignore") from error


def _segments(word: str) -> list[str]:
    """A part divided at its stars, the rest as expressions that match one character each."""
    segments = [""]
    at = 0
    while at < len(word):
        letter = word[at]
        end = _class_end(word, at) if letter == "[" else 0
        if letter == "*":
            # Two stars in a row are one.
            if segments[-1] or len(segments) == 1:
                segments.append("")
        elif letter == "?":
            segments[-1] += "."
        elif letter == "\\" and at + 1 < len(word):
            at += 1
            segments[-1] += re.escape(word[at])
        elif end:
            segments[-1] += _class(word[at + 1 : end])
            at = end
        else:
            segments[-1] += re.escape(letter)
        at += 1
    return segments


def _class_end(word: str, at: int) -> int:
    """Where a class of characters ends; 0 when it never does and the bracket is a letter."""
    start = at + 2 if word[at + 1 : at + 2] in ("!", "^") else at + 1
    return max(0, word.find("]", start + 1))


def _class(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    letters = "".join(f"\\{one}" if one in "\\[]^&~|" else one for one in inner[negated:])
    return f"[{'^' * negated}{letters}]"
