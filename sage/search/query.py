"""From what somebody typed to words, phrases and filters, and to what the words mean in the index.

Every text is a query: marks that are not well formed are words, a pasted error or log is searched
by its message, and nothing here raises. Words become concepts: forms, synonyms, corrections,
compounds. Which documents filters and phrases allow is the document filter's, which of these are
best the ranking's.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

from sage.documents.front_matter import STATUSES, TYPES
from sage.terms.analysis import (
    JOIN,
    STOP_WORDS,
    Analyzer,
    Word,
    content_words,
    folded,
    is_message,
    is_pasted,
    pairs,
    without_asking,
    without_noise,
)
from sage.terms.spelling import RealWords, Spelling
from sage.values import SEARCH_ORDERS, as_known, one_of

MAX_CHARACTERS = 20_000
MAX_WORDS = 150
"""Different words that are looked at; of so many the rarest are searched."""
MAX_TERMS = 64
MAX_PHRASES = 8
_SHOWN_WORDS = 5
_UNKNOWN = 8
"""Words of a long text that no document holds and that are looked for all the same."""

_PART = re.compile(
    r"(?<!\S)(?P<name>layer|tag|type|lang|status|source):(?P<value>\"[^\"]+\"|[^\s\"]+)(?!\S)"
    r"|[\"\u201c\u201d](?P<phrase>[^\"\u201c\u201d]+)[\"\u201c\u201d]"
    r"|(?<!\S)-(?P<excluded>[^\W\d_][^\s\"]*)",
    re.IGNORECASE,
)


class Filters(NamedTuple):
    """What a document must be; an empty set asks for nothing."""

    layer: frozenset[str] = frozenset()
    tag: frozenset[str] = frozenset()
    type: frozenset[str] = frozenset()
    lang: frozenset[str] = frozenset()
    status: frozenset[str] = frozenset()
    source: frozenset[str] = frozenset()


NO_FILTERS = Filters()


def checked_filters(
    types: Collection[str] = (),
    tags: Collection[str] = (),
    status: str | None = None,
    source: str | None = None,
) -> Filters:
    """The filters that the arguments of a call ask for; any of several types or tags will do.

    Raises:
        InvalidInput: there is no such type or status. A tag that no page has is no error.
    """
    return Filters(
        tag=frozenset(tags),
        type=frozenset(one_of("types", one, TYPES) for one in types),
        status=frozenset((one_of("status", status, STATUSES),) if status else ()),
        source=frozenset((source,) if source else ()),
    )


def checked_sort(sort: str | None) -> str | None:
    """The order that is asked for; None when none is.

    Raises:
        InvalidInput: there is no such order.
    """
    return one_of("sort", sort, SEARCH_ORDERS) if sort else None


@dataclass(frozen=True, slots=True)
class Query:
    words: tuple[Word, ...] = ()
    """Everything to look for, the words of phrases included."""
    joined: tuple[str, ...] = ()
    """Neighbours written as one: `log in` may be kept as `login`."""
    phrases: tuple[tuple[Word, ...], ...] = ()
    excluded: tuple[Word, ...] = ()
    filters: Filters = Filters()
    notes: tuple[str, ...] = ()

    @property
    def restricts(self) -> bool:
        """Whether it asks for more of a document than to hold its words."""
        return bool(self.phrases or self.excluded or any(self.filters))


@dataclass(frozen=True, slots=True)
class FilterValues:
    """The values that filters can have now, and the command-line flags that documents name."""

    layers: Collection[str] = ()
    tags: Collection[str] = ()
    languages: Collection[str] = ()
    sources: Collection[str] = ()
    is_flag: Callable[[str], bool] = lambda _: False

    def written(self, name: str, value: str) -> set[str]:
        """The value of a filter as it is known, however often it is written otherwise."""
        allowed: Mapping[str, Collection[str]] = {
            "layer": self.layers,
            "tag": self.tags,
            "type": TYPES,
            "lang": self.languages,
            "status": STATUSES,
            "source": self.sources,
        }
        wanted = value.strip('"').strip().casefold()
        if name in ("type", "status"):
            wanted = as_known(wanted)
        # A query comes folded: what it names is compared as a query would be written.
        return {known for known in allowed[name] if folded(known).casefold() == wanted}


def parse(text: str, analyzer: Analyzer, known: FilterValues | None = None) -> Query:
    notes: list[str] = []
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS]
        notes.append(f"the query was cut to its first {MAX_CHARACTERS} characters")
    pasted = is_pasted(text)
    if pasted:
        text = without_noise(text)
    parts = _Parts(analyzer, known or FilterValues(), plain=pasted or is_message(text))
    rest = _PART.sub(parts.take, folded(text))
    written = analyzer.words(without_asking(rest))
    words = _distinct(content_words(written))
    if not words and not parts.filters:
        words, parts.excluded = parts.excluded, []
    if len(words) > MAX_WORDS:
        words = words[:MAX_WORDS]
        notes.append(f"only the first {MAX_WORDS} words were looked at")
    return Query(
        words=tuple(words),
        joined=_joined(written[: 2 * MAX_TERMS]),
        phrases=tuple(parts.phrases),
        excluded=tuple(_distinct(parts.excluded)[:MAX_TERMS]),
        filters=Filters(**{name: frozenset(values) for name, values in parts.filters.items()}),
        notes=tuple(notes),
    )


class _Parts:
    """Collects what is more than a word; what it leaves behind is searched as words."""

    def __init__(self, analyzer: Analyzer, known: FilterValues, plain: bool) -> None:
        """Args:
        plain: whether quotes and dashes are those of a text rather than marks of a query.
        """
        self._analyzer = analyzer
        self._plain = plain
        self._known = known
        self.filters: dict[str, set[str]] = {}
        self.phrases: list[tuple[Word, ...]] = []
        self.excluded: list[Word] = []

    def take(self, match: re.Match[str]) -> str:
        if match["name"]:
            return self._filter(match)
        if self._plain:
            return match[0].replace('"', " ")
        if match["phrase"]:
            return self._phrase(match)
        return self._exclusion(match)

    def _filter(self, match: re.Match[str]) -> str:
        name = match["name"].lower()
        values = self._known.written(name, match["value"])
        if not values:
            return match[0].replace(":", " ")
        self.filters.setdefault(name, set()).update(values)
        return " "

    def _phrase(self, match: re.Match[str]) -> str:
        phrase = tuple(self._analyzer.words(match["phrase"])[:MAX_TERMS])
        if phrase and phrase not in self.phrases and len(self.phrases) < MAX_PHRASES:
            self.phrases.append(phrase)
        return f" {match['phrase']} "

    def _exclusion(self, match: re.Match[str]) -> str:
        # `set -euo pipefail` names a flag: what documents write with its dash is a word.
        if self._known.is_flag(match[0].lower().rstrip(".,;:!?)")):
            return match[0]
        self.excluded += self._analyzer.words(match["excluded"])
        return " "


def _joined(words: list[Word]) -> tuple[str, ...]:
    plain = ["" if word.cjk or word.parts else word.form for word in words]
    return tuple(a + b for a, b in pairwise(plain) if a and b)


def _distinct(words: list[Word]) -> list[Word]:
    first: dict[tuple[str, tuple[str, ...]], Word] = {}
    for word in words:
        first.setdefault((word.form, word.parts), word)
    return list(first.values())


class Words(Protocol):
    """The words of one generation of an index, whatever keeps them."""

    def stem(self, form: str) -> str:
        """What the forms of one word share."""

    def forms(self, form: str) -> tuple[str, ...]:
        """The written forms that share a form's stem."""

    def fields(self, form: str) -> Sequence[str]:
        """The fields in which a form may occur."""

    def __contains__(self, form: str, /) -> bool: ...

    @property
    def spelling(self) -> Spelling:
        """How the forms look."""


EXACT, OTHER_FORM = 100, 80
"""What a form counts, in hundredths: the one that was asked for stays ahead of its stem's."""
SYNONYM, SYNONYM_FORM = 50, 40
PART = 0.6
"""What a part of an identifier counts beside the whole."""
JOINED = 0.3
CHARACTER = 0.5
"""What a single Chinese character counts when none of its pairs occurs."""
CORRECTED = 0.6
"""What a word counts that was written otherwise."""
MAX_FORMS = 24
MIN_CORRECTED, LEAST_CORRECTED = 5, 3
"""Letters of a word that may be misspelt; of one when there is nothing else to show."""


Forms = tuple[tuple[str, int], ...]


class Concept(NamedTuple):
    """One thing looked for, and all the terms that stand for it."""

    name: str
    forms: Forms
    """Terms and what an occurrence of each counts, in hundredths."""
    weight: float = 1.0


class Understanding(NamedTuple):
    """The concepts of a query in its order, and what had to be changed to get them."""

    concepts: tuple[Concept, ...]
    corrected: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]

    @property
    def changes(self) -> list[str]:
        """What was searched in place of what was written."""
        notes: dict[str, list[str]] = {}
        for word, better in self.corrected:
            notes.setdefault(word, []).append(better)
        return [f'"{word}" was searched as "{" ".join(better)}"' for word, better in notes.items()]


class Interpreter:
    """Finds concepts in one vocabulary."""

    def __init__(
        self,
        vocabulary: Words,
        frequency: Callable[[str], int],
        synonyms: Mapping[str, Sequence[str]],
        english: RealWords,
        stand_together: Callable[[Sequence[str]], bool],
    ) -> None:
        self._vocabulary = vocabulary
        self._frequency = frequency
        self._synonyms = synonyms
        self._english = english
        self._stand_together = stand_together

    def understand(self, words: Sequence[Word], joined: Sequence[str] = ()) -> Understanding:
        """The concepts of some words; those that do not occur are corrected if they can be."""
        found = self._understand(words, joined, MIN_CORRECTED)
        return found if found.concepts else self._understand(words, joined, LEAST_CORRECTED)

    def suggest(self, words: Sequence[str]) -> list[str]:
        """Words of the index that look like some that are not in it."""
        nearest = [
            near
            for word in words[:_SHOWN_WORDS]
            for near in self._vocabulary.spelling.nearest(word, self._frequency)
        ]
        return list(dict.fromkeys(nearest))[:_SHOWN_WORDS]

    def rarest(self, words: Sequence[Word]) -> tuple[Word, ...]:
        """How a long text begins, and the words of the rest that tell pages apart."""
        first, rest = words[: MAX_TERMS // 2], words[MAX_TERMS // 2 :]
        counted = [(self._frequency(word.form), word) for word in rest]
        unknown = [word for count, word in counted if not count][:_UNKNOWN]
        known = sorted((pair for pair in counted if pair[0]), key=lambda pair: pair[0])
        room = MAX_TERMS - len(first) - len(unknown)
        kept = {id(word) for _, word in known[:room]} | set(map(id, unknown))
        return (*first, *(word for word in rest if id(word) in kept))

    def _understand(
        self, words: Sequence[Word], joined: Sequence[str], least: int
    ) -> Understanding:
        concepts: dict[str, Concept] = {}
        corrected: list[tuple[str, str]] = []
        missing: list[str] = []
        for word in words:
            found = list(self._of_word(word)) or list(self._instead(word, least, corrected))
            if not found or self._is_only_parts(word):
                missing.append(word.written or word.form)
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

    def _is_only_parts(self, word: Word) -> bool:
        """Whether the parts of a name in code occur, but nowhere that name."""
        return (
            word.is_identifier
            and not self.occurs(word.form)
            and not self._stand_together(word.parts)
        )

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
            if len(form) < least or not form.isalpha() or self.occurs(form):
                continue
            for better in self._better(form):
                concept = self._concept(better, CORRECTED)
                if concept:
                    yield concept
                    corrected.append((form, better))

    def _better(self, form: str) -> tuple[str, ...]:
        """What was meant by what is no word; nothing by a word that is only not here."""
        spelling = self._vocabulary.spelling
        if self._english.is_real(form):
            return ()
        halves = spelling.split(form, self._frequency)
        if halves and self._stand_together(halves):
            return halves
        meant = spelling.correction(form, self._frequency, self._english)
        return (meant,) if meant else ()
