"""What may leave in a string: text without characters that break or deceive whoever reads it.

Removed are lone surrogates, control characters, terminal escapes and everything that Unicode
displays as nothing. What emoji and scripts need to look right stays: joiners, flags, selectors.
Unicode's normal forms are here too, in time that grows with the text and not with its square.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Literal

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
    return name.isprintable() and clean(name) == name
