"""Which documents a query allows: by filters, by phrases they must hold, by words they must not."""

from collections.abc import Callable, Collection, Iterator, Sequence

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


class DocumentFilter:
    """Filters the documents of one generation of the index. Safe to share between threads."""

    def __init__(self, ranker: Ranker, interpreter: Interpreter) -> None:
        self._ranker = ranker
        self._interpreter = interpreter

    def allowed(
        self,
        parsed: Query,
        layers: Collection[str] | None,
        filters: Filters,
        notes: list[str],
        deadline: Deadline,
    ) -> Allows | None:
        """Which documents may be results; None when all may. What was relaxed is noted.

        Args:
            layers: None means all.
            filters: those of the call, beside those in the query.
        """
        filters = filters._replace(tag=self._known_tags(filters.tag, notes))
        holding = self._holding_phrases(parsed, notes, deadline)
        excluded = self._excluded(parsed.excluded)
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

    def _known_tags(self, tags: Collection[str], notes: list[str]) -> frozenset[str]:
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

    def _holding_phrases(
        self, parsed: Query, notes: list[str], deadline: Deadline
    ) -> set[int] | None:
        """The documents with all phrases; with any, when none has all; None without phrases."""
        found: list[set[int]] = []
        for phrase in parsed.phrases:
            slots = holding_phrase(self._ranker, phrase, deadline)
            if slots:
                found.append(slots)
            else:
                words = " ".join(word.form for word in phrase)
                notes.append(f'no document holds the phrase "{words}": its words were searched')
        if not found:
            return None
        together = set.intersection(*found)
        if not together:
            notes.append("no document holds all the phrases: those with one of them are shown")
        return together or set.union(*found)

    def _excluded(self, words: Sequence[Word]) -> set[int]:
        slots: set[int] = set()
        for word in words:
            if word.cjk or word.parts:
                slots |= holding_phrase(self._ranker, [word], Deadline())
            else:
                forms = self._interpreter.forms(word.form)
                slots |= set(self._ranker.matches(Concept(word.form, forms)).slots)
        return slots


def holding_phrase(ranker: Ranker, phrase: Sequence[Word], deadline: Deadline) -> set[int]:
    """The slots of the documents in which the words follow each other in this order."""
    terms = list(_placed(phrase))
    slots: set[int] = set()
    owners = ranker.catalog.owners
    for name in FIELDS:
        slots.update(owners[row] for row in _rows(ranker, name, terms, deadline))
    slots.discard(-1)
    return slots


def stand_together(ranker: Ranker, reader: IndexReader, forms: Sequence[str]) -> bool:
    """Whether some document has these words one after the other."""
    words = [Word(form) for form in forms]
    reader.gather(Wanted(phrases=(tuple(forms),)))
    return bool(holding_phrase(ranker, words, Deadline()))


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
