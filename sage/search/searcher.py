"""Searches one generation of the index: what a query means there, and what was found.

Which documents a query allows is the document filter's, which of them are best the ranking's, how
much of them an answer shows the answering's.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from sage.deadline import Deadline
from sage.documents.document import Page
from sage.documents.files import Stamp
from sage.search import query
from sage.search.document_filter import UNRESTRICTED, Allows, DocumentFilter, stand_together
from sage.search.fusion import Fused, Meaning, fuse
from sage.search.index_reader import IndexReader, Wanted
from sage.search.lists import DocumentLists
from sage.search.query import (
    JOINED,
    MAX_TERMS,
    NO_FILTERS,
    Concept,
    Filters,
    FilterValues,
    Interpreter,
    Query,
    Words,
)
from sage.search.ranking import Ranker, Ranking
from sage.search.scoring import (
    JUDGED,
    Ranked,
    gather_evidence,
    is_about_something,
    judge,
    rarity,
    shown_score,
)
from sage.search.sections import (
    Found,
    FoundSections,
    IndexedDocuments,
    SearchOptions,
    highlights_of,
)
from sage.terms.analysis import Analyzer
from sage.terms.index_file import UntrustedIndex
from sage.terms.languages import language_of, marks_of
from sage.terms.spelling import RealWords
from sage.values import RELEVANCE

NOT_BUILT = "the index is still being built"
NO_DOCUMENTS = "no document is indexed"
NO_WORDS = "the query holds no word to search for"
MOST_RANKED = 1_000
BEYOND = f"only the best {MOST_RANKED:,} are ranked: narrow the query, or sort by date or path"
_SHOWN_MISSING = 8
_SECTIONS_OF_ONE = 3
"""Sections of one document that a ranking of sections has room for."""
SPARE = 20
"""Documents that are ranked beyond the limit, to take the places of copies."""
_LEAST_MARKS = 3
"""Words of a language that are somewhere when a page is written in it."""


class RankedSection(NamedTuple):
    """A section that fits a text, wherever it is."""

    path: str
    ordinal: int
    """Its place in the document's sections."""
    score: float
    held: float = 1.0
    """How much of what was asked it holds itself, by rarity; a score also counts its page's."""
    by_meaning: bool = False
    """Whether no word of the text led to its page."""


class RankedSections(NamedTuple):
    """The sections that fit a text, best first."""

    sections: Sequence[RankedSection]
    is_about_it: bool
    """Whether some of them are about what the text is about."""


@dataclass(frozen=True, slots=True)
class InterpretedQuery:
    """What a query means in one generation of the index."""

    query: Query
    concepts: tuple[Concept, ...]
    possible: float
    """The summed rarity of all that was asked for, found or not."""
    allowed: Allows | None
    """Which documents may be results; None when all may."""
    notes: tuple[str, ...]
    """What was searched in place of what was written."""
    missing: tuple[str, ...]
    """Words that no document holds."""
    wanted: Wanted
    """What was asked of the index."""
    total: int | None = None
    """How many documents hold any of it, where the engine counted them."""
    complete: bool = True
    """Whether all documents were looked at that may be results."""


class Searcher:
    """Searches one generation of the index. Safe to share between threads."""

    def __init__(
        self,
        ranker: Ranker,
        reader: IndexReader,
        vocabulary: Words,
        synonyms: Mapping[str, Sequence[str]],
        layers: Collection[str],
        english: RealWords,
        meaning: Meaning | None = None,
    ) -> None:
        self.ranker = ranker
        self.meaning = meaning
        self._english = english
        self.catalog = ranker.catalog
        self._reader = reader
        self._vocabulary = vocabulary
        self._layers = layers
        self._all_layers = frozenset(layers)
        self._analyzer = Analyzer()
        self._written_in: dict[str, bool] = {}
        # Nothing here leads back to the searcher: a generation that is over is freed at once.
        together = partial(stand_together, ranker, reader)
        self.interpreter = Interpreter(vocabulary, ranker.frequency, synonyms, english, together)
        self._filter = DocumentFilter(ranker, reader, self.interpreter)
        self.documents = IndexedDocuments(ranker.catalog, reader)
        self._found = FoundSections(ranker.catalog, self.documents)
        self._lists = DocumentLists(ranker, reader, self.documents, self._found)

    def search(
        self,
        text: str,
        options: SearchOptions,
        deadline: Deadline,
        current: Mapping[str, Stamp] | None = None,
    ) -> Found:
        """The best documents for a query, each by its best section; any text is a query.

        A text without words lists what the filters leave. With `current`, only documents that
        still are as they were indexed.
        """
        asked = self.interpret(
            text, options.layers, deadline, options.filters, depth=_depth(options)
        )
        if current is not None:
            asked = replace(asked, allowed=self._unchanged(asked.allowed, current))
        is_list = not text.strip() or any(asked.query.filters) or any(options.filters)
        if is_list and not asked.concepts and not asked.missing:
            listed = self._lists.all_allowed(asked.allowed, asked.notes, options)
            return replace(listed, complete=asked.complete)
        fused = self.fused(text, asked, min(options.end, MOST_RANKED) + SPARE, deadline)
        ranking = fused.ranking
        alone = {slot for slot, part in fused.parts.items() if part.is_alone}
        found = Found(
            [],
            ranking.total,
            fused.verdict,
            asked.missing[:_SHOWN_MISSING],
            self._note(text, asked, fused),
            ranking.complete,
            paged=options.is_part,
            offset=options.offset,
        )
        if options.sort != RELEVANCE:
            return self._lists.all_matching(
                found, asked.wanted, asked.allowed, asked.possible, options, deadline
            )
        highlights = highlights_of(self.ranker.matches, asked.concepts)
        sections = self._found.best(
            ranking.best, highlights, asked.possible, options.end + 1, alone
        )
        if self.meaning is not None:
            self.meaning.use([section.path for section in reversed(sections)])
        if options.offset and options.end > MOST_RANKED:
            found = replace(found, note="; ".join(filter(None, (found.note, BEYOND))))
        shown = sections[options.offset : options.end]
        return replace(found, sections=shown, more=len(sections) > options.end)

    def rank_sections(self, text: str, *, limit: int, deadline: Deadline) -> RankedSections:
        """The best sections of all documents for a free text, several of one document."""
        asked = self.interpret(text, None, deadline)
        fused = self.fused(text, asked, max(1, limit // _SECTIONS_OF_ONE), deadline)
        strengths = [
            (strength, ranked.slot, place)
            for ranked in fused.ranking.best
            for place, strength in self._section_strengths(asked, ranked, fused).items()
        ]
        self.documents.fetch(slot for _, slot, _ in strengths)
        entry = self.catalog.entry
        strengths.sort(key=lambda one: (-one[0], entry(one[1]).path, one[2]))
        sections = [
            RankedSection(
                entry(slot).path,
                self.documents.document(slot).sections[place].ordinal,
                shown_score(strength, asked.possible),
                self._held(asked, slot, place, fused),
                slot in fused.parts and fused.parts[slot].is_alone,
            )
            for strength, slot, place in strengths[:limit]
        ]
        return RankedSections(sections, fused.is_about_it)

    def interpret(
        self,
        text: str,
        layers: Collection[str] | None,
        deadline: Deadline,
        filters: Filters = NO_FILTERS,
        *,
        depth: int = 0,
    ) -> InterpretedQuery:
        """What a query asks for, and which documents it allows.

        Args:
            depth: how many documents will be ranked, where that is more than the best answers.
        """
        if layers is not None and self._all_layers.issubset(layers):
            layers = None
        parsed = query.parse(text, self._analyzer, self._filter_values)
        words, notes = parsed.words, list(parsed.notes)
        if len(words) > MAX_TERMS:
            words = self.interpreter.rarest(words)
            notes.append(f"{len(words)} of {len(parsed.words)} words were searched")
        understood = self.interpreter.understand(words, parsed.joined)
        notes += understood.changes
        held, wanted = UNRESTRICTED, Wanted(understood.concepts, depth=depth)
        allowed: Allows | None = None
        if layers is not None or any(filters) or parsed.restricts:
            filters = filters._replace(tag=self._filter.known_tags(filters.tag, notes))
            held = self._filter.restriction(parsed, words, understood.concepts, notes, deadline)
            wanted = self._filter.wanted(parsed, understood.concepts, layers, filters, held, depth)
            allowed = self._filter.allowed(parsed, layers, filters, held)
        total = self._reader.gather(wanted)
        possible = sum(
            self.ranker.rarity_of(concept) * concept.weight
            for concept in understood.concepts
            if concept.weight > JOINED
        ) + len(understood.missing) * rarity(0, self.ranker.stats.documents)
        return InterpretedQuery(
            parsed,
            understood.concepts,
            possible,
            allowed,
            tuple(notes),
            understood.missing,
            wanted,
            total,
            held.complete,
        )

    def _rank(self, asked: InterpretedQuery, limit: int, deadline: Deadline) -> Ranking:
        ranking = self.ranker.rank(asked.concepts, asked.allowed, limit, deadline, self.documents)
        total = ranking.total if asked.total is None else asked.total
        return ranking._replace(total=total, complete=ranking.complete and asked.complete)

    def fused(self, text: str, asked: InterpretedQuery, limit: int, deadline: Deadline) -> Fused:
        """The best documents by words and, where it is known, by meaning."""
        ranking = self._rank(asked, limit, deadline)
        evidence = gather_evidence(
            self.ranker.stats,
            [
                (concept, self.ranker.matches(concept))
                for concept in asked.concepts
                if concept.weight > JOINED
            ],
            len(asked.missing),
            asked.possible,
            ranking.best,
            [self.ranker.row_of(one) for one in ranking.best[:JUDGED]],
            self._english.place,
        )
        words = Fused(ranking, judge(evidence), {}, is_about_something(evidence))
        if self.meaning is None or not asked.possible:
            return words
        similarities = self.meaning.compare(text, self.catalog)
        if similarities is None:
            return words
        return fuse(
            words,
            similarities,
            asked.allowed,
            self.catalog,
            asked.possible,
            partial(self._with_words, asked),
        )

    def _with_words(self, asked: InterpretedQuery, slots: Collection[int]) -> set[int]:
        """Which of some documents hold any word of a query."""
        wanted = frozenset(slots)
        held = (wanted.intersection(self.ranker.matches(one).slots) for one in asked.concepts)
        at_hand = set().union(*held)
        return at_hand.union(self._reader.holders(wanted - at_hand))

    def _section_strengths(
        self, asked: InterpretedQuery, ranked: Ranked, fused: Fused
    ) -> dict[int, float]:
        """What the sections of a document are worth: those with the words, and the nearest."""
        strengths = self.ranker.section_strengths(ranked, asked.concepts)
        part = fused.parts.get(ranked.slot)
        if part is not None and part.section >= 0:
            known = strengths.get(part.section, 0.0)
            strengths[part.section] = max(known, ranked.strength)
        return strengths

    def _held(self, asked: InterpretedQuery, slot: int, place: int, fused: Fused) -> float:
        """The share of what was asked, by rarity, that a section holds in its words or means."""
        part = fused.parts.get(slot)
        if part is not None and part.section == place:
            return 1.0
        row = self.catalog.first_rows[slot] + 1 + place
        held = sum(
            self.ranker.rarity_of(concept) * concept.weight
            for concept in asked.concepts
            if concept.weight > JOINED and self.ranker.matches(concept).is_in(row)
        )
        return held / asked.possible if asked.possible else 0.0

    @cached_property
    def _filter_values(self) -> FilterValues:
        vocabulary, frequency = self._vocabulary, self.ranker.frequency
        return FilterValues(
            layers=self._layers,
            tags=self.catalog.tags,
            languages=self.catalog.languages,
            sources=self.catalog.sources,
            is_flag=lambda flag: flag in vocabulary and frequency(flag) > 0,
        )

    def _unchanged(self, allowed: Allows | None, current: Mapping[str, Stamp]) -> Allows:
        entry = self.catalog.entry
        return lambda slot: (
            current.get(entry(slot).path) == entry(slot).stamp
            and (allowed is None or allowed(slot))
        )

    def _note(self, text: str, asked: InterpretedQuery, fused: Fused) -> str:
        notes = list(asked.notes)
        if not self.catalog.first_rows:
            notes.append(NO_DOCUMENTS)
        if not asked.concepts and not asked.missing:
            notes.append(NO_WORDS)
        if not fused.ranking.total and asked.missing:
            nearest = self.interpreter.suggest(asked.missing)
            if nearest:
                notes.append(f"nearest words: {', '.join(nearest)}")
        language = "" if fused.verdict == "yes" else self._language_of_no_page(text)
        if language:
            notes.append(f"no page is written in {language}: ask in the language of the pages")
        return "; ".join(notes)

    def _language_of_no_page(self, text: str) -> str:
        """The language of a question, where no page is written in it and that matters."""
        if self.meaning is not None and self.meaning.is_multilingual:
            return ""
        language = language_of(text)
        if language and language not in self._written_in:
            found = sum(self.ranker.frequency(mark) > 0 for mark in marks_of(language))
            self._written_in[language] = found >= _LEAST_MARKS
        return "" if self._written_in.get(language, True) else language


def _depth(options: SearchOptions) -> int:
    """How many documents will be ranked. All parts of a list are cut from the same ones."""
    return MOST_RANKED + SPARE if options.offset else options.limit


@dataclass(slots=True)
class IndexSnapshot:
    """The index as one update left it, to be searched by the caller of that update."""

    searcher: Searcher
    current: Mapping[str, Stamp] | None = None
    """The files as the caller knows them, when the index could not be brought to them."""
    behind: str = ""
    """How the index differs from the files; empty when it does not."""
    distrust: Callable[[UntrustedIndex], None] = lambda _: None
    """Told when the index turns out to be damaged while it is searched."""
    meaning: int = 0
    """Another number whenever meaning may answer otherwise."""
    stands: bool = False
    """Whether it is right for every call that sees the same files. Taken back by whoever made it
    when anything else makes it wrong."""

    def search(self, text: str, options: SearchOptions, deadline: Deadline) -> Found:
        """The best documents for a query, none of them outdated; any text is a query.

        Raises:
            UntrustedIndex: what is kept is damaged.
        """
        if self.behind == NOT_BUILT:
            return Found([], 0, "no", note=NOT_BUILT, complete=False)
        found = self.searcher.search(text, options, deadline, self.current)
        if not self.behind:
            return found
        note = "; ".join(filter(None, (found.note, self.behind)))
        return replace(found, note=note, complete=False)

    def rank_sections(self, text: str, *, limit: int, deadline: Deadline) -> RankedSections:
        """The best sections of all documents for a free text.

        Raises:
            UntrustedIndex: what is kept is damaged.
        """
        return self.searcher.rank_sections(text, limit=limit, deadline=deadline)

    def page(self, path: str, deadline: Deadline) -> Page | None:
        """A page as it was indexed; None when it is there no longer, or no longer as it was.

        Raises:
            UntrustedIndex: what is kept is damaged.
        """
        del deadline
        entry = self.searcher.catalog.entries.get(path)
        if entry is None or (self.current is not None and self.current.get(path) != entry.stamp):
            return None
        return self.searcher.documents.page(path)
