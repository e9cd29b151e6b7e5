"""What may leave: text without characters that break or deceive whoever reads it, below lines that
say which page it comes from and that no page can forge.

Removed are lone surrogates, control characters, terminal escapes and everything that Unicode
displays as nothing. What emoji and scripts need to look right stays: joiners, flags, selectors.
Unicode's normal forms are here too, in time that grows with the text and not with its square.

A read page stands below a comment, an excerpt in a context below a heading, what a hook delivers
below a bracket; a page that is not in force says so first. A page that writes such a line itself
must not pass for another: its line is marked as quoted, whatever folder the path in it lies in.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Literal

from sage.paths import MARKDOWN_SUFFIXES
from sage.values import state_of

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_PIECE = 512

_PLAIN_ASCII = bytes(code for code in range(128) if code in b"\t\n" or 0x20 <= code < 0x7F)

# Default_Ignorable_Code_Point of Unicode 16 (soft hyphen, fillers, direction controls,
# zero-width characters, variation selectors, tags), and the interlinear annotation marks.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SURROGATE = "\ud800-\udfff"

_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_SELECTABLE = "0-9#*\u00a9\u00ae\u203c-\u205f\u2100-\u3163\u3165-\u3299\U0001f000-\U0001faff"
# Scripts whose letters change shape with a joiner: Arabic, Syriac, the Indic family, Myanmar,
# Khmer, Mongolian. No range holds a character that is itself removed.
_JOINING = (
    "\u0620-\u077f\u0860-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18af\ufb50-\ufdff\ufe70-\ufefc"
)


def _tags(letters: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in letters)


# What is kept although its characters are invisible: the three flags written with tags, an emoji
# joined to the next, a letter joined or not joined to the next, the look of one symbol.
_KEPT = "|".join(
    (
        "\U0001f3f4(?:" + "|".join(map(_tags, ("gbeng", "gbsct", "gbwls"))) + ")\U000e007f",
        f"(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])",
        f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])",
        f"(?<=[{_SELECTABLE}])[\ufe0e\ufe0f]",
    )
)
_STRING = r"\x90\x98\x9d-\x9f"
# Bounded, and ended by its own terminator: an open sequence must not swallow the text behind it.
_ESCAPE = "|".join(
    (
        r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]",
        # Its own beginning ends it too: else a thousand characters are read again for each one.
        rf"(?:\x1b[\]PX^_]|[{_STRING}])[^\x07\x1b\x9c\n{_STRING}]{{0,1024}}+(?:\x07|\x1b\\|\x9c)",
        r"\x1b(?:[ -/]{1,4}[0-~]|[78=>c])",
    )
)
_DIRTY = re.compile(f"[{_CONTROL}{_INVISIBLE}{_SURROGATE}]")
# In JSON a line feed or a tab between values is one of ours; inside of text both are escaped.
_UNSEEN = re.compile(f"[{_CONTROL}{_INVISIBLE}{_SURROGATE}\u2028\u2029]")
_TOKEN = re.compile(
    f"(?P<kept>{_KEPT})|(?P<line>\r\n?)|(?P<lone>[{_SURROGATE}])|{_ESCAPE}|[{_CONTROL}{_INVISIBLE}]"
)

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
_STATUS = {
    "draft": "Draft: not agreed yet.",
    "resolved": "Resolved: what it describes is over.",
    "superseded": "Superseded: no longer in force.",
    "deprecated": "Deprecated: not for new work.",
}


def clean(text: str) -> str:
    """The text as it may leave; the same object when there is nothing to remove."""
    return text if is_clean(text) else _TOKEN.sub(_replacement, text)


def clean_value(value: Any) -> Any:
    """The same JSON value with every string in it clean, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean_value(key): clean_value(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_value(part) for part in value]
    return value


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that also a terminal may show: what nobody sees or steers it is written as `\\uXXXX`.

    A program that reads it gets the very same value.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text if is_clean(text) else _UNSEEN.sub(_escaped, text)


def is_clean(text: str) -> bool:
    """Whether the text holds no character that could have to go.

    Most of a text is plain ASCII, which bytes.translate drops about twenty times faster than a
    regular expression looks at it; only the rest is looked at.
    """
    raw = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN_ASCII)
    return not raw or not _DIRTY.search(raw.decode("utf-8", "surrogatepass"))


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def _replacement(match: re.Match[str]) -> str:
    if match["kept"]:
        return match["kept"]
    if match["line"]:
        return "\n"
    return "\ufffd" if match["lone"] else ""


def normal_form(form: Form, text: str) -> str:
    """The text in a normal form; a long one is cut at blanks, or inside a word without end.

    Python sorts the accents on one letter by insertion: half a megabyte of them took minutes, and
    nothing else ran meanwhile.
    """
    if len(text) <= _PIECE:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find(" ", start + _PIECE, start + 2 * _PIECE)
        end = end if end >= 0 else start + 2 * _PIECE
        yield text[start:end]
        start = end


def shown_name(path: str) -> str:
    """A path as it can be printed: bytes that are no text and what nobody sees escaped."""
    if is_readable(path):
        return path
    escaped = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        character if is_readable(character) else character.encode("unicode_escape").decode()
        for character in escaped
    )


def is_readable(name: str) -> bool:
    """Whether a name can be printed and is told apart by what is seen: fillers are letters too."""
    return name.isprintable() and (name.isascii() or clean(name) == name)


def mark_above(path: str, lines: tuple[int, int] | None, notice: str) -> str:
    """The lines above what is read of a page."""
    said = f"[{notice}]\n\n" if notice else ""
    return clean(f"{comment_line(path, lines)}\n\n{said}")


def status_notice(status: str, replaced_by: str) -> str:
    """What to know before relying on a page: nothing when it is in force."""
    words = _STATUS.get(state_of(status, replaced_by), "")
    return f"{words} Read {replaced_by} instead." if replaced_by else words


def shown_id(topic: str, id_: str) -> str:
    """A page's id, where its topic does not end with it anyway."""
    return "" if topic.rpartition("/")[2].casefold() == id_.casefold() else id_


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
