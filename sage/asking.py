"""What a query asks of one generation of the index: concepts, and the documents it allows.

What had to be changed to understand it is noted. Ranking what is allowed is others' work.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sage import phrases, query
from sage.analysis import Analyzer, Word
from sage.catalog import Card
from sage.concepts import JOINED, Concept, Interpreter, Understanding
from sage.deadline import Deadline
from sage.query import Known, Query
from sage.ranking import Ranker
from sage.vocabulary import Vocabulary
from sage.worth import rarity

_SHOWN_WORDS = 5

Allows = Callable[[int], bool]
"""Whether the document of a slot may be a result."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as it was understood, with the documents it allows."""

    query: Query
    concepts: tuple[Concept, ...]
    possible: float
    allowed: Allows | None
    notes: tuple[str, ...]
    missing: tuple[str, ...]


class Asker:
    """Understands queries. Safe to share between threads."""

    def __init__(
        self,
        ranker: Ranker,
        vocabulary: Vocabulary,
        synonyms: Mapping[str, Sequence[str]],
        layers: Collection[str],
    ) -> None:
        self._ranker = ranker
        self.catalog = ranker.catalog
        self._vocabulary = vocabulary
        self._interpreter = Interpreter(vocabulary, ranker.frequency, synonyms)
        self._layers = layers

    def ask(self, text: str, layers: Collection[str] | None, deadline: Deadline) -> Asked:
        """Understand a query: its concepts, and which documents it allows."""
        parsed = query.parse(text, self._analyzer, self._known)
        understood = self._interpreter.understand(parsed.words, parsed.joined)
        notes = [*parsed.notes, *_changes(understood)]
        allowed = self._allowed(parsed, layers, notes, deadline)
        possible = sum(
            self._ranker.matches(concept).rarity * concept.weight
            for concept in understood.concepts
            if concept.weight > JOINED
        ) + len(understood.missing) * rarity(0, self._ranker.scale.documents)
        return Asked(
            parsed, understood.concepts, possible, allowed, tuple(notes), understood.missing
        )

    def suggest(self, words: Sequence[str]) -> list[str]:
        """Words of the index that look like some that are not in it."""
        nearest = [
            near
            for word in words[:_SHOWN_WORDS]
            for near in self._vocabulary.spelling.nearest(word, self._ranker.frequency)
        ]
        return list(dict.fromkeys(nearest))[:_SHOWN_WORDS]

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer()

    @cached_property
    def _known(self) -> Known:
        slots = self.catalog.slots
        return Known(
            layers=self._layers,
            tags=frozenset(tag for card in slots for tag in card.tags),
            languages=frozenset(language for card in slots for language in card.languages),
            is_flag=lambda flag: flag in self._vocabulary and self._ranker.frequency(flag) > 0,
        )

    def _allowed(
        self,
        parsed: Query,
        layers: Collection[str] | None,
        notes: list[str],
        deadline: Deadline,
    ) -> Allows | None:
        """Which documents may be results; None when all may."""
        if layers is not None and set(layers).issuperset(self._layers):
            layers = None
        held = self._holding_phrases(parsed, notes, deadline)
        excluded = self._excluded(parsed.excluded)
        if layers is None and not any(parsed.filters) and held is None and not excluded:
            return None
        slots = self.catalog.slots

        def allows(slot: int) -> bool:
            return (
                (layers is None or slots[slot].layer in layers)
                and slot not in excluded
                and (held is None or slot in held)
                and _fits(slots[slot], parsed.filters)
            )

        return allows

    def _holding_phrases(
        self, parsed: Query, notes: list[str], deadline: Deadline
    ) -> set[int] | None:
        """The documents with all phrases; with any, when none has all; None without phrases."""
        found: list[set[int]] = []
        for phrase in parsed.phrases:
            slots = phrases.holding(self._ranker, phrase, deadline)
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
                slots |= phrases.holding(self._ranker, [word], Deadline())
            else:
                forms = self._interpreter.forms(word.form)
                slots |= self._ranker.matches(Concept(word.form, forms)).impacts.keys()
        return slots


def _changes(understood: Understanding) -> list[str]:
    """What was searched in place of what was written."""
    notes: dict[str, list[str]] = {}
    for word, better in understood.corrected:
        notes.setdefault(word, []).append(better)
    said = [f'"{word}" was searched as "{" ".join(better)}"' for word, better in notes.items()]
    if understood.missing:
        words = ", ".join(f'"{word}"' for word in understood.missing[:_SHOWN_WORDS])
        more = len(understood.missing) - _SHOWN_WORDS
        said.append(f"not in any document: {words}" + (f" and {more} more" if more > 0 else ""))
    return said


def _fits(card: Card, filters: query.Filters) -> bool:
    return (
        (not filters.layer or card.layer in filters.layer)
        and (not filters.tag or not filters.tag.isdisjoint(card.tags))
        and (not filters.type or card.type in filters.type)
        and (not filters.lang or not filters.lang.isdisjoint(card.languages))
    )
