"""Words and meaning together: the documents of both sides in one order, and one verdict on them.

Which sections are near a text in meaning is told by a `Meaning`; without one nothing here runs.
The constants were chosen on the shared sets; docs/semantic.md has the rule in words.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from sage.search.catalog import Catalog
from sage.search.ranking import Ranking
from sage.search.scoring import STRENGTH, Ranked, Verdict, standing_of
from sage.search.sections import ReadDocument

CANDIDATES = 20
"""Documents that each side proposes."""
WEIGHTS: dict[Verdict, float] = {"yes": 0.4, "partly": 0.8, "no": 1.0}
"""What meaning counts against words, by how well the words answered."""
ALONE = 0.5
"""The score of a page that is as near as can be and holds none of the words."""


class Near(NamedTuple):
    """A document by the section of it that is nearest to a text."""

    slot: int
    section: int
    """Its place among the sections of the document's entry."""
    similarity: float
    """A rounded cosine."""


class Bounds(NamedTuple):
    """What the similarities of a model are worth."""

    far: float
    """Up to here two texts have nothing to do with each other."""
    near: float
    """From here on a section is about the question, in whatever words."""
    very_near: float
    """From here on it says the same."""
    akin: float = 2.0
    """Up to here two sections are only about the same matter; above every cosine where that is
    not known."""


class Similarities(Protocol):
    """How near all sections are to one text."""

    @property
    def bounds(self) -> Bounds:
        """What they are worth."""

    def best(self, limit: int, allowed: Callable[[int], bool] | None) -> Sequence[Near]:
        """The nearest of the allowed documents, by falling similarity and rising path."""

    def of(self, slot: int) -> Near | None:
        """One document; None while it has no vectors."""


class Double(NamedTuple):
    """A section, and the one of another document that is nearest to it."""

    first: tuple[int, int]
    second: tuple[int, int]
    """The slot of the document, and the place among the sections of its entry."""
    likeness: float
    """0 where they are only about the same matter, 1 where they say the same."""


class Likeness(Protocol):
    """How near the documents and the sections of one generation are to each other."""

    def of_document(self, slot: int) -> Mapping[int, float]:
        """How much nearer to one document some others are than most: slots with 0 to 1."""

    def doubles(self, least: float, allowed: Callable[[int], bool]) -> Iterator[Double]:
        """Sections of allowed documents that are alike at least so much, each with its nearest."""


class Meaning(Protocol):
    """Knows which sections are near a text in meaning."""

    @property
    def generation(self) -> int:
        """Another number whenever answers may differ."""

    @property
    def is_multilingual(self) -> bool:
        """Whether a question finds pages in other languages."""

    def compare(self, text: str, catalog: Catalog) -> Similarities | None:
        """How near the documents of a catalog are; None while that is not known."""

    def likeness(self, catalog: Catalog) -> Likeness | None:
        """How near they are to each other; None while that is not known."""

    def follow(self, catalog: Catalog, read: ReadDocument) -> None:
        """There is another generation of the index.

        Args:
            read: what is kept of the document of a slot.
        """

    def make_way(self) -> None:
        """A call begins: what is done in the background waits for a moment."""

    def use(self, paths: Sequence[str]) -> None:
        """These documents are asked for: what is not known of them is wanted first."""


class MeaningPart(NamedTuple):
    """What meaning gave one result."""

    similarity: float
    """Of its nearest section; 0 while it has no vectors."""
    weight: float
    """What meaning counted against words."""
    words: float
    """What the words gave, between the last and the first of all candidates."""
    is_alone: bool
    """Whether no word of the query led to it."""
    section: int = -1
    """Its nearest section, -1 while it has no vectors."""


class Fused(NamedTuple):
    """The candidates of both sides."""

    ranking: Ranking
    verdict: Verdict
    parts: dict[int, MeaningPart]
    """What meaning gave, by slot; empty where meaning was not compared."""
    is_about_it: bool
    """Whether some of them are about what a task is about."""


def fuse(
    words: Fused,
    similarities: Similarities,
    allowed: Callable[[int], bool] | None,
    catalog: Catalog,
    possible: float,
    with_words: Callable[[Collection[int]], Collection[int]],
) -> Fused:
    """The candidates of words and of meaning in one order, with one verdict.

    Args:
        words: what the words alone found.
        possible: the summed rarity of all that was asked for.
        with_words: which of some documents hold any of the words.
    """
    nearest = similarities.best(CANDIDATES, allowed)
    if not nearest or possible <= 0:
        return words
    bounds, verdict, weight = similarities.bounds, words.verdict, WEIGHTS[words.verdict]
    by_words = {one.slot: one for one in words.ranking.best}
    known = {slot: similarities.of(slot) for slot in by_words}
    known |= {one.slot: one for one in nearest if one.similarity > bounds.far}
    met = with_words(known.keys() - by_words.keys())
    word_shares = _shares({slot: one.strength for slot, one in by_words.items()})
    near_shares = _shares({slot: one.similarity for slot, one in known.items() if one is not None})
    scored: list[tuple[float, str, Ranked]] = []
    parts: dict[int, MeaningPart] = {}
    for slot, near in known.items():
        share = word_shares.get(slot, 0.0)
        # What has no vector yet is neither raised nor lowered.
        meaning = near_shares.get(slot, share) * standing_of(catalog.entry(slot))
        similarity, section = (near.similarity, near.section) if near else (0.0, -1)
        is_alone = slot not in by_words and slot not in met
        parts[slot] = MeaningPart(similarity, weight, round(share, 4), is_alone, section)
        ranked = by_words.get(slot)
        one = _joined(ranked, near, verdict, bounds, possible) if near else by_words[slot]
        total = round((1 - weight) * share + weight * meaning, 6)
        scored.append((-total, catalog.entry(slot).path, one))
    scored.sort(key=lambda one: one[:2])
    best = _falling([one for _, _, one in scored])
    alone = sum(part.is_alone for part in parts.values())
    ranking = Ranking(best, words.ranking.total + alone, words.ranking.complete)
    nearest_of_all = nearest[0].similarity
    is_about_it = words.is_about_it or nearest_of_all >= bounds.near
    return Fused(ranking, _judged(verdict, nearest_of_all, bounds), parts, is_about_it)


def _judged(verdict: Verdict, similarity: float, bounds: Bounds) -> Verdict:
    """The verdict of both: what only meaning finds is partly an answer unless it is very near."""
    if similarity >= bounds.very_near:
        return "yes"
    return "partly" if verdict == "no" and similarity >= bounds.near else verdict


def _joined(
    by_words: Ranked | None,
    near: Near,
    verdict: Verdict,
    bounds: Bounds,
    possible: float,
) -> Ranked:
    """A candidate with the section and the strength that the side gives it which knows better."""
    share = min(1.0, max(0.0, (near.similarity - bounds.far) / (bounds.very_near - bounds.far)))
    strength = -math.log1p(-ALONE * share) * STRENGTH * possible
    if by_words is None:
        return Ranked(near.slot, strength, near.section, 0.0, 0.0)
    if verdict == "yes" or by_words.section < 0:
        return by_words._replace(strength=max(strength, by_words.strength))
    second = by_words.section if by_words.section != near.section else by_words.second
    return by_words._replace(
        strength=max(strength, by_words.strength), section=near.section, second=second
    )


def _shares(values: dict[int, float]) -> dict[int, float]:
    """Values between the least, which is 0, and the greatest, which is 1."""
    if not values:
        return {}
    least, most = min(values.values()), max(values.values())
    span = most - least
    return {slot: (value - least) / span if span else 1.0 for slot, value in values.items()}


def _falling(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The same with strengths that never rise down the list."""
    most = math.inf
    falling: list[Ranked] = []
    for one in ranked:
        most = min(most, one.strength)
        falling.append(one._replace(strength=most))
    return falling
