"""How alike two texts are, and which of very many are.

Texts are compared by pairs of neighbouring words. Among many, only those are compared that share
one of the few smallest hashes of their pairs: the work grows with the number of texts, not with
the number of pairs of them.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import pairwise

from sage.terms.analysis import STOP_WORDS

MIN_WORDS = 8
"""A shorter text is alike by chance."""
_WORD = re.compile(r"[^\W_]+")
_BEGINNING = 5
_SMALLEST = 16
_MOST_SHARING = 40
"""A hash that more texts have in common is that of a phrase, not of a copied text."""


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared."""
    return [word.casefold() for word in _WORD.findall(text)]


def matter_of(text: str) -> frozenset[str]:
    """The beginnings of the words that carry a text's matter: retry and retries are one."""
    return frozenset(
        word[:_BEGINNING].rstrip("s")
        for word in words_of(text)
        if len(word) > 2 and word not in STOP_WORDS
    )


def share_held(matter: frozenset[str], text: str) -> float:
    """How much of a short text's matter another text holds, from 0 to 1."""
    return len(matter & matter_of(text)) / len(matter) if matter else 0.0


def likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """How much of two texts is the same, from 0 to 1: the share of pairs they have in common."""
    return len(one & other) / len(one | other) if one and other else 0.0


def pairs_of(text: str) -> frozenset[int]:
    """The hashes of the neighbouring words of a text; none for a text of a few words."""
    words = words_of(text)
    if len(words) < MIN_WORDS:
        return frozenset()
    encoded = [word.encode("utf-8", "replace") for word in words]
    return frozenset(zlib.crc32(second, zlib.crc32(first)) for first, second in pairwise(encoded))


def alike(texts: Sequence[frozenset[int]], least: float) -> Iterator[tuple[int, int, float]]:
    """The pairs of texts, by their places, that are alike at least so much."""
    for first, second in _candidates(texts):
        near = likeness(texts[first], texts[second])
        if near >= least:
            yield first, second, near


def _candidates(texts: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Pairs of texts that share a small hash; of equal texts, each with the first of them."""
    first_of: dict[frozenset[int], int] = {}
    holders: dict[int, list[int]] = defaultdict(list)
    for place, pairs in enumerate(texts):
        if not pairs:
            continue
        known = first_of.setdefault(pairs, place)
        if known != place:
            yield known, place
            continue
        for small in nsmallest(_SMALLEST, pairs):
            holders[small].append(place)
    seen: set[tuple[int, int]] = set()
    for places in holders.values():
        if len(places) > _MOST_SHARING:
            continue
        for at, first in enumerate(places):
            for second in places[at + 1 :]:
                if (first, second) not in seen:
                    seen.add((first, second))
                    yield first, second
