"""markdown-it's home: the block structure of a text. Inline rules run on headings only.

The block rules are linear; the inline ones take seconds on a megabyte of brackets. A text of very
many lines is only scanned for its headings. Who parses nothing does not wait for the library.
"""

import functools
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sage.documents.plain_text import FENCE, SETEXT, line_starts, shown_words, split_heading_id

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

Rule = Callable[["StateBlock", int, int, bool], bool]
_INLINE_MARKS = re.compile(r"[`*_\[\]<>&\\!~]")
# The inline rules are quadratic in open brackets: a line of them took 30 ms.
_MAX_INLINE = 1_000
_MAX_BRACKETS = 40
# markdown-it 4 is quadratic in the lines of a link definition that does not end.
_DEFINITION_LINES = 32
# A line costs markdown-it up to 60 µs: a megabyte of list items would take it fifteen seconds.
MAX_LINES = 7_000
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]([^\r\n]*))?")
_CLOSING_MARKS = re.compile(r"(?:^|(?<=[ \t]))#++\Z")
_INTERRUPTS = re.compile(r" {0,3}(?:#{1,6}(?:[ \t]|\Z)|`{3}|~{3}|<!--)")
_KINDS = {
    "heading_open": "heading",
    "heading": "heading",
    "paragraph": "paragraph",
    "fence": "fence",
    "code_block": "code",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "blockquote_open": "quote",
    "table_open": "table",
    "html_block": "html",
    "hr": "rule",
}


class Block(NamedTuple):
    """A block at the top level of a text; lines are 0-based, the end exclusive."""

    kind: str
    start: int
    end: int
    level: int = 0
    text: str = ""
    anchor: str = ""
    """The id that a heading gives itself."""


def parse_blocks(text: str) -> list[Block]:
    """The top-level blocks in order; `text` of a heading is plain, of a paragraph its source."""
    if _is_long(text):
        return list(_scanned_blocks(text))
    return list(_top_blocks(_parser().parse(text)))


def _is_long(text: str) -> bool:
    return text.count("\n") + text.count("\r") > MAX_LINES


def list_items(text: str) -> list[Block]:
    """The items of the lists at the top level of a text."""
    tokens = [] if _is_long(text) else _parser().parse(text)
    return [
        Block("list-item", token.map[0], token.map[1])
        for token in tokens
        if token.type == "list_item_open" and token.level == 1 and token.map
    ]


def plain_text(source: str) -> str:
    """Inline markdown as a reader sees it: marks removed, links by their words."""
    line = " ".join(source.split())
    if not _INLINE_MARKS.search(line):
        return line
    if len(line) > _MAX_INLINE or line.count("[") > _MAX_BRACKETS:
        return line
    parser = _parser()
    tokens: list[Token] = []
    parser.inline.parse(line, parser, {}, tokens)
    return "".join(_words(tokens)).strip()


@functools.cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import reference, table

    rules = _BlockRules(table, reference)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("lheading")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.at("table", rules.table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.at("reference", rules.reference)
    parser.block.ruler.at("paragraph", rules.paragraph)
    parser.block.ruler.before("table", "plain", rules.plain)
    return parser


class _BlockRules:
    """Rules in place of some of the library's: of what they find only the lines are wanted."""

    def __init__(self, table: Rule, reference: Rule) -> None:
        """Args:
        table, reference: the library's own.
        """
        self._table = table
        self._reference = reference

    def plain(self, state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        """A line that begins with a letter or `#`, as most do: no other rules may hold."""
        at = state.bMarks[start] + state.tShift[start]
        letter = state.src[at : at + 1]
        if not (letter == "#" or letter.isalpha()) or state.is_code_block(start):
            return False
        # Only with a line below it can it be the head of a table.
        is_alone = start + 1 >= end or state.isEmpty(start + 1)
        return (
            (not is_alone and self.table(state, start, end, silent))
            or (letter == "#" and _marked_heading(state, start, at))
            or self.paragraph(state, start, end, silent)
        )

    def paragraph(self, state: "StateBlock", start: int, end: int, _silent: bool) -> bool:
        """A paragraph, or the heading that a line below it makes of it, as one token.

        The library goes through its lines once for either, and asks for all that may end it
        each time.
        """
        outer, state.parentType = state.parentType, "paragraph"
        level, line = 0, start + 1
        while line < end and not state.isEmpty(line):
            if state.sCount[line] - state.blkIndent <= 3:  # what stands further in goes on with it
                level = _underline_level(state, line)
                # Above a quote's last lines stands less than nothing: it looked at them already.
                if level or (state.sCount[line] >= 0 and self._ends_paragraph(state, line, end)):
                    break
            line += 1
        source = state.getLines(start, line, state.blkIndent, False).strip()
        state.line = line + 1 if level else line
        _push(state, "heading" if level else "paragraph", start, source, level)
        state.parentType = outer
        return True

    def _ends_paragraph(self, state: "StateBlock", line: int, end: int) -> bool:
        at = state.bMarks[line] + state.tShift[line]
        if state.src[at].isalpha():  # as most do: nothing but the head of a table begins so
            return self.table(state, line, end, True)
        rules = state.md.block.ruler.getRules("paragraph")
        return any(rule(state, line, end, True) for rule in rules)

    def reference(self, state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        """A link definition of a bounded number of lines."""
        last, state.lineMax = state.lineMax, min(state.lineMax, start + _DEFINITION_LINES)
        try:
            return self._reference(state, start, end, silent)
        finally:
            state.lineMax = last

    def table(self, state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        """A table as one token: only its lines are wanted, and its cells are most of the cost."""
        if not self._table(state, start, end, True):
            return False
        if not silent:
            outer, state.parentType = state.parentType, "table"
            state.line = _table_end(state, start + 2, end)
            state.parentType = outer
            state.push("table_open", "table", 0).map = [start, state.line]
        return True


def _marked_heading(state: "StateBlock", start: int, at: int) -> bool:
    """A heading as one token: of the three that the library makes one says all that is wanted."""
    marks = _ATX.fullmatch(state.src, at, state.eMarks[start])
    if marks is None:
        return False
    state.line = start + 1
    _push(state, "heading", start, _heading_source(marks), len(marks[1]))
    return True


def _underline_level(state: "StateBlock", line: int) -> int:
    """The level of the heading that a line makes of those above it; 0 where it makes none."""
    at = state.bMarks[line] + state.tShift[line]
    if state.src[at] not in "=-" or state.sCount[line] < state.blkIndent:
        return 0
    marks = state.src[at : state.eMarks[line]].rstrip(" \t")
    if marks.strip(marks[0]):
        return 0
    return 1 if marks[0] == "=" else 2


def _push(state: "StateBlock", kind: str, start: int, source: str, level: int) -> None:
    token = state.push(kind, f"h{level}" if level else "p", 0)
    token.map, token.content = [start, state.line], source


def _table_end(state: "StateBlock", line: int, end: int) -> int:
    stops = state.md.block.ruler.getRules("blockquote")
    while line < end and not (
        state.isEmpty(line)
        or state.sCount[line] < state.blkIndent
        or state.is_code_block(line)
        or any(stop(state, line, end, True) for stop in stops)
    ):
        line += 1
    return line


def _top_blocks(tokens: "list[Token]") -> Iterator[Block]:
    for position, token in enumerate(tokens):
        if token.level or not token.map or token.type not in _KINDS:
            continue
        kind = _KINDS[token.type]
        start, end = token.map
        if kind == "heading":
            yield _heading(start, end, int(token.tag[1]), token.content)
        elif kind == "paragraph":
            yield Block(kind, start, end, 0, token.content)
        elif kind == "quote":
            yield Block(kind, start, end, 0, _first_paragraph(tokens, position))
        else:
            yield Block(kind, start, end)


def _heading_source(marked: re.Match[str]) -> str:
    # Only blanks and tabs count around the marks; a no-break space before the end is text.
    return _CLOSING_MARKS.sub("", (marked[2] or "").strip(" \t")).strip()


def _heading(start: int, end: int, level: int, source: str) -> Block:
    words, anchor = split_heading_id(source)
    return Block("heading", start, end, level, plain_text(shown_words(words)), anchor)


def _scanned_blocks(text: str) -> Iterator[Block]:
    """Headings, fences and what stands between blank lines, by looking at each line once.

    For texts too long to be parsed. A list or a table passes for a paragraph.
    """
    starts = line_starts(text)
    lines = [text[start:end].rstrip("\r\n") for start, end in pairwise(starts)]
    at = 0
    while at < len(lines):
        end = _block_end(lines, at)
        heading = _ATX.fullmatch(lines[at])
        fence = FENCE.fullmatch(lines[at])
        if heading:
            yield _heading(at, end, len(heading[1]), _heading_source(heading))
        elif fence or lines[at].lstrip(" ").startswith("<!--"):
            yield Block("fence" if fence else "html", at, end)
        elif end - at == 2 and SETEXT.match(lines[at + 1]):
            yield _heading(at, end, 1 if "=" in lines[at + 1] else 2, lines[at].strip())
        elif lines[at].strip():
            yield Block("paragraph", at, end, 0, text[starts[at] : starts[end]].strip())
        at = end


def _block_end(lines: list[str], at: int) -> int:
    """The line behind the block that begins at a line."""
    fence = FENCE.fullmatch(lines[at])
    end = at + 1
    if fence:
        while end < len(lines) and not lines[end].strip().startswith(fence[1]):
            end += 1
        return min(end + 1, len(lines))
    if lines[at].lstrip(" ").startswith("<!--"):
        while end < len(lines) and "-->" not in lines[end - 1]:
            end += 1
        return end
    if not lines[at].strip() or _ATX.fullmatch(lines[at]):
        return end
    while end < len(lines) and lines[end].strip() and not _INTERRUPTS.match(lines[end]):
        end += 1
    return end


def _first_paragraph(tokens: "list[Token]", position: int) -> str:
    following = tokens[position + 1 : position + 2]
    if following and following[0].type == "paragraph":
        return following[0].content
    return ""


def _words(children: "list[Token]") -> Iterator[str]:
    for child in children:
        if child.type in ("text", "code_inline", "text_special"):
            yield child.content
        elif child.type == "image":
            yield from _words(child.children or [])
