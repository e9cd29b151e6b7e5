"""What a section says, as plain text: the marks of markdown and of site generators removed.

Shortcodes, admonitions, imports, comments and attribute lists go, as no reader of a site sees
them; the words they show and the text between them stay, and every line stays a line, so that
places in a text keep their numbers. Code is kept apart, and in fences as it is written.
"""

import html
import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]*")
"""A line that opens or closes fenced code."""
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
"""A comment; one that is never closed reaches to the end."""
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

_MAY_HOLD_MARKS = re.compile(
    r"<!--|\{[{%:#/.]|^[ \t>]*+(?::::|!!!|\?\?\?|===|\[!)|^(?:import|export)\b", re.MULTILINE
)
_PARTS_OF_MARKS = ("{", "<!--", ":::", "!!!", "???", "===", "[!", "import", "export")
"""What every match of it holds: most texts hold none, which is seen much sooner so."""
# Shortcodes of Hugo, tags of Liquid, comments of both and of MDX.
_SHORTCODE = re.compile(
    # What stands in backticks is shown as it is written.
    r"(?P<code>(?<!`)(?P<ticks>`{1,4})(?!`)[^`\n]{1,500}(?P=ticks)(?!`))"
    r"|\{\{[<%](?P<inner>[^{}]{0,1000})[>%]\}\}"
    r"|\{%[^{}]{0,1000}%\}"
    r"|\{\{?/\*[^{}]{0,1000}\*/\}?\}"
)
_SHOWN = re.compile(
    r"(?:^|[\s\"'])(?:text|title|caption|label|name|summary|header|tabName|file)"
    r"[ \t]?=[ \t]?\"([^\"]{0,300})\""
)
_TERM = re.compile(r"term_id[ \t]?=[ \t]?\"([^\"]{0,300})\"")
_HEADING_WORD = re.compile(r"\s{0,5}heading\s{1,5}\"([^\"]{0,300})\"")
# What the sites that have this shortcode say in English; their tables of words are not with a page.
_HEADINGS = {
    "whatsnext": "What's next",
    "prerequisites": "Before you begin",
    "cleanup": "Cleaning up",
    "seealso": "See also",
}
_ATTRIBUTES = re.compile(
    r"(?<=\S)[ \t]?\{:?[ \t]?[.#][\w-][^{}\n]{0,200}\}[ \t]{0,4}$|^\{:[^{}\n]{0,200}\}[ \t]{0,4}$"
)
# `:::note Title`, `:::tip[Title]`, `:::{note} Title`, `::: details Title`, and `:::` alone.
_COLONS = re.compile(
    r"(?:>[ \t]?){0,8}:{3,9}[ \t]{0,4}(?:\{[\w -]{1,60}\}|[\w-]{0,60})[ \t]{0,4}"
    r"(?:\{[^{}\n]{0,200}\})?\[?([^\n]{0,300}?)\]?"
)
# `!!! note "Title"`, `!!!note`, `??? tip inline end`, `=== "Tab"`; `!!! stop here` is a sentence.
_MARKED = re.compile(
    r"(?:>[ \t]?){0,8}(?:(?:!!!|\?\?\?\+?)[ \t]{0,4}[\w-]{1,60}|===[!+]?(?=[ \t]))"
    r"(?:(?:[ \t](?:inline|end|annotate)){0,3}[ \t]{0,4}"
    r"|(?:[ \t][\w-]{1,60}){0,4}[ \t]{1,4}\"([^\"\n]{0,300})\")"
)
_LONGEST_MARK = 500
_CALLOUT = re.compile(r"([ \t>]*+)\[![\w -]{1,40}\][+-]?[ \t]?")
_IMPORT = re.compile(
    r"import\s(?:[^\n]{0,500}?\sfrom\s)?\s?[\"'][^\"'\n]{1,300}[\"'];?\Z|import\s\{[^}\n]{0,500}\Z"
)
_EXPORT = re.compile(r"export\s(?:default\b|(?:const|let|var)\s[\w{\[]|(?:async\s)?function\s)")


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
    for line in below_heading(without_site_marks(source), level):
        if not fence and (not line or line[0].isalpha()) and line.strip() not in footers:
            text.append(line)  # as most are: no mark of a line begins with a letter
            continue
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


def below_heading(source: str, level: int) -> list[str]:
    """The lines of a section below its heading."""
    lines = source.splitlines()
    if not level:
        return lines
    if lines and lines[0].lstrip().startswith("#"):
        return lines[1:]
    for position, line in enumerate(lines):
        if position and SETEXT.match(line):
            return lines[position + 1 :]
    return lines[1:]


def without_site_marks(source: str) -> str:
    """The text as a reader of the site sees it, in as many lines."""
    if not any(map(source.__contains__, _PARTS_OF_MARKS)) or not _MAY_HOLD_MARKS.search(source):
        return source
    return "".join(_cleaned_lines(_without_comments(source)))


def as_shown(source: str) -> str:
    """The text as a reader of the site sees it, without the lines that held nothing but marks."""
    text = without_site_marks(source)
    if text == source:
        return source
    kept: list[str] = []
    is_gap = False  # what stood here is gone: of the blank lines around it one is enough
    before = source.splitlines(keepends=True)
    for line, shown in zip_longest(before, text.splitlines(keepends=True), fillvalue=""):
        is_blank = not shown.strip("> \t\r\n")
        if is_blank and line.strip("> \t\r\n"):
            is_gap = True
        elif not (is_blank and is_gap and not (kept and kept[-1].strip())):
            is_gap = False
            kept.append(shown)
    return "".join(kept)


def shown_words(text: str) -> str:
    """A line or a heading with what its shortcodes show in their place."""
    return _SHORTCODE.sub(_shown, text) if "{" in text else text


def line_starts(text: str) -> list[int]:
    """The offset of every line, as CommonMark divides lines, and the end of the text."""
    starts = [0]
    starts.extend(match.end() for match in re.finditer(r"\r\n?|\n", text))
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def split_heading_id(heading: str) -> tuple[str, str]:
    """A heading's words and the id it gives itself: `{#id}`, also as kramdown and MDX write it."""
    # Looked for from the last brace on: a search from every blank is quadratic in blanks.
    at = heading.rfind("{")
    match = _HEADING_ID.match(heading, at - (heading[at - 1 : at] == "\\")) if at > 0 else None
    return (heading[:at].rstrip(" \t\\"), match[1]) if match else (heading, "")


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
    if "*" in text or "_" in text or "~" in text or "`" in text:
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


def _cleaned_lines(source: str) -> Iterator[str]:
    fence = ""
    in_module = False  # an import or export of MDX goes on to the next blank line
    blank_above = True
    for line in _unshortened(source).splitlines(keepends=True):
        words = line.rstrip("\r\n")
        ending = line[len(words) :]
        mark = FENCE.fullmatch(words)
        if fence:
            is_end = mark is not None and mark[1].startswith(fence) and words.strip() == mark[1]
            fence = "" if is_end else fence
            yield line
        elif mark:
            fence = mark[1]
            yield line
        else:
            starts_module = (blank_above or in_module) and _starts_module(words)
            in_module = bool(words.strip()) and (in_module or starts_module)
            yield ending if in_module else _cleaned_line(words) + ending
        blank_above = not words.strip()


def _starts_module(line: str) -> bool:
    return line.startswith(("import", "export")) and bool(
        _IMPORT.match(line) or _EXPORT.match(line)
    )


def _cleaned_line(line: str) -> str:
    if len(line) <= _LONGEST_MARK:
        for form in (_COLONS, _MARKED):
            admonition = form.fullmatch(line.strip())
            if admonition:
                return admonition[1] or ""
    callout = _CALLOUT.match(line)
    if callout and (">" in callout[1] or not line[callout.end() :].startswith("(")):
        line = callout[1] + line[callout.end() :]
    return _ATTRIBUTES.sub("", line) if "{" in line else line


def _unshortened(source: str) -> str:
    """Without shortcodes, outside of fences; one that spans lines leaves as many behind."""
    if "{" not in source:
        return source
    parts: list[str] = []
    for is_code, text in _divided(source):
        parts.append(text if is_code else _SHORTCODE.sub(_shown, text))
    return "".join(parts)


def _shown(shortcode: re.Match[str]) -> str:
    if shortcode["code"]:
        return shortcode["code"]
    inner = shortcode["inner"] or ""
    heading = _HEADING_WORD.match(inner)
    words = (
        [_heading_words(heading[1])]
        if heading
        else _SHOWN.findall(inner) or _TERM.findall(inner)[:1]
    )
    before = shortcode.string[shortcode.start() - 1 : shortcode.start()]
    after = shortcode.string[shortcode.end() : shortcode.end() + 1]
    # A shortcode may touch the words beside it, or another one; its lines stay lines.
    start = " " if words and (before.isalnum() or before == "}") else ""
    end = " " if words and (after.isalnum() or after == "{") else ""
    return start + " ".join(words) + end + "\n" * shortcode[0].count("\n")


def _heading_words(name: str) -> str:
    """What a reader sees for the name of a heading in a site's table of words."""
    words = re.sub(r"[_-]+", " ", name).strip()
    return _HEADINGS.get(name.casefold(), words[:1].upper() + words[1:])


def _without_comments(source: str) -> str:
    """Without comments, outside of fences; a mark that opens none that ends hides nothing."""
    if "<!--" not in source:
        return source
    parts: list[str] = []
    at = 0
    for start, end in _comments(source):
        parts += [source[at:start], "\n" * source.count("\n", start, end)]
        at = end
    parts.append(source[at:])
    return "".join(parts)


def _comments(source: str) -> Iterator[tuple[int, int]]:
    at = 0
    offset = 0
    last = source.rfind("-->")
    for is_code, text in _divided(source):
        end = offset + len(text)
        while not is_code and (start := source.find("<!--", max(at, offset), end)) >= 0:
            if _is_in_code(source, start):
                at = start + 4
                continue
            at = source.find("-->", start + 4) + 3 if start + 4 <= last else start + 4
            yield start, at
        offset = end


def _is_in_code(source: str, at: int) -> bool:
    """Whether a place lies in a span of code: an odd number of backticks before it in its line."""
    line = source.rfind("\n", max(0, at - _LONGEST_MARK), at) + 1 or max(0, at - _LONGEST_MARK)
    return source.count("`", line, at) % 2 == 1


def _divided(source: str) -> Iterator[tuple[bool, str]]:
    """The text in runs of lines, and whether each run is fenced code."""
    run: list[str] = []
    fence = ""
    for line in source.splitlines(keepends=True):
        mark = FENCE.fullmatch(line.rstrip("\r\n"))
        if mark and not fence:
            yield False, "".join(run)
            run, fence = [line], mark[1]
        elif mark and mark[1].startswith(fence) and line.strip() == mark[1]:
            yield True, "".join((*run, line))
            run, fence = [], ""
        else:
            run.append(line)
    yield bool(fence), "".join(run)
