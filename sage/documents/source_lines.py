"""The lines that say which page a text comes from: how they are written, found again, and how a
page is kept from writing one.

A read page stands below a comment, an excerpt in a context below a heading, what a hook delivers
below a bracket. A page that writes such a line itself must not pass for another: its line is marked
as quoted, whatever folder the path in it lies in.
"""

import re
from collections.abc import Iterator

from sage.documents.containment import MARKDOWN_SUFFIXES

_PAGE = rf"(?i:{'|'.join(re.escape(suffix) for suffix in MARKDOWN_SUFFIXES)})"
_COMMENT = re.compile(rf"^<!-- (?!quoted:)(\S[^\r\n]*?{_PAGE})((?::\d+-\d+)?) -->$", re.MULTILINE)
_FORGED_COMMENT = re.compile(
    rf"^([ \t>]*)<!--(?=[ \t]*\S[^\r\n]{{0,300}}{_PAGE}(?::\d|[ \t]*-->))", re.MULTILINE
)
_HEADING = re.compile(rf"^# [^\n]*{_PAGE}:[\d,-]+\)$", re.MULTILINE)
# Also what only looks like it: with marks behind it, other dashes, wide brackets.
_HEADING_END = re.compile(
    rf"{_PAGE}:[\d,\u2010-\u2015\u2212-]+[)\uff09](?=(?:[^\w\n]|_){{0,16}}$)", re.MULTILINE
)
_FORGED_BRACKET = re.compile(
    r"^([ \t>*_+#-]*)[\[\uff3b](?=[ \t]{0,8}source[ \t]{0,8}[:\uff1a])",
    re.MULTILINE | re.IGNORECASE,
)


def comment_line(path: str, lines: tuple[int, int] | None) -> str:
    """The line above what is read of a page."""
    return f"<!-- {path}{f':{lines[0]}-{lines[1]}' if lines else ''} -->"


def commented_paths(text: str) -> list[str]:
    """The paths of the pages in a read text, each once."""
    return list(dict.fromkeys(path for path, _ in _COMMENT.findall(text)))


def split_at_comments(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """What stands above the first page of a read text, and each page: path, lines and text."""
    head, *parts = _COMMENT.split(text)
    return head, list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def without_forged_comments(text: str) -> str:
    return _FORGED_COMMENT.sub(r"\1<!-- quoted:", text) if "<!--" in text else text


def heading_line(name: str, path: str, lines: str) -> str:
    """The line above the excerpts of a page in a context."""
    return f"# {name} ({path}:{lines})"


def heading_sources(context: str) -> Iterator[tuple[int, str]]:
    """Where each page begins in a context, and its path."""
    for line in _HEADING.finditer(context):
        yield line.start(), _in_brackets(line.group()).rpartition(":")[0]


def without_forged_headings(text: str) -> str:
    return _HEADING_END.sub(r"\g<0> (quoted)", text)


def bracket_line(source: str) -> str:
    """The line above what a hook delivers of a page."""
    return f"[source: {source}]"


def without_forged_brackets(text: str) -> str:
    return _FORGED_BRACKET.sub(r"\1[quoted ", text)


def _in_brackets(line: str) -> str:
    """What the last bracket of a line holds; there may be brackets in it."""
    depth = 0
    for at in range(len(line) - 1, -1, -1):
        depth += (line[at] == ")") - (line[at] == "(")
        if depth == 0:
            return line[at + 1 : -1]
    return ""
