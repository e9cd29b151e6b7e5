"""Which documents a query allows: by filters, by phrases they must hold, by words they must not."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sage.deadline import Deadline
from sage.errors import did_you_mean
from sage.search.catalog import DocumentEntry
from sage.search.index_reader import IndexReader, Wanted
from sage.search.query import Concept, Filters, Interpreter, Query
from sage.search.ranking import Ranker
from sage.terms.analysis import Word, terms_of
from sage.terms.postings import FIELDS

Allows = Callable[[int], bool]
"""Whether the document of a slot may be a result."""

PHRASE_SHARE = 0.5
"""What phrases may take of the time of a call: the rest is for what they leave."""
_PARTS_FOR_A_NAME = 3
"""Parts of a large index in which it is looked whether words stand together anywhere."""


class Restriction(NamedTuple):
    """What phrases and excluded words leave."""

    among: set[int] | None
    """The documents that hold the phrases; None without any."""
    without: set[int]
    """Those that hold what is excluded and is more than one word of letters."""
    excluded: set[int]
    """All that hold what is excluded."""
    complete: bool
    """Whether all documents were looked at."""


UNRESTRICTED = Restriction(None, set(), set(), complete=True)


class DocumentFilter:
    """Filters the documents of one generation of the index. Safe to share between threads."""

    def __init__(self, ranker: Ranker, reader: IndexReader, interpreter: Interpreter) -> None:
        self._ranker = ranker
        self._reader = reader
        self._interpreter = interpreter

    def known_tags(self, tags: Collection[str], notes: list[str]) -> frozenset[str]:
        """The tags as pages write them; one that no page has is noted and allows nothing."""
        if not tags:
            return frozenset()
        written: dict[str, set[str]] = {}
        for tag in self._ranker.catalog.tags:
            written.setdefault(tag.casefold(), set()).add(tag)
        for tag in sorted(tags):
            if tag.casefold() not in written:
                close = did_you_mean(tag.casefold()[:60], written)
                notes.append(f'no page has the tag "{tag[:60]}"{close}')
        return frozenset().union(*(written.get(tag.casefold(), {tag}) for tag in tags))

    def restriction(
        self,
        parsed: Query,
        words: Sequence[Word],
        concepts: Sequence[Concept],
        notes: list[str],
        deadline: Deadline,
    ) -> Restriction:
        """What phrases and excluded words leave. What was relaxed is noted.

        Args:
            words, concepts: what is looked for.
        """
        patience = deadline.part(PHRASE_SHARE)
        looked_for = {word.form for word in words}
        among = self._holding_phrases(parsed.phrases, looked_for, concepts, notes, patience)
        composed = [word for word in parsed.excluded if _is_composed(word)]
        without: set[int] = set()
        for word in composed:
            without |= self._holding_phrase((word,), patience)
        excluded = without | self._holding_any(self._excluded(parsed))
        in_time = not (parsed.phrases or composed) or not patience.expired
        if not in_time:
            notes.append("there was no time to look at every page for words that stand together")
        return Restriction(among, without, excluded, in_time)

    def wanted(
        self,
        parsed: Query,
        concepts: Sequence[Concept],
        layers: Collection[str] | None,
        filters: Filters,
        held: Restriction,
        depth: int,
    ) -> Wanted:
        """What a parsed query asks of the index."""
        return Wanted(
            concepts,
            excluded=tuple(tuple(form for form, _ in one.forms) for one in self._excluded(parsed)),
            among=held.among,
            without=held.without,
            filters=(parsed.filters, filters),
            layers=layers,
            depth=depth,
        )

    def _excluded(self, parsed: Query) -> list[Concept]:
        """The words that are excluded and need no places to be found."""
        words = [word for word in parsed.excluded if not _is_composed(word)]
        found = [Concept(word.form, self._interpreter.forms(word.form)) for word in words]
        return [concept for concept in found if concept.forms]

    def allowed(
        self,
        parsed: Query,
        layers: Collection[str] | None,
        filters: Filters,
        held: Restriction,
    ) -> Allows | None:
        """Which documents may be results; None when all may.

        Args:
            layers: None means all.
            filters: those of the call, beside those in the query.
        """
        holding, excluded = held.among, held.excluded
        asked = [one for one in (parsed.filters, filters) if any(one)]
        if layers is None and not asked and holding is None and not excluded:
            return None
        entry = self._ranker.catalog.entry
        layer_of = self._ranker.catalog.column("layer")

        def allows(slot: int) -> bool:
            return (
                (layers is None or layer_of[slot] in layers)
                and slot not in excluded
                and (holding is None or slot in holding)
                and all(_passes(entry(slot), one) for one in asked)
            )

        return allows

    def _holding_phrases(
        self,
        phrases: Sequence[Sequence[Word]],
        looked_for: Collection[str],
        concepts: Sequence[Concept],
        notes: list[str],
        deadline: Deadline,
    ) -> set[int] | None:
        """The documents with all phrases; with any, when none has all; None without phrases."""
        found: list[set[int]] = []
        for phrase in phrases:
            # Without a word of its own among those looked for, it would leave what answers nothing.
            others = () if any(word.form in looked_for for word in phrase) else concepts
            slots = self._holding_phrase(phrase, deadline, others)
            words = " ".join(word.form for word in phrase)
            if slots:
                found.append(slots)
            elif others:
                notes.append(f'no document with the other words holds "{words}": it was left out')
            elif not deadline.expired:
                notes.append(f'no document holds the phrase "{words}": its words were searched')
        if not found:
            return None
        together = set.intersection(*found)
        if not together:
            notes.append("no document holds all the phrases: those with one of them are shown")
        return together or set.union(*found)

    def _holding_phrase(
        self, phrase: Sequence[Word], deadline: Deadline, others: Sequence[Concept] = ()
    ) -> set[int]:
        """The documents that hold a phrase and, where there are any, one of the other concepts."""
        slots: set[int] = set()
        for part in _holding(self._ranker, self._reader, phrase, deadline, others):
            slots |= part
            if deadline.expired:
                break
        return self._holding_any(others, slots) if others and slots else slots

    def _holding_any(self, concepts: Sequence[Concept], among: set[int] | None = None) -> set[int]:
        """The documents, of some or of all, that hold any of some concepts."""
        if not concepts:
            return set()
        every = self._reader.every(Wanted(concepts, among=among))
        if every is None:
            every = self._ranker.matching(concepts, None)
        return every if among is None else every & among


def _is_composed(word: Word) -> bool:
    """Whether it is found by where its parts stand."""
    return word.cjk or bool(word.parts)


def stand_together(ranker: Ranker, reader: IndexReader, forms: Sequence[str]) -> bool:
    """Whether some document has these words one after the other."""
    parts = _holding(ranker, reader, [Word(form) for form in forms], Deadline())
    return any(islice(parts, _PARTS_FOR_A_NAME))


def _holding(
    ranker: Ranker,
    reader: IndexReader,
    phrase: Sequence[Word],
    deadline: Deadline,
    others: Sequence[Concept] = (),
) -> Iterator[set[int]]:
    """The documents in which the words follow each other in this order, part after part."""
    terms = list(_placed(phrase))
    owners = ranker.catalog.owners
    for _ in reader.parts(Wanted(others, together=tuple(form for form, _ in terms))):
        slots = {owners[row] for name in FIELDS for row in _rows(ranker, name, terms, deadline)}
        yield slots - {-1}


def _passes(entry: DocumentEntry, filters: Filters) -> bool:
    return (
        (not filters.layer or entry.layer in filters.layer)
        and (not filters.tag or not filters.tag.isdisjoint(entry.tags))
        and (not filters.type or entry.type in filters.type)
        and (not filters.lang or not filters.lang.isdisjoint(entry.languages))
        and (not filters.status or entry.state in filters.status)
        and (not filters.source or entry.source in filters.source)
    )


def _placed(phrase: Sequence[Word]) -> Iterator[tuple[str, int]]:
    at = 0
    for word in phrase:
        end = at + 1
        for term in terms_of(word):
            yield term.form, at + term.offset
            end = max(end, at + term.offset + 1)
        at = end


def _rows(
    ranker: Ranker, name: str, terms: Sequence[tuple[str, int]], deadline: Deadline
) -> set[int]:
    """The rows whose field holds every term at its place after one start."""
    starts: dict[int, set[int]] | None = None
    for form, offset in terms:
        here: dict[int, set[int]] = {}
        for base, postings in ranker.occurrences(name, form):
            for row, places in postings.items():
                row += base
                if starts is not None and row not in starts:
                    continue
                found = {place - offset for place in places}
                found &= starts[row] if starts is not None else found
                if found:
                    here[row] = found
        starts = here
        if not starts or deadline.expired:
            return set()
    return set(starts or ())
