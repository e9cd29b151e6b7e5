"""Why a result ranks where it does: what each word and each field gave it."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sage.deadline import Deadline
from sage.search.fusion import Fused, MeaningPart
from sage.search.query import Concept
from sage.search.ranking import Ranker
from sage.search.scoring import (
    DOCUMENT_K1,
    SECTION_BOOSTS,
    UNIT,
    Ranked,
    shown_score,
    standing_of,
)
from sage.search.searcher import MOST_RANKED, SPARE, InterpretedQuery, Searcher
from sage.search.sections import SearchOptions
from sage.terms.postings import SECTION_FIELDS


class WordShare(NamedTuple):
    """What one word of the query gave one result."""

    word: str
    forms: tuple[str, ...]
    """The written forms that were searched for it."""
    documents: int
    """How many documents hold it."""
    rarity: float
    fields: dict[str, float]
    """Strength by field; the best section's own is `section`."""


class Explanation(NamedTuple):
    """One result taken apart."""

    path: str
    heading: str
    score: float
    document_part: float
    """From the whole document: every field."""
    section_part: float
    """From its best sections, nearness included."""
    standing: float
    """What both are multiplied by: less than 1 for index pages and pages that are not current."""
    shares: tuple[WordShare, ...]
    meaning: MeaningPart | None = None
    """What its meaning gave; None where meaning was not compared."""
    place: int = 0
    """Its number among all results; 0 when it is none of them."""


def _explain(
    ranker: Ranker,
    ranked: Ranked,
    concepts: Sequence[Concept],
    heading: str,
    score: float,
    meaning: MeaningPart | None = None,
    place: int = 0,
) -> Explanation:
    """Take one result apart."""
    entry = ranker.catalog.entry(ranked.slot)
    return Explanation(
        path=entry.path,
        heading=heading,
        score=score,
        document_part=ranked.document_part,
        section_part=ranked.section_part,
        standing=standing_of(entry),
        shares=tuple(_share(ranker, ranked, concept) for concept in concepts),
        meaning=meaning,
        place=place,
    )


def _share(ranker: Ranker, ranked: Ranked, concept: Concept) -> WordShare:
    matches = ranker.matches(concept)
    weight = matches.rarity * concept.weight
    fields = {name: weight * score for name, score in _fields(ranker, ranked.slot, concept)}
    row = ranker.catalog.first_rows[ranked.slot] + 1 + ranked.section
    section = ranker.sections([ranked.slot], [(matches, concept.weight)])[ranked.slot].get(row)
    if section:
        fields["section"] = ranker.stats.best_section * section
    forms = tuple(form for form, _ in concept.forms)
    documents = ranker.documents_with(concept)
    return WordShare(concept.name, forms, documents, matches.rarity, fields)


def _fields(ranker: Ranker, slot: int, concept: Concept) -> list[tuple[str, float]]:
    counts = _counts(ranker, slot, concept)
    stats = ranker.stats
    total = sum(counts.get(name, 0.0) for name in SECTION_FIELDS)
    saturated = (DOCUMENT_K1 + 1) / (total + stats.document_norms[slot])
    return [
        (
            name,
            count * saturated if name in SECTION_FIELDS else stats.field_score(name, count, slot),
        )
        for name, count in counts.items()
    ]


def _counts(ranker: Ranker, slot: int, concept: Concept) -> dict[str, float]:
    """How often a concept stands in each field of a document."""
    first = ranker.catalog.first_rows[slot]
    last = first + ranker.catalog.entry(slot).rows
    counts: dict[str, float] = {}
    for form, value in concept.forms:
        for name in ranker.fields(form):
            for base, found in ranker.occurrences(name, form):
                start = bisect_left(found.rows, first - base)
                held = sum(found.counts[start : bisect_left(found.rows, last - base)])
                if held:
                    boost = value * SECTION_BOOSTS.get(name, 10) / UNIT
                    counts[name] = counts.get(name, 0.0) + held * boost
    return counts


def explain_ranking(
    searcher: Searcher, text: str, path: str, options: SearchOptions, deadline: Deadline
) -> list[Explanation]:
    """Why the results of a query rank as they do; with a path why that page does, if indexed."""
    if not path:
        return explain_results(searcher, text, options, deadline)
    one = explain_page(searcher, text, path, options, deadline)
    return [one] if one else []


def explain_results(
    searcher: Searcher, text: str, options: SearchOptions, deadline: Deadline
) -> list[Explanation]:
    """Why the results of a query rank as they do, in the same order."""
    asked = searcher.interpret(text, options.layers, deadline, options.filters, depth=options.limit)
    fused = searcher.fused(text, asked, options.limit + SPARE, deadline)
    best = fused.ranking.best[: options.limit]
    return [_explained(searcher, asked, fused, *one) for one in enumerate(best, 1)]


def explain_page(
    searcher: Searcher, text: str, path: str, options: SearchOptions, deadline: Deadline
) -> Explanation | None:
    """Why one document is where it is among all results; None when it is not indexed."""
    slots = searcher.catalog.slots
    slot = searcher.catalog.places.get(path)
    if slot is None:
        return None
    asked = searcher.interpret(text, options.layers, deadline, options.filters, depth=MOST_RANKED)
    fused = searcher.fused(text, asked, len(slots), deadline)
    found = enumerate(fused.ranking.best, 1)
    nowhere = (0, Ranked(slot, 0.0, -1, 0.0, 0.0))
    here = next((one for one in found if one[1].slot == slot), nowhere)
    return _explained(searcher, asked, fused, *here)


def _explained(
    searcher: Searcher, asked: InterpretedQuery, fused: Fused, place: int, ranked: Ranked
) -> Explanation:
    sections = searcher.documents.document(ranked.slot).sections
    return _explain(
        searcher.ranker,
        ranked,
        asked.concepts,
        sections[ranked.section].heading if ranked.section >= 0 else "",
        shown_score(ranked.strength, asked.possible) if place else 0.0,
        fused.parts.get(ranked.slot),
        place,
    )
