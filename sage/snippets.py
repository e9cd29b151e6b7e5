"""The sentences of a section around its densest match, as plain text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sage.analysis import JOIN, folded, is_cjk

MAX_SNIPPET = 300
_MAX_TEXT = 60_000
_MAX_MATCHES = 300
_WIDE = 240
_AGAIN = 0.05
"""What a second occurrence of the same word adds."""
_END = re.compile(r"[.!?](?=[\s\"')\]]|$)|[。！？；]|\n")
_BLANK = re.compile(r"\s+")
_ELLIPSIS = " …"


class Match(NamedTuple):
    """A matching word in a text: where it is and which concept it is of."""

    start: int
    end: int
    concept: int


def owners_of(concepts: Sequence[Iterable[str]]) -> dict[str, int]:
    """For each form the concept it is of."""
    owners: dict[str, int] = {}
    for number, forms in enumerate(concepts):
        for form in forms:
            owners.setdefault(form.removesuffix(JOIN), number)
    return owners


def find(text: str, owners: Mapping[str, int]) -> list[Match]:
    """The matching words in a text that is folded and in lower case."""
    found: list[Match] = []
    for form, concept in owners.items():
        # One fast scan a form: looking at every word of the text took five times as long.
        at = text.find(form)
        size = len(form)
        whole = not is_cjk(form)
        while at >= 0:
            end = at + size
            if not (whole and (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())):
                found.append(Match(at, end, concept))
            at = text.find(form, end)
        if len(found) > _MAX_MATCHES:
            break
    found.sort()
    return found


def snippet(
    text: str, owners: Mapping[str, int], rarities: Sequence[float], instead: str = ""
) -> str:
    """At most 300 characters of a text: whole sentences where they fit around the best match."""
    text = text[:_MAX_TEXT]
    if not text.strip():
        return shortened(instead)
    searched = folded(text).lower()
    # Folding may change lengths (one sign for two letters): then words are sought as written.
    matches = find(searched if len(searched) == len(text) else text, owners)
    start, end = _densest(matches, rarities) if matches else (0, 1)
    return _cut(text, start, end)


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    line = _BLANK.sub(" ", text).strip()
    if len(line) <= MAX_SNIPPET:
        return line
    return line[: MAX_SNIPPET - len(_ELLIPSIS)].rsplit(" ", 1)[0] + _ELLIPSIS


def _densest(matches: Sequence[Match], rarities: Sequence[float]) -> tuple[int, int]:
    """The stretch that holds the most of what is rare."""
    best, place = 0.0, (0, 1)
    held = [0] * len(rarities)
    worth = 0.0
    last = 0
    for match in matches:
        while last < len(matches) and matches[last].end - match.start <= _WIDE:
            concept = matches[last].concept
            worth += rarities[concept] * (1.0 if not held[concept] else _AGAIN)
            held[concept] += 1
            last += 1
        if worth > best + 1e-9:
            best, place = worth, (match.start, matches[last - 1].end)
        held[match.concept] -= 1
        worth -= rarities[match.concept] * (1.0 if not held[match.concept] else _AGAIN)
    return place


def _cut(text: str, start: int, end: int) -> str:
    """Widen a stretch to sentences, then trim it to what may be shown."""
    begin = _sentence_start(text, start)
    if end - begin > MAX_SNIPPET:
        begin = _word_start(text, max(begin, start - 40))
    stop = _sentence_end(text, end, begin + MAX_SNIPPET)
    shown = _BLANK.sub(" ", text[begin:stop]).strip(" |")
    before = "… " if begin and not _ends_sentence(text, begin) else ""
    after = _ELLIPSIS if stop < len(text) and not _ends_sentence(text, stop) else ""
    room = MAX_SNIPPET - len(before) - len(after)
    if len(shown) > room:
        shown, after = shown[: room - 2], _ELLIPSIS
        shown = shown.rsplit(" ", 1)[0] if " " in shown[room // 2 :] else shown
    return before + shown.rstrip() + after


def _sentence_start(text: str, at: int) -> int:
    begin = max(0, at - MAX_SNIPPET)
    ends = [match.end() for match in _END.finditer(text, begin, at)]
    if ends:
        return ends[-1]
    return begin and _word_start(text, max(begin, at - 40))


def _sentence_end(text: str, at: int, most: int) -> int:
    """The end of the last sentence that still fits, or the last word."""
    if most >= len(text):
        return len(text)
    stop = most
    for match in _END.finditer(text, max(at - 1, 0), most):
        stop = match.end()
    return stop


def _word_start(text: str, at: int) -> int:
    space = text.find(" ", at, at + 40)
    return space + 1 if space >= 0 else at


def _ends_sentence(text: str, at: int) -> bool:
    return bool(_END.match(text, at - 1)) or text[at - 1 : at] == "\n"
