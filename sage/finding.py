"""Answers queries from one generation of the index: results, notes, and reasons.

What a query means is the asking's; which documents are best the ranking's.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sage.answers import SearchResult
from sage.asking import Allows, Asked, Asker
from sage.deadline import Deadline
from sage.explaining import Explanation, explain
from sage.files import Stamp
from sage.index import PostingReader
from sage.ranking import Ranked, Ranker, Ranking
from sage.snippets import owners_of, shortened, snippet
from sage.vocabulary import Vocabulary
from sage.worth import shown_score

NOTHING_ASKED = "the query holds no word to search for"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    results: list[SearchResult]
    total: int
    note: str
    complete: bool


class RankedSection(NamedTuple):
    """A section that fits a text, wherever it is."""

    path: str
    ordinal: int
    """Its place in the document's sections."""
    score: float


class Finder:
    """Searches one generation. Safe to share between threads."""

    def __init__(
        self,
        ranker: Ranker,
        reader: PostingReader,
        vocabulary: Vocabulary,
        synonyms: Mapping[str, Sequence[str]],
        layers: Collection[str],
    ) -> None:
        self.ranker = ranker
        self.catalog = ranker.catalog
        self.asker = Asker(ranker, vocabulary, synonyms, layers)
        self._reader = reader

    def search(
        self,
        text: str,
        limit: int,
        layers: Collection[str] | None,
        deadline: Deadline,
        current: Mapping[str, Stamp] | None = None,
    ) -> Found:
        """The best documents for a query, each by its best section.

        With `current`, only documents that still are as they were indexed.
        """
        asked = self.asker.ask(text, layers, deadline)
        if current is not None:
            asked = replace(asked, allowed=self._unchanged(asked.allowed, current))
        if not asked.concepts and not asked.missing and any(asked.query.filters):
            return self._listed(asked, limit)
        ranking = self.ranker.rank(asked.concepts, asked.allowed, limit, deadline)
        results = self._results(asked, ranking.best)
        return Found(results, ranking.total, self._note(asked, ranking), ranking.complete)

    def rank_sections(
        self, text: str, limit: int, layers: Collection[str] | None, deadline: Deadline
    ) -> list[RankedSection]:
        """The best sections of all documents for a text."""
        asked = self.asker.ask(text, layers, deadline)
        ranking = self.ranker.rank(asked.concepts, asked.allowed, limit, deadline)
        found = [
            RankedSection(
                self.catalog.slots[ranked.slot].path,
                self.catalog.slots[ranked.slot].sections[place].ordinal,
                shown_score(strength, asked.possible),
            )
            for ranked in ranking.best
            for place, strength in self.ranker.section_strengths(ranked, asked.concepts).items()
        ]
        found.sort(key=lambda section: (-section.score, section.path, section.ordinal))
        return found[:limit]

    def explain(
        self, text: str, limit: int, layers: Collection[str] | None, deadline: Deadline
    ) -> list[Explanation]:
        """The same documents as `search` gives, each taken apart."""
        asked = self.asker.ask(text, layers, deadline)
        ranking = self.ranker.rank(asked.concepts, asked.allowed, limit, deadline)
        return [
            explain(
                self.ranker,
                ranked,
                asked.concepts,
                self._heading(ranked),
                shown_score(ranked.strength, asked.possible),
            )
            for ranked in ranking.best
        ]

    def _unchanged(self, allowed: Allows | None, current: Mapping[str, Stamp]) -> Allows:
        slots = self.catalog.slots
        return lambda slot: (
            current.get(slots[slot].path) == slots[slot].stamp
            and (allowed is None or allowed(slot))
        )

    def _listed(self, asked: Asked, limit: int) -> Found:
        """All documents that pass the filters, when there is nothing else to rank by."""
        slots = [
            slot
            for slot in range(len(self.catalog.slots))
            if asked.allowed is None or asked.allowed(slot)
        ]
        slots.sort(key=lambda slot: self.catalog.slots[slot].path)
        ranked = [
            Ranked(slot, 1.0, 0 if self.catalog.slots[slot].sections else -1, 0.0, 0.0)
            for slot in slots[:limit]
        ]
        results = self._results(asked, ranked)
        return Found(results, len(slots), "; ".join(asked.notes), True)

    def _heading(self, ranked: Ranked) -> str:
        card = self.catalog.slots[ranked.slot]
        return card.sections[ranked.section].heading if ranked.section >= 0 else ""

    def _results(self, asked: Asked, ranked: Sequence[Ranked]) -> list[SearchResult]:
        owners = owners_of([[form for form, _ in concept.forms] for concept in asked.concepts])
        rarities = [self.ranker.matches(concept).rarity for concept in asked.concepts]
        return [
            self._result(one, asked.possible, self._snippet(one, owners, rarities))
            for one in ranked
        ]

    def _result(self, ranked: Ranked, possible: float, shown: str) -> SearchResult:
        card = self.catalog.slots[ranked.slot]
        section = card.sections[ranked.section] if ranked.section >= 0 else None
        return SearchResult(
            path=card.path,
            title=card.title,
            snippet=shown,
            score=shown_score(ranked.strength, possible),
            layer=card.layer,
            topic=f"{card.topic}#{section.anchor}" if section and section.anchor else card.topic,
            heading=self._heading(ranked),
            lines=[section.start_line, section.end_line] if section else [1, 1],
            tokens=section.tokens if section else 0,
        )

    def _snippet(self, ranked: Ranked, owners: Mapping[str, int], rarities: Sequence[float]) -> str:
        card = self.catalog.slots[ranked.slot]
        if ranked.section < 0:
            return shortened(card.summary or card.title)
        text = self._reader.text(self.catalog.first_rows[ranked.slot] + 1 + ranked.section)
        return snippet(text, owners, rarities, card.summary or card.title)

    def _note(self, asked: Asked, ranking: Ranking) -> str:
        notes = list(asked.notes)
        if not asked.concepts and not asked.missing:
            notes.append(NOTHING_ASKED)
        if not ranking.total and asked.missing:
            nearest = self.asker.suggest(asked.missing)
            if nearest:
                notes.append(f"nearest words: {', '.join(nearest)}")
        return "; ".join(notes)
