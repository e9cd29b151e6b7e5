"""What a section says, as plain text: markdown's marks removed, code kept apart.

It also knows the sections that say nothing themselves: tables of contents, lists of links and
footers. The structure of the document is the parser's.
"""

import html
import re
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]*\Z")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_TABLE_RULE = re.compile(r"(?=[ \t:|]*-)[ \t:|-]++\Z")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_DEFINITION = re.compile(r" {0,3}\[[^\]\n]{1,200}\]:[ \t]*\S")
_MARKER = re.compile(
    r"[ \t]*(?:>[ \t]?)*[ \t]*(?:[-*+][ \t]+|\d{1,9}[.)][ \t]+|#{1,6}[ \t]+)?(?:\[[ xX]\][ \t]+)?"
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LINK = re.compile(
    r"!?\[([^\[\]]{0,500})\](?:\([^()\s]{0,2000}(?:\s[^()]{0,300})?\)|\[[^\[\]]{0,200}\])"
)
# Site generators' own marks say nothing but the words they show: {{< tooltip text="Pod" >}}.
_SHORTCODE = re.compile(r"\{\{[<%]([^{}]{0,500})[>%]\}\}|\{%[^{}]{0,500}%\}")
_SHOWN = re.compile(r"(?:text|title|caption|label)=\"([^\"]*)\"")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_STRONG = re.compile(
    r"(?<!\\)(?:\*\*|__(?=\S)|(?<=\S)__|~~|`+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*]))"
)
_UNDERSCORED = re.compile(r"(?<!\w)_(?=\S)([^_\n]{1,300})(?<=\S)_(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

_LISTING = re.compile(
    r"(?:table of )?contents|toc|on this page|in this (?:page|document|section|guide)"
    r"|related(?: \w+){0,2}|see also|further reading|(?:external |useful )?links|navigation"
    r"|目录|相关(?:文档|链接|内容|阅读)?|参见",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"[\d.]+[ \t]*")
_LINK_LINE = re.compile(
    # Possessive: a line of a million blanks would be tried once for each pair of them.
    r"[ \t]*+(?:[-*+]|\d{1,9}[.)])?[ \t]*+(?:\*\*)?"
    r"(?:\[[^\[\]]{0,500}\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])?"
    r"|`(?=[^`\n/.#]*[/.#])[^`\n]*+`|<?https?://\S+)"
    r"(?:\*\*)?[ \t]*(?P<after>[^\n]*)"
)
_MAX_REMARK = 120
FOOTER_LINES = 3
_MIN_FOOTER_DOCUMENTS = 4


class Prose(NamedTuple):
    """The plain text of a section: what is written, and what is code."""

    text: str
    code: str

    @property
    def whole(self) -> str:
        """Both, to be shown."""
        return f"{self.text}\n{self.code}" if self.code and self.text else self.text or self.code


def section_prose(source: str, level: int, footers: frozenset[str] = frozenset()) -> Prose:
    """The plain text below a section's heading, without the lines known to be footers."""
    text: list[str] = []
    code: list[str] = []
    fence = ""
    for line in _below_heading(source, level):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = ""
            else:
                code.append(line)
        elif mark:
            fence = mark[1]
        elif line.strip() not in footers:
            text.append(_plain_line(line))
    return Prose(_inline("\n".join(text)).strip(), "\n".join(code).strip())


def is_listing(heading: str, source: str, level: int) -> bool:
    """Whether a section only points elsewhere: a table of contents, related pages, links."""
    lines = [line for line in _below_heading(source, level) if line.strip()]
    lines = [line for line in lines if not _RULE.match(line)]
    if not lines:
        return False
    links = sum(map(_points_elsewhere, lines))
    if _LISTING.fullmatch(_NUMBERING.sub("", heading.strip(), count=1).strip(" :")):
        return links * 2 >= len(lines)
    return level > 0 and links == len(lines) and not any(map(_remark, lines))


def last_lines(body: str) -> tuple[str, ...]:
    """The lines that may be a footer: the last ones of a document, rules left out."""
    found: list[str] = []
    for line in reversed(body[-2000:].splitlines()):
        if line.strip() and not _RULE.match(line):
            found.append(line.strip())
        if len(found) == FOOTER_LINES:
            break
    return tuple(found)


def is_footer(documents_with: int, documents: int) -> bool:
    """Whether a last line is the same in so many documents that it says nothing of one."""
    return documents_with >= max(_MIN_FOOTER_DOCUMENTS, documents // 2 + 1)


def _below_heading(source: str, level: int) -> list[str]:
    lines = source.splitlines()
    if not level:
        return lines
    if lines and lines[0].lstrip().startswith("#"):
        return lines[1:]
    for position, line in enumerate(lines):
        if position and _SETEXT.match(line):
            return lines[position + 1 :]
    return lines[1:]


def _points_elsewhere(line: str) -> bool:
    return _LINK_LINE.match(line) is not None


def _remark(line: str) -> bool:
    """Whether a line says more than a caption about what it points to."""
    match = _LINK_LINE.match(line)
    return match is not None and len(match["after"]) > _MAX_REMARK


def _plain_line(line: str) -> str:
    if not line.strip() or _RULE.match(line) or _DEFINITION.match(line):
        return ""
    if "|" in line:
        if _TABLE_RULE.match(line):
            return ""
        stripped = line.strip()
        if stripped.startswith("|"):
            cells = (" ".join(cell.split()) for cell in stripped.strip("|").split("|"))
            return " | ".join(cell for cell in cells if cell)
    marker = _MARKER.match(line)
    return line[marker.end() :] if marker else line


def _inline(text: str) -> str:
    if "{%" in text or "{{" in text:
        text = _SHORTCODE.sub(_shown_words, text)
    if "<" in text:
        text = _TAG.sub(" ", _COMMENT.sub(" ", text))
    if "[" in text:
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _UNDERSCORED.sub(r"\1", _STRONG.sub("", text))
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    return html.unescape(text) if "&" in text else text


def _shown_words(shortcode: re.Match[str]) -> str:
    return " ".join(_SHOWN.findall(shortcode[1] or ""))
