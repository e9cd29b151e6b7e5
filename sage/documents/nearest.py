"""The names that somebody may have meant by one that does not exist.

Words count before letters: `retries` means `retries-and-idempotency`, and only then `entries`.
"""

import difflib
import heapq
import itertools
import re
from collections.abc import Iterable
from typing import NamedTuple

from sage.sanitize import normal_form

_LEAST = 0.55
_WORD_LEAST = 0.75
# Two words that begin so alike are forms of one: retry, retries.
_STEM = 4
_STEM_SHARE = 0.55
# What is compared letter by letter: the names that share most three-letter pieces.
_COMPARED = 120
_MAX_NAME = 120
_WORDS = re.compile(r"[^\W_]+")


class Named(NamedTuple):
    """A name and what it is a name of."""

    name: str
    topic: str


def nearest_named(names: Iterable[Named], wanted: str, most: int = 5) -> list[str]:
    """The topics of the names that are closest, closest first."""
    return [topic for topic, _ in nearest_scored(names, wanted)[:most]]


def nearest_scored(names: Iterable[Named], wanted: str) -> list[tuple[str, float]]:
    """The topics of the names that are close, closest first, and from 0 to 1 how close."""
    words = _words(wanted)
    if not words:
        return []
    pieces = _pieces(words)
    likely = heapq.nlargest(
        _COMPARED,
        ((_shared(pieces, name), name, topic) for name, topic in names),
        key=lambda found: found[0],
    )
    scored = [(_closeness(words, _words(name)), topic) for shared, name, topic in likely if shared]
    best: dict[str, float] = {}
    for score, topic in scored:
        best[topic] = max(score, best.get(topic, 0.0))
    ranked = sorted(best.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
    return [(topic, score) for topic, score in ranked if score >= _LEAST]


def _words(name: str) -> list[str]:
    return _WORDS.findall(normal_form("NFKC", name[:_MAX_NAME]).casefold())


def _pieces(words: list[str]) -> list[str]:
    """Pieces of three letters; words shorter than that whole."""
    return [word[at : at + 3] for word in words for at in range(max(1, len(word) - 2))]


def _shared(pieces: list[str], name: str) -> int:
    folded = name[:_MAX_NAME].casefold()
    return sum(piece in folded for piece in pieces)


def _closeness(wanted: list[str], name: list[str]) -> float:
    """From 0 to 1: how much of what is wanted the name says, and how little else."""
    if not name:
        return 0.0
    said = sum(max(_likeness(word, other) for other in name) for word in wanted) / len(wanted)
    extra = max(0, len(name) - len(wanted)) / len(name)
    letters = difflib.SequenceMatcher(None, "-".join(wanted), "-".join(name)).ratio()
    return max(said * (1 - 0.25 * extra), letters * 0.85)


def _likeness(word: str, other: str) -> float:
    """Whether two words are one: the same, one the beginning of the other, or a slip apart."""
    if word == other:
        return 1.0
    shorter, longer = sorted((word, other), key=len)
    if len(shorter) >= 3 and longer.startswith(shorter):
        return 0.95
    pairs = zip(word, other, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    if same >= _STEM and same >= _STEM_SHARE * len(longer):
        return 0.9
    ratio = difflib.SequenceMatcher(None, word, other).ratio()
    return ratio * 0.75 if ratio >= _WORD_LEAST else 0.0
