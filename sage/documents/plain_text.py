"""What a section says, as plain text: markdown's marks removed, code kept apart.

It also knows the sections that say nothing themselves: tables of contents, lists of links and
footers. The structure of the document is the parser's.
"""

import hashlib
import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from sage.documents.site_markup import FENCE, without_site_marks

RULE = re.compile(r" {0,3}(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)\Z")
"""A whole line that divides; it says nothing."""
SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
"""A line that makes the lines above it a heading."""
_HEADING_ID = re.compile(
    r"\\?\{(?::?[ \t]{0,3}#|/\*[ \t]{0,3}#)([^\s{}\\*]{1,200})"
    r"(?:[ \t][^{}]{0,200}|\\|\*/)?\}[ \t]*\Z"
)
_TABLE_RULE = re.compile(r"(?=[ \t:|]*-)[ \t:|-]++\Z")
_DEFINITION = re.compile(r" {0,3}\[[^\]^\n][^\]\n]{0,200}\]:[ \t]*\S")
_FOOTNOTE = re.compile(r" {0,3}\[\^[^\]\n]{1,100}\]:[ \t]*")
_FOOTNOTE_MARK = re.compile(r"\[\^[^\]\s]{1,100}\]")
_WIKI_LINK = re.compile(r"!?\[\[(?:[^\[\]|\n]{1,300}\|)?([^\[\]|\n]{1,300})\]\]")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,4})(?!`)([^`]{1,2000})\1(?!`)")
_KEPT_SPAN = re.compile(r"\0(\d{1,9})\0")
_MARKER = re.compile(
    r"[ \t]*(?:>[ \t]?)*[ \t]*(?:(?:[-*+:~]|\d{1,9}[.)]|#{1,6})[ \t]+)?(?:\[[ xX]\][ \t]+)?"
)
_LINK = re.compile(
    r"!?\[([^\[\]]{0,500})\](?:\([^()\s]{0,2000}(?:\s[^()]{0,300})?\)|\[[^\[\]]{0,200}\])"
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,60})((?:\s[^<>]{0,1000})?/?)>|<([^<>\s]{3,1000})>")
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]{0,60})[ \t]{0,9}>")
_SHOWN_BY_TAG = re.compile(r"\s(?:label|title|alt|summary)=[\"']([^\"']{0,300})[\"']")
# Tags that nobody takes for the place of a value: `<title>` may be one, `<div>` is not.
_HTML = frozenset(
    re.findall(
        r"\w+",
        "a abbr article aside audio b big blockquote body br button caption center cite code col"
        " colgroup dd del details dfn div dl dt em embed figcaption figure font footer form h1 h2"
        " h3 h4 h5 h6 head header hr html i iframe img ins kbd li main mark nav nobr noscript ol"
        " p picture pre q s samp script small span strike strong sub summary sup svg table tbody"
        " td tfoot th thead tr tt u ul video wbr",
    )
)
# What must not stand before a mark is looked at behind it: only where a pattern begins with certain
# letters are the others passed over quickly, which makes these ten times as fast.
_STRONG = re.compile(
    r"\*\*(?<!\\\*\*)|__(?<!\\__)(?:(?=\S)|(?<=\S__))|~~(?<!\\~~)|`(?<!\\`)`*"
    r"|\*(?<!\\\*)(?:(?<![\w*]\*)(?=\S)|(?<=\S\*)(?![\w*]))"
)
_UNDERSCORED = re.compile(r"_(?<!\w_)(?=\S)([^_\n]{1,300})(?<=\S)_(?!\w)")
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
_MIN_FOOTER_SHARE = 0.1
# The end of a fence or a table is no footer however often it is repeated.
_MAY_BE_FOOTER = re.compile(r"(?!```|~~~|\|)(?=[\W_]*+\w)")


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
    for line in _below_heading(without_site_marks(source), level):
        mark = FENCE.fullmatch(line)
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


def split_heading_id(heading: str) -> tuple[str, str]:
    """A heading's words and the id it gives itself: `{#id}`, also as kramdown and MDX write it."""
    # Looked for from the last brace on: a search from every blank is quadratic in blanks.
    at = heading.rfind("{")
    match = _HEADING_ID.match(heading, at - (heading[at - 1 : at] == "\\")) if at > 0 else None
    return (heading[:at].rstrip(" \t\\"), match[1]) if match else (heading, "")


def is_listing(heading: str, source: str, level: int) -> bool:
    """Whether a section only points elsewhere: a table of contents, related pages, links."""
    lines = [line for line in _below_heading(source, level) if line.strip()]
    lines = [line for line in lines if not RULE.match(line)]
    if not lines:
        return False
    links = sum(map(_points_elsewhere, lines))
    if _LISTING.fullmatch(_NUMBERING.sub("", heading.strip(), count=1).strip(" :")):
        return links * 2 >= len(lines)
    return level > 0 and links == len(lines) and not any(map(_remark, lines))


def line_starts(text: str) -> list[int]:
    """The offset of every line, as CommonMark divides lines, and the end of the text."""
    starts = [0]
    starts.extend(match.end() for match in re.finditer(r"\r\n?|\n", text))
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def last_lines(body: str) -> tuple[str, ...]:
    """The lines that may be a footer: the last ones of a document, rules left out."""
    lines = (line.strip() for line in reversed(body[-2000:].splitlines()) if not RULE.match(line))
    written = itertools.islice(filter(None, lines), FOOTER_LINES)
    return tuple(line for line in written if _MAY_BE_FOOTER.match(line))


def ending_keys(body: str) -> tuple[str, ...]:
    """A short name for each line that may be a footer, the same in every process."""
    return tuple(map(_line_key, last_lines(body)))


def footers_in(body: str, footers: Collection[str]) -> frozenset[str]:
    """The last lines of a document whose keys are those of footers."""
    return frozenset(line for line in last_lines(body) if _line_key(line) in footers)


def find_footers(endings: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """The last lines, or their keys, that so many documents share that they say nothing of one.

    Args:
        endings: what `last_lines` or `ending_keys` gives, for each document.
    """
    counts: Counter[str] = Counter()
    documents = 0
    for lines in endings:
        documents += 1
        counts.update(set(lines))
    least = max(_MIN_FOOTER_DOCUMENTS, documents * _MIN_FOOTER_SHARE)
    return frozenset(line for line, count in counts.items() if count >= least)


def _line_key(line: str) -> str:
    return hashlib.blake2b(line.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _below_heading(source: str, level: int) -> list[str]:
    lines = source.splitlines()
    if not level:
        return lines
    if lines and lines[0].lstrip().startswith("#"):
        return lines[1:]
    for position, line in enumerate(lines):
        if position and SETEXT.match(line):
            return lines[position + 1 :]
    return lines[1:]


def _points_elsewhere(line: str) -> bool:
    return _LINK_LINE.match(line) is not None


def _remark(line: str) -> bool:
    """Whether a line says more than a caption about what it points to."""
    match = _LINK_LINE.match(line)
    return match is not None and len(match["after"]) > _MAX_REMARK


def _plain_line(line: str) -> str:
    if not line.strip() or RULE.match(line) or _DEFINITION.match(line):
        return ""
    if "|" in line:
        if _TABLE_RULE.match(line):
            return ""
        stripped = line.strip()
        if stripped.startswith("|"):
            cells = (" ".join(cell.split()) for cell in stripped.strip("|").split("|"))
            return " | ".join(cell for cell in cells if cell)
    footnote = _FOOTNOTE.match(line)
    if footnote:
        return line[footnote.end() :]
    marker = _MARKER.match(line)
    return line[marker.end() :] if marker else line


def _inline(text: str) -> str:
    """Text without inline marks; what stands in backticks stays as it was written."""
    if "`" not in text:
        return _plain(text)
    spans: list[str] = []

    def kept(span: re.Match[str]) -> str:
        spans.append(span[2])
        return f"\0{len(spans) - 1}\0"

    # A link's words may be code: its marks are found only in the text around the code as well.
    plain = _plain(_CODE_SPAN.sub(kept, text.replace("\0", "\ufffd")))
    return _KEPT_SPAN.sub(lambda place: spans[int(place[1])], plain)


def _plain(text: str) -> str:
    if "<" in text:
        text = _TAG.sub(_tag_words(text), text)
    if "[" in text:
        text = _FOOTNOTE_MARK.sub("", _WIKI_LINK.sub(r"\1", text))
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _UNDERSCORED.sub(r"\1", _STRONG.sub("", text))
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    return html.unescape(text) if "&" in text else text


def _tag_words(text: str) -> Callable[[re.Match[str]], str]:
    """What to show in the place of a tag; `<name>` is no tag unless something closes it."""
    closed = frozenset(_CLOSING.findall(text)) if "</" in text else frozenset()

    def shown(match: re.Match[str]) -> str:
        closes, name, rest, address = match.groups()
        if address:
            return str(address) if "://" in address or "@" in address else match.group()
        if closes or rest or name.lower() in _HTML or name in closed:
            # What a link says when the mouse rests on it is no part of the text.
            said = _SHOWN_BY_TAG.findall(rest) if name.lower() != "a" else ()
            return " ".join(("", *said, ""))
        return match.group()

    return shown
