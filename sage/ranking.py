"""Which documents answer best: by all their words first, then by the sections of the best ones.

BM25 over documents with the other fields added, plus the best section's own BM25 and how near the
words stand in it. The constants are in worth.py; texts and results are not its part.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise
from typing import NamedTuple

from sage.catalog import Catalog
from sage.concepts import Concept
from sage.deadline import Deadline
from sage.postings import DOCUMENT_FIELDS, SECTION_FIELDS, Postings, unpack
from sage.worth import (
    BEST_SECTION,
    CANDIDATES,
    DOCUMENT_K1,
    NEAR_SECTIONS,
    NEAR_WORDS,
    NEARNESS,
    SECOND_SECTION,
    SECTION_BOOSTS,
    SECTION_K1,
    UNIT,
    Scale,
    rarity,
    standing,
)

_CACHED_POSTINGS = 1_000_000

Occurrences = Callable[[str, str], Iterable[tuple[int, Postings]]]
"""The postings of a form in a field, by segments: first row and what is counted from there."""


@dataclass(slots=True)
class Matches:
    """Everything about one concept in one generation of the index."""

    sections: dict[int, list[tuple[int, float]]]
    """For each slot the rows of the sections that hold it and how often."""
    places: dict[int, bytes]
    """For each row where it stands in the body, packed."""
    impacts: dict[int, float]
    """For each slot what it is worth there, before rarity."""
    rarity: float
    section_rarity: float

    @property
    def size(self) -> int:
        """Roughly what it costs to keep."""
        return len(self.impacts) + sum(map(len, self.sections.values()))


Weighed = tuple[Matches, float]


class Ranked(NamedTuple):
    """A document with its score and its best section."""

    slot: int
    strength: float
    section: int
    """Place among the sections of its card, -1 when it has none."""
    document_part: float
    section_part: float


class Ranking(NamedTuple):
    """The best documents of a query."""

    best: list[Ranked]
    total: int
    complete: bool


class Ranker:
    """Ranks the documents of one generation. Safe to share: what it remembers only grows."""

    def __init__(
        self, catalog: Catalog, occurrences: Occurrences, fields: Callable[[str], Sequence[str]]
    ) -> None:
        self.catalog = catalog
        self.scale = Scale(catalog)
        self.occurrences = occurrences
        self.fields = fields
        self._known: dict[tuple[tuple[str, int], ...], Matches] = {}
        self._frequencies: dict[str, int] = {}
        self._size = 0

    def matches(self, concept: Concept) -> Matches:
        """Where a concept occurs and what it is worth there."""
        known = self._known.get(concept.forms)
        if known is None:
            known = self._gather(concept.forms)
            self._size += known.size
            if self._size > _CACHED_POSTINGS:
                self._known.clear()
                self._size = known.size
            self._known[concept.forms] = known
        return known

    def frequency(self, form: str) -> int:
        """In how many documents a form occurs."""
        known = self._frequencies.get(form)
        if known is None:
            owners = self.catalog.owners
            slots = {
                owners[base + row]
                for name in self.fields(form)
                for base, found in self.occurrences(name, form)
                for row in found.rows
            }
            known = self._frequencies[form] = len(slots - {-1})
        return known

    def rank(
        self,
        concepts: Sequence[Concept],
        allowed: Callable[[int], bool] | None,
        limit: int,
        deadline: Deadline,
    ) -> Ranking:
        """The best documents among the allowed ones, each with its best section."""
        totals: dict[int, float] = {}
        complete = True
        weighed: list[Weighed] = []
        for concept in concepts:
            if deadline.expired:
                complete = False
                break
            matches = self.matches(concept)
            weighed.append((matches, concept.weight))
            weight = matches.rarity * concept.weight
            for slot, worth in matches.impacts.items():
                totals[slot] = totals.get(slot, 0.0) + weight * worth
        if allowed is not None:
            totals = {slot: total for slot, total in totals.items() if allowed(slot)}
        slots = self.catalog.slots
        candidates = nlargest(
            max(CANDIDATES, 2 * limit),
            totals.items(),
            key=lambda pair: (pair[1] * standing(slots[pair[0]]), slots[pair[0]].path),
        )
        scored = {slot: self.sections(slot, weighed) for slot, _ in candidates}
        if not deadline.expired:
            self._add_nearness(scored, weighed)
        ranked = [self._ranked(slot, total, scored[slot]) for slot, total in candidates]
        ranked.sort(key=lambda one: (-one.strength, slots[one.slot].path))
        return Ranking(ranked[:limit], len(totals), complete and not deadline.expired)

    def sections(self, slot: int, weighed: Sequence[Weighed]) -> dict[int, float]:
        """What each section of a document is worth, by its row."""
        scores: dict[int, float] = {}
        least, ratio = self.scale.section_least, self.scale.section_ratio
        lengths = self.catalog.row_lengths
        for matches, weight in weighed:
            held = matches.sections.get(slot)
            if held:
                factor = matches.section_rarity * weight * (SECTION_K1 + 1)
                for row, count in held:
                    worth = factor * count / (count + least + ratio * lengths[row])
                    scores[row] = scores.get(row, 0.0) + worth
        return scores

    def section_strengths(self, ranked: Ranked, concepts: Sequence[Concept]) -> dict[int, float]:
        """What each matching section of a ranked document is worth beside those of others."""
        weighed = [(self.matches(concept), concept.weight) for concept in concepts]
        factor = standing(self.catalog.slots[ranked.slot])
        first = self.catalog.first_rows[ranked.slot] + 1
        return {
            row - first: (ranked.document_part + BEST_SECTION * worth) * factor
            for row, worth in self.sections(ranked.slot, weighed).items()
        }

    def _ranked(self, slot: int, total: float, sections: Mapping[int, float]) -> Ranked:
        best_row, best, second = -1, 0.0, 0.0
        for row, worth in sections.items():
            if worth > best or (worth == best and row < best_row):
                best_row, best, second = row, worth, best
            elif worth > second:
                second = worth
        card = self.catalog.slots[slot]
        part = BEST_SECTION * best + SECOND_SECTION * second
        place = best_row - self.catalog.first_rows[slot] - 1 if best_row >= 0 else 0
        place = place if card.sections else -1
        return Ranked(slot, (total + part) * standing(card), place, total, part)

    def _add_nearness(
        self, scored: Mapping[int, dict[int, float]], weighed: Sequence[Weighed]
    ) -> None:
        """Raise the best sections by how near neighbours in the query stand to each other."""
        if len(weighed) < 2:
            return
        slots = self.catalog.slots
        rows = [(worth, slot, row) for slot, held in scored.items() for row, worth in held.items()]
        best = nlargest(NEAR_SECTIONS, rows, key=lambda one: (one[0], slots[one[1]].path, -one[2]))
        for _, slot, row in best:
            nearness = 0.0
            for (here, weight), (there, other_weight) in pairwise(weighed):
                one, other = here.places.get(row), there.places.get(row)
                if one and other:
                    distance = _least_distance(one, other)
                    if distance <= NEAR_WORDS:
                        least = min(here.rarity * weight, there.rarity * other_weight)
                        nearness += least / distance
            scored[slot][row] += NEARNESS * nearness

    def _gather(self, forms: Iterable[tuple[str, int]]) -> Matches:
        counts: dict[int, int] = {}
        body: dict[int, bytes] = {}
        fields: dict[int, dict[str, int]] = {}
        owners = self.catalog.owners
        for form, value in forms:
            for name in self.fields(form):
                in_section = name in SECTION_FIELDS
                boost = value * SECTION_BOOSTS.get(name, 10)
                for base, found in self.occurrences(name, form):
                    if in_section:
                        for row, places in zip(found.rows, found.places, strict=True):
                            row += base
                            counts[row] = counts.get(row, 0) + boost * (len(places) >> 1)
                            if name == "body":
                                body[row] = body[row] + places if row in body else places
                    else:
                        for row, places in zip(found.rows, found.places, strict=True):
                            slot = owners[base + row]
                            held = fields.setdefault(slot, {})
                            held[name] = held.get(name, 0) + boost * (len(places) >> 1)
        fields.pop(-1, None)
        return self._weighed(counts, fields, body)

    def _weighed(
        self,
        counts: Mapping[int, int],
        fields: Mapping[int, Mapping[str, int]],
        body: dict[int, bytes],
    ) -> Matches:
        catalog, scale = self.catalog, self.scale
        owners = catalog.owners
        sections: dict[int, list[tuple[int, float]]] = {}
        totals: dict[int, int] = {}
        held = 0
        for row, count in counts.items():
            slot = owners[row]
            if slot < 0:
                continue
            held += 1
            totals[slot] = totals.get(slot, 0) + count
            if slot in sections:
                sections[slot].append((row, count / UNIT))
            else:
                sections[slot] = [(row, count / UNIT)]
        norms = scale.document_norms
        impacts = {
            slot: total * (DOCUMENT_K1 + 1) / (total + norms[slot] * UNIT)
            for slot, total in totals.items()
        }
        for slot, names in fields.items():
            card = catalog.slots[slot]
            worth = sum(
                scale.field_worth(name, names[name] / UNIT, card)
                for name in DOCUMENT_FIELDS
                if name in names
            )
            impacts[slot] = impacts.get(slot, 0.0) + worth
        return Matches(
            sections,
            body,
            impacts,
            rarity(len(impacts), scale.documents),
            rarity(held, scale.sections),
        )


def _least_distance(one: bytes, other: bytes) -> int:
    """The number of words from one to the other; one more against the order of the query."""
    here, there = sorted(unpack(one)), sorted(unpack(other))
    best = NEAR_WORDS + 1
    i = j = 0
    while i < len(here) and j < len(there):
        gap = there[j] - here[i]
        if gap > 0:
            best = min(best, gap)
            i += 1
        else:
            best = min(best, 1 - gap)
            j += 1
    return best
