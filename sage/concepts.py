"""What the words of a query mean in the index: forms, synonyms, corrections, compounds.

A concept is one thing looked for and all the terms that stand for it. What a match of it is worth
is the ranking's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sage.analysis import JOIN, STOP_WORDS, Word, pairs
from sage.vocabulary import Vocabulary

EXACT, OTHER_FORM = 100, 80
"""What a form counts, in hundredths: the one that was asked for stays ahead of its stem's."""
SYNONYM, SYNONYM_FORM = 50, 40
PART = 0.6
"""What a part of an identifier counts beside the whole."""
JOINED = 0.3
CHARACTER = 0.5
"""What a single Chinese character counts when none of its pairs occurs."""
MAX_FORMS = 24
MIN_CORRECTED = 3


Forms = tuple[tuple[str, int], ...]


class Concept(NamedTuple):
    """One thing looked for."""

    name: str
    forms: Forms
    """Terms and what an occurrence of each counts, in hundredths."""
    weight: float = 1.0


class Understanding(NamedTuple):
    """The concepts of a query in its order, and what had to be changed to get them."""

    concepts: tuple[Concept, ...]
    corrected: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]


class Interpreter:
    """Finds concepts in one vocabulary."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        frequency: Callable[[str], int],
        synonyms: Mapping[str, Sequence[str]],
    ) -> None:
        self._vocabulary = vocabulary
        self._frequency = frequency
        self._synonyms = synonyms

    def understand(self, words: Sequence[Word], joined: Sequence[str] = ()) -> Understanding:
        """The concepts of some words; those that do not occur are corrected if they can be."""
        found = self._understand(words, joined, MIN_CORRECTED)
        # With nothing to show, even short words and numbers may have been mistyped.
        return found if found.concepts else self._understand(words, joined, 1)

    def _understand(
        self, words: Sequence[Word], joined: Sequence[str], least: int
    ) -> Understanding:
        concepts: dict[str, Concept] = {}
        corrected: list[tuple[str, str]] = []
        missing: list[str] = []
        for word in words:
            found = list(self._of_word(word)) or list(self._instead(word, least, corrected))
            if not found:
                missing.append(word.form)
            for concept in found:
                self._keep(concepts, concept)
        for form in joined:
            if self.occurs(form):
                self._keep(concepts, Concept(form, self.forms(form), JOINED))
        return Understanding(tuple(concepts.values()), tuple(corrected), tuple(missing))

    def forms(self, form: str, exact: int = EXACT, other: int = OTHER_FORM) -> Forms:
        """The terms of one stem that occur, the form itself first."""
        found = [word for word in self._vocabulary.forms(form) if self._frequency(word)]
        same = (form, form + JOIN)
        found.sort(key=lambda word: (word not in same, word))
        return tuple((word, exact if word in same else other) for word in found[:MAX_FORMS])

    def occurs(self, form: str) -> bool:
        """Whether any form of a stem is in a document now."""
        return any(self._frequency(other) for other in self._vocabulary.forms(form))

    def _keep(self, concepts: dict[str, Concept], concept: Concept) -> None:
        # A word asked for twice counts once: repeating it cost quality on every set measured.
        stem = self._vocabulary.stem(concept.name)
        known = concepts.get(stem)
        if known is None or known.weight < concept.weight:
            concepts[stem] = concept

    def _of_word(self, word: Word) -> Iterator[Concept]:
        if word.cjk:
            for pair in pairs(word.form):
                if self._frequency(pair):
                    yield Concept(pair, ((pair, EXACT),))
            return
        whole = self._concept(word.form)
        if whole:
            yield whole
        parts = word.parts
        if whole and not parts and all(form.endswith(JOIN) for form, _ in whole.forms):
            # Nobody writes it as one word, only as an identifier of several.
            parts = self._vocabulary.spelling.split(word.form, self._frequency) or ()
        for part in parts:
            concept = self._concept(part, PART if part not in STOP_WORDS else 0.0)
            if concept and concept.weight:
                yield concept

    def _concept(self, form: str, weight: float = 1.0) -> Concept | None:
        forms = dict(self.forms(form))
        for synonym in self._synonyms.get(form, ()):
            for other, value in self.forms(synonym.replace("-", ""), SYNONYM, SYNONYM_FORM):
                forms.setdefault(other, value)
        return Concept(form, tuple(forms.items()), weight) if forms else None

    def _instead(
        self, word: Word, least: int, corrected: list[tuple[str, str]]
    ) -> Iterator[Concept]:
        """What was probably meant by a word that does not occur."""
        if word.cjk:
            for character in dict.fromkeys(word.form):
                if self._frequency(character):
                    yield Concept(character, ((character, EXACT),), CHARACTER)
            return
        for form in word.parts or (word.form,):
            if len(form) < least or (form.isdigit() and least > 1) or self.occurs(form):
                continue
            for better in self._better(form):
                concept = self._concept(better)
                if concept:
                    yield concept
                    corrected.append((form, better))

    def _better(self, form: str) -> tuple[str, ...]:
        spelling = self._vocabulary.spelling
        one = spelling.correction(form, 1, self._frequency)
        if one:
            return (one,)
        halves = spelling.split(form, self._frequency)
        if halves:
            return halves
        two = spelling.correction(form, 2, self._frequency)
        return (two,) if two else ()
