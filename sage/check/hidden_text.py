"""Rules about what deceives a reader: unseen characters, and orders meant for an agent."""

import re
import unicodedata
from collections.abc import Iterator

from sage.check.masking import Span
from sage.check.pages import Base, CheckedPage
from sage.check.rules import INSTRUCTION, INVISIBLE
from sage.documents.problems import Level, Problem
from sage.sanitize import clean, is_clean

_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# For lower case: patterns that mind no case take several times as long.
_FORGET = r"\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:of\s+)?"
_TEXTS = r"(?:instructions?|prompts?|messages?|directives?|guidelines?|rules)\b"
_NEVER = r"\b(?:do\s+not|don't|never)\s+"
_ORDERS = re.compile(
    "|".join(
        (
            _FORGET
            + r"(?:(?:the|your|my|these)\s+)?(?:previous|prior|earlier|above|preceding)\s+"
            + _TEXTS,
            _FORGET + r"your\s+" + _TEXTS,
            r"\b(?:ignore|disregard|forget|override|bypass|reveal|print|repeat|leak)\s+"
            r"(?:your|the)\s+(?:system|developer|hidden|safety|initial|original)\s+" + _TEXTS,
            _NEVER + r"(?:mention|reveal|disclose|show)\s+(?:this|these|it)\b"
            r"[^.\n]{0,30}\bto\s+the\s+user\b",
            _NEVER + r"(?:tell|inform|alert|notify)\s+the\s+user\s+(?:about|of)\s+(?:this|these)\b",
            r"\byou\s+are\s+now\s+(?:in\s+developer\s+mode|dan\b|jailbroken|unrestricted)",
            r"<\|(?:im_start|im_end|system|assistant|endoftext)\|>|<<sys>>|\[/?inst\]",
        )
    )
)
# Every order holds one of these; most pages hold none.
_HINTS = (
    "disregard",
    "forget",
    "ignore",
    "override",
    "bypass",
    "reveal",
    "print",
    "repeat",
    "leak",
    "the user",
    "you are now",
    "<|",
    "<<sys",
    "inst]",
)
_OPENING_QUOTE = re.compile(r"(?:^|[\s(*_|])[\"'“„«‘]")
_CLOSING_QUOTE = re.compile(r"[\"'”“»’]")
_SHOWN = 60
_QUOTE_REACH = 400


def check_characters(page: CheckedPage, _: Base) -> Iterator[Problem]:
    """Characters that are removed from every answer because nobody sees them."""
    if is_clean(page.text.replace("\r", "")):
        return
    body_start = len(page.text) - len(page.document.body)
    for number, line in enumerate(page.text.split("\n"), 1):
        line = line.rstrip("\r")
        if is_clean(line):
            continue
        removed = _removed(line)
        if number == page.line(body_start):
            removed = removed.lstrip("\ufeff")
        if removed:
            names = ", ".join(dict.fromkeys(map(_name, removed)))
            yield INVISIBLE.problem(page.path, f"holds {names}", number, _danger(removed))


def check_instructions(page: CheckedPage, _: Base) -> Iterator[Problem]:
    """Sentences that address an agent over the reader's head; quoted ones are about such texts."""
    page = page.cleaned
    for comment in page.masked.comments:
        for words, start in _orders(comment):
            message = f'a comment, which readers do not see, says "{words}"'
            yield INSTRUCTION.problem(page.path, message, page.line(start), "error")
    for words, start in _orders(Span(page.masked.prose, 0)):
        yield INSTRUCTION.problem(page.path, f'it says "{words}"', page.line(start))


def _orders(piece: Span) -> Iterator[Span]:
    lower = piece.text.lower()
    if not any(hint in lower for hint in _HINTS):
        return
    for match in _ORDERS.finditer(lower):
        if not _is_quoted(lower, match):
            words = " ".join(match.group().split())
            yield Span(words[:_SHOWN], piece.start + match.start())


def _removed(line: str) -> str:
    """The characters that cleaning takes out of a line."""
    kept = iter(clean(line))
    expected = next(kept, None)
    removed: list[str] = []
    for character in line:
        if character == expected:
            expected = next(kept, None)
        else:
            removed.append(character)
    return "".join(removed)


def _name(character: str) -> str:
    name = unicodedata.name(character, "a control character").lower()
    return f"U+{ord(character):04X} ({name})"


def _danger(removed: str) -> Level:
    """Text that can turn around, hide whole sentences or steer a terminal is an error."""
    hides = any(c in _DIRECTION or 0xE0000 <= ord(c) <= 0xE007F or c == "\x1b" for c in removed)
    return "error" if hides else "warning"


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - _QUOTE_REACH) : match.start()].rpartition("\n")[2]
    after = text[match.end() : match.end() + 80].partition("\n")[0]
    return bool(_OPENING_QUOTE.search(before) and _CLOSING_QUOTE.search(after))
