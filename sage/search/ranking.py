"""Which documents answer best: by all their words first, then by the sections of the best ones.

BM25 over documents with the other fields added, plus the best section's own BM25 and how near the
words stand in it. The constants are in scoring.py; texts and results are not its part.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple, Protocol

from sage.deadline import Deadline
from sage.search.catalog import Catalog
from sage.search.query import Concept, Forms
from sage.search.scoring import (
    CANDIDATES,
    DOCUMENT_K1,
    HEADING,
    LEAST_SAID,
    MOST_HEADINGS,
    NEAR_SECTIONS,
    NEAR_WORDS,
    NEARLY,
    NEARNESS,
    SECOND_SECTION,
    SECTION_BOOSTS,
    UNIT,
    CorpusStats,
    Ranked,
    least_distance,
    rarity,
)
from sage.search.sections import IndexedDocuments
from sage.terms.postings import DOCUMENT_FIELDS, SECTION_FIELDS, Postings

_MAX_MATCH_BYTES = 32_000_000
_MAX_FREQUENCIES = 100_000
_ROWS_A_SEARCH = 8
"""Rows that are looked at in the time in which one is searched for."""

Occurrences = Callable[[str, str], Iterable[tuple[int, Postings]]]
"""The postings of a form in a field, by segments: first row and what is counted from there."""


class Counts(Protocol):
    """How often words occur in all documents, where the occurrences show some of them only."""

    def frequency(self, form: str) -> int:
        """In how many documents a form occurs."""

    def holding(self, forms: Forms) -> tuple[int, int]:
        """How many documents and how many sections hold any of some forms."""


class RowLengths(Protocol):
    """The words of a row, by its number."""

    def __getitem__(self, row: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Matches:
    """Everything about one concept in one generation of the index."""

    rows: "array[int]"
    """The rows of the sections that hold it, in order."""
    counts: "array[int]"
    """How often each of them does, in parts of a unit."""
    slots: "array[int]"
    """The documents that hold it."""
    impacts: "array[float]"
    """What it is worth in each of them, before rarity."""
    headings: "array[int]"
    """The rows of those whose own heading holds it, in order."""
    body: tuple[tuple[int, Postings], ...]
    """Where it stands in the bodies of sections, by segments and forms."""
    rarity: float
    section_rarity: float

    def is_in(self, row: int) -> bool:
        """Whether a section holds it."""
        at = bisect_left(self.rows, row)
        return at < len(self.rows) and self.rows[at] == row

    @property
    def size_bytes(self) -> int:
        """Roughly what it costs to keep."""
        postings = sum(postings.size_bytes for _, postings in self.body)
        return 8 * len(self.rows) + 12 * len(self.slots) + postings + 1_000

    def places(self, row: int) -> list[int]:
        """Where it stands in the body of a row, in order."""
        found: list[int] = []
        for base, postings in self.body:
            rows, wanted = postings.rows, row - base
            at = bisect_left(rows, wanted)
            if at < len(rows) and rows[at] == wanted:
                found += postings.positions(at)
        return sorted(found)


Weighed = tuple[Matches, float]


class Ranking(NamedTuple):
    """The best documents of a query."""

    best: list[Ranked]
    total: int
    complete: bool


class Ranker:
    """Ranks the documents of one generation. Safe to share: what it remembers is bounded."""

    def __init__(
        self,
        catalog: Catalog,
        row_lengths: RowLengths,
        occurrences: Occurrences,
        fields: Callable[[str], Sequence[str]],
        *,
        stats: CorpusStats | None = None,
        counts: Counts | None = None,
    ) -> None:
        """Args:
        stats: those of the catalog, where they are known already.
        counts: None when the occurrences show all.
        """
        self.catalog = catalog
        self._row_lengths = row_lengths
        self.stats = stats or CorpusStats(catalog)
        self._all = counts
        self.occurrences = occurrences
        self.fields = fields
        self._known: dict[tuple[tuple[str, int], ...], Matches] = {}
        self._frequencies: dict[str, int] = {}
        self._bytes = 0

    def matches(self, concept: Concept) -> Matches:
        """Where a concept occurs and what it is worth there."""
        known = self._known.get(concept.forms)
        if known is None:
            known = self._gather(concept.forms)
            self._bytes += known.size_bytes
            if self._bytes > _MAX_MATCH_BYTES:
                self._known, self._bytes = {}, known.size_bytes
            self._known[concept.forms] = known
        return known

    def forget(self) -> None:
        """Drop what is remembered: the occurrences are those of other documents now."""
        self._known, self._bytes = {}, 0

    def rarity_of(self, concept: Concept) -> float:
        """How rare a concept is among the documents."""
        return rarity(self.documents_with(concept), self.stats.documents)

    def documents_with(self, concept: Concept) -> int:
        """In how many documents a concept occurs."""
        if self._all is None:
            return len(self.matches(concept).slots)
        return self._all.holding(concept.forms)[0]

    def frequency(self, form: str) -> int:
        """In how many documents a form occurs."""
        if self._all is not None:
            return self._all.frequency(form)
        known = self._frequencies.get(form)
        if known is None:
            owners = self.catalog.owners
            slots = {
                owners[base + row]
                for name in self.fields(form)
                for base, found in self.occurrences(name, form)
                for row in found.rows
            }
            known = len(slots - {-1})
            if len(self._frequencies) >= _MAX_FREQUENCIES:
                self._frequencies = {}
            self._frequencies[form] = known
        return known

    def rank(
        self,
        concepts: Sequence[Concept],
        allowed: Callable[[int], bool] | None,
        limit: int,
        deadline: Deadline,
        documents: IndexedDocuments,
    ) -> Ranking:
        """The best documents among the allowed ones, each with its best section.

        Args:
            documents: reads what is kept of them; few are read.
        """
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
            for slot, score in zip(matches.slots, matches.impacts, strict=True):
                totals[slot] = totals.get(slot, 0.0) + weight * score
        if allowed is not None:
            totals = {slot: total for slot, total in totals.items() if allowed(slot)}
        entry = self.catalog.entry
        candidates = self._candidates(totals, max(CANDIDATES, 2 * limit))
        scored = self.sections([slot for slot, _ in candidates], weighed)
        if not deadline.expired:
            self._add_nearness(scored, weighed)
            self._add_headings(scored, weighed, documents, [slot for slot, _ in candidates[:limit]])
        ranked = [self._ranked(slot, total, scored[slot]) for slot, total in candidates]
        ranked.sort(key=lambda one: (-one.strength, entry(one.slot).path))
        return Ranking(ranked[:limit], len(totals), complete and not deadline.expired)

    def row_of(self, ranked: Ranked) -> int:
        """The row of a document's best section."""
        return self.catalog.first_rows[ranked.slot] + 1 + ranked.section

    def matching(
        self, concepts: Sequence[Concept], allowed: Callable[[int], bool] | None
    ) -> set[int]:
        """The slots of all allowed documents that hold any of it."""
        slots = set().union(*(self.matches(concept).slots for concept in concepts))
        return {slot for slot in slots if allowed is None or allowed(slot)}

    def sections(
        self, slots: Collection[int], weighed: Sequence[Weighed]
    ) -> dict[int, dict[int, float]]:
        """What each section of some documents is worth: for each of them by its row."""
        scored: dict[int, dict[int, float]] = {slot: {} for slot in slots}
        stats, owners, lengths = self.stats, self.catalog.owners, self._row_lengths
        least, ratio = stats.section_least, stats.section_ratio
        for matches, weight in weighed:
            factor = matches.section_rarity * weight * (stats.section_k1 + 1)
            for row, held in self._rows_among(slots, matches):
                scores = scored.get(owners[row])
                if scores is not None:
                    count = held / UNIT
                    score = factor * count / (count + least + ratio * lengths[row])
                    scores[row] = scores.get(row, 0.0) + score
        return scored

    def _rows_among(self, slots: Collection[int], matches: Matches) -> Iterable[tuple[int, int]]:
        """The rows that hold a concept with their counts: those of some documents at least."""
        rows, counts = matches.rows, matches.counts
        # A row is looked at in less time than the first one of a document is looked for.
        if len(rows) <= _ROWS_A_SEARCH * len(slots):
            yield from zip(rows, counts, strict=True)
            return
        for slot in slots:
            first = self.catalog.first_rows[slot] + 1
            last = first + self.catalog.entry(slot).indexed_sections
            for place in range(bisect_left(rows, first), len(rows)):
                if rows[place] >= last:
                    break
                yield rows[place], counts[place]

    def section_strengths(self, ranked: Ranked, concepts: Sequence[Concept]) -> dict[int, float]:
        """What each matching section of a ranked document is worth beside those of others."""
        weighed = [(self.matches(concept), concept.weight) for concept in concepts]
        factor = self.stats.standings[ranked.slot]
        first = self.catalog.first_rows[ranked.slot] + 1
        return {
            row - first: (ranked.document_part + self.stats.best_section * score) * factor
            for row, score in self.sections([ranked.slot], weighed)[ranked.slot].items()
        }

    def _ranked(self, slot: int, total: float, sections: Mapping[int, float]) -> Ranked:
        best_row = second_row = -1
        best = second = 0.0
        for row, score in sections.items():
            if score > best or (score == best and row < best_row):
                second_row, second = best_row, best
                best_row, best = row, score
            elif score > second or (score == second and row < second_row):
                second_row, second = row, score
        entry = self.catalog.entry(slot)
        first = self.catalog.first_rows[slot] + 1
        part = self.stats.best_section * best + SECOND_SECTION * second
        place = best_row - first if best_row >= 0 else 0
        place = place if entry.indexed_sections else -1
        other = second_row - first if second and second >= NEARLY * best else -1
        strength = (total + part) * self.stats.standings[slot]
        return Ranked(slot, strength, place, total, part, other)

    def _add_headings(
        self,
        scored: Mapping[int, dict[int, float]],
        weighed: Sequence[Weighed],
        documents: IndexedDocuments,
        first: Sequence[int],
    ) -> None:
        """Raise the sections whose heading says what was asked, and little else."""
        asked = sum(matches.rarity * weight for matches, weight in weighed)
        said: dict[int, tuple[float, int]] = {}
        for matches, weight in weighed:
            for row in matches.headings:
                held, words = said.get(row, (0.0, 0))
                said[row] = (held + matches.rarity * weight, words + 1)
        owners = self.catalog.owners
        enough = [
            (held, words, row) for row, (held, words) in said.items() if held >= LEAST_SAID * asked
        ]
        enough = [one for one in enough if one[2] in scored.get(owners[one[2]], ())]
        most = nlargest(MOST_HEADINGS, enough)
        lengths = documents.heading_lengths([row for _, _, row in most], first) if most else ()
        for (held, words, row), length in zip(most, lengths, strict=True):
            # The title has a field of its own.
            if length:
                scored[owners[row]][row] += HEADING * held * min(1.0, words / length)

    def _add_nearness(
        self, scored: Mapping[int, dict[int, float]], weighed: Sequence[Weighed]
    ) -> None:
        """Raise the best sections by how near neighbours in the query stand to each other."""
        if len(weighed) < 2:
            return
        entry = self.catalog.entry
        rows = [(score, slot, row) for slot, held in scored.items() for row, score in held.items()]
        if len(rows) > NEAR_SECTIONS:
            least = sorted([score for score, _, _ in rows])[-NEAR_SECTIONS]
            rows = [one for one in rows if one[0] >= least]
        rows.sort(key=lambda one: (one[0], entry(one[1]).path, -one[2]), reverse=True)
        worth = [(matches, matches.rarity * weight) for matches, weight in weighed]
        for _, slot, row in rows[:NEAR_SECTIONS]:
            if sum(matches.is_in(row) for matches, _ in worth) < 2:
                continue  # most hold one word of the query, which is near to no other
            nearness = here = 0.0
            one: Sequence[int] = ()
            for matches, there in worth:
                other = matches.places(row)
                if one and other:
                    distance = least_distance(one, other)
                    if distance <= NEAR_WORDS:
                        nearness += min(here, there) / distance
                one, here = other, there
            scored[slot][row] += NEARNESS * nearness

    def _candidates(self, totals: Mapping[int, float], most: int) -> list[tuple[int, float]]:
        """The documents with the highest totals, their standing considered."""
        standings, entry = self.stats.standings, self.catalog.entry
        scores = [(total * standings[slot], slot) for slot, total in totals.items()]
        if len(scores) > most:
            # Most are far behind: only the rest is worth comparing by path as well.
            least = sorted(score for score, _ in scores)[-most]
            scores = [pair for pair in scores if pair[0] >= least]
        scores.sort(key=lambda pair: (pair[0], entry(pair[1]).path), reverse=True)
        return [(slot, totals[slot]) for _, slot in scores[:most]]

    def _gather(self, forms: Forms) -> Matches:
        counts: dict[int, int] = {}
        body: list[tuple[int, Postings]] = []
        headings: set[int] = set()
        fields: dict[int, dict[str, int]] = {}
        owners = self.catalog.owners
        for form, value in forms:
            for name in self.fields(form):
                in_section = name in SECTION_FIELDS
                boost = value * SECTION_BOOSTS.get(name, 10)
                for base, found in self.occurrences(name, form):
                    if name == "body":
                        body.append((base, found))
                    elif name == "headings":
                        headings.update(base + row for row in found.rows)
                    if in_section:
                        for row, count in zip(found.rows, found.counts, strict=True):
                            row += base
                            counts[row] = counts.get(row, 0) + boost * count
                    else:
                        for row, count in zip(found.rows, found.counts, strict=True):
                            held = fields.setdefault(owners[base + row], {})
                            held[name] = held.get(name, 0) + boost * count
        fields.pop(-1, None)
        return self._weighed(forms, counts, fields, tuple(body), headings)

    def _weighed(
        self,
        forms: Forms,
        counts: Mapping[int, int],
        fields: Mapping[int, Mapping[str, int]],
        body: tuple[tuple[int, Postings], ...],
        headings: Collection[int],
    ) -> Matches:
        stats, owners = self.stats, self.catalog.owners
        rows: list[int] = []
        totals: dict[int, int] = {}
        for row in sorted(counts):
            slot = owners[row]
            if slot >= 0:
                rows.append(row)
                totals[slot] = totals.get(slot, 0) + counts[row]
        norms, most = stats.document_norms, DOCUMENT_K1 + 1
        impacts = {
            slot: total * most / (total + norms[slot] * UNIT) for slot, total in totals.items()
        }
        for slot, names in fields.items():
            score = sum(
                stats.field_score(name, names[name] / UNIT, slot)
                for name in DOCUMENT_FIELDS
                if name in names
            )
            impacts[slot] = impacts.get(slot, 0.0) + score
        documents, sections = len(impacts), len(rows)
        if self._all is not None:
            documents, sections = self._all.holding(forms)
        # Of a list an array is made at once, of anything else number by number.
        return Matches(
            array("I", rows),
            array("I", [counts[row] for row in rows]),
            array("I", list(impacts)),
            array("d", list(impacts.values())),
            array("I", sorted(row for row in headings if owners[row] >= 0)),
            body,
            rarity(documents, stats.documents),
            rarity(sections, stats.sections),
        )
