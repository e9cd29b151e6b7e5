"""Documents in another order than by relevance: all that filters leave, or all that match."""

from collections.abc import Sequence
from dataclasses import replace

from sage.deadline import Deadline
from sage.search.document_filter import Allows
from sage.search.index_reader import IndexReader, Wanted
from sage.search.ranking import Ranker
from sage.search.scoring import shown_score
from sage.search.sections import (
    Found,
    FoundSections,
    Highlights,
    IndexedDocuments,
    SearchOptions,
    highlights_of,
)
from sage.values import DATE


class DocumentLists:
    """Lists the documents of one generation of the index. Safe to share between threads."""

    def __init__(
        self,
        ranker: Ranker,
        reader: IndexReader,
        documents: IndexedDocuments,
        sections: FoundSections,
    ) -> None:
        self._ranker = ranker
        self._reader = reader
        self._entries = ranker.catalog.slots
        self._documents = documents
        self._sections = sections

    def all_allowed(
        self, allowed: Allows | None, notes: Sequence[str], options: SearchOptions
    ) -> Found:
        """All documents that pass the filters, when there is nothing else to rank by."""
        slots = [slot for slot in range(len(self._entries)) if allowed is None or allowed(slot)]
        self._sort(slots, options.sort)
        nothing = Highlights({}, ())
        shown = slots[options.offset : options.end]
        self._documents.fetch(shown)
        sections = [
            self._sections.one(
                slot, 0 if self._entries[slot].indexed_sections else -1, 1.0, nothing
            )
            for slot in shown
        ]
        return Found(
            sections,
            len(slots),
            "yes" if slots else "no",
            note="; ".join(notes),
            paged=True,
            offset=options.offset,
            more=len(slots) > options.end,
        )

    def all_matching(
        self,
        found: Found,
        wanted: Wanted,
        allowed: Allows | None,
        possible: float,
        options: SearchOptions,
        deadline: Deadline,
    ) -> Found:
        """Every document that matches, by date or path, each by its best section.

        Args:
            found: what is known of all of them.
            wanted: what was asked of the index.
            possible: the summed rarity of all that was asked for.
        """
        concepts = wanted.concepts
        every = self._reader.every(wanted)
        if every is None:
            slots = list(self._ranker.matching(concepts, allowed))
        else:
            slots = [slot for slot in every if allowed is None or allowed(slot)]
        self._sort(slots, options.sort)
        places = {slot: place for place, slot in enumerate(slots[options.offset : options.end])}
        if every is not None:
            self._reader.gather(Wanted(concepts, among=places.keys()))
            self._ranker.forget()
        ranking = self._ranker.rank(
            concepts, places.__contains__, len(places), deadline, self._documents
        )
        best = sorted(ranking.best, key=lambda one: places[one.slot])
        highlights = highlights_of(self._ranker.matches, concepts)
        self._documents.fetch(one.slot for one in best)
        sections = [
            self._sections.one(
                one.slot, one.section, shown_score(one.strength, possible), highlights
            )
            for one in best
        ]
        return replace(found, sections=sections, more=len(slots) > options.end)

    def _sort(self, slots: list[int], order: str) -> None:
        """By path, and by date with the newest first."""
        slots.sort(key=lambda slot: self._entries[slot].path)
        if order == DATE:
            slots.sort(key=lambda slot: self._entries[slot].updated, reverse=True)
