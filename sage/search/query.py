"""From what somebody typed to words, phrases and filters, and to the documents these allow.

Every text is a query: marks that are not well formed are words, a pasted error or log is searched
by its message, and nothing here raises. What the words mean in the index is the vocabulary's to
say, which of the allowed documents are best the ranking's.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

from sage.deadline import Deadline
from sage.documents.front_matter import STATUSES, TYPES
from sage.errors import did_you_mean
from sage.search.analysis import (
    Analyzer,
    Word,
    content_words,
    folded,
    is_message,
    is_pasted,
    terms_of,
    without_asking,
    without_noise,
)
from sage.search.catalog import DocumentEntry
from sage.search.postings import FIELDS, Postings
from sage.search.ranking import Ranker
from sage.search.vocabulary import Concept, Interpreter
from sage.values import SEARCH_ORDERS, as_known, one_of

MAX_CHARACTERS = 20_000
MAX_WORDS = 150
"""Different words that are looked at; of so many the rarest are searched."""
MAX_TERMS = 64
MAX_PHRASES = 8

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


@dataclass(frozen=True, slots=True)
class FilterValues:
    """The values that filters can have now, and the command-line flags that documents name."""

    layers: Collection[str] = ()
    tags: Collection[str] = ()
    languages: Collection[str] = ()
    sources: Collection[str] = ()
    is_flag: Callable[[str], bool] = lambda _: False

    def value(self, name: str, value: str) -> str | None:
        """The value of a filter as it is known, or None."""
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
        return next((known for known in allowed[name] if known.casefold() == wanted), None)


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
        value = self._known.value(name, match["value"])
        if value is None:
            return match[0].replace(":", " ")
        self.filters.setdefault(name, set()).add(value)
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


Allows = Callable[[int], bool]
"""Whether the document of a slot may be a result."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An analysed query: what candidates must or may hold, and where they may lie."""

    concepts: Sequence[Concept] = ()
    """Candidates hold a form of at least one of them."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """Forms that stand one after the other; pages with all forms of one come first."""
    excluded: tuple[tuple[str, ...], ...] = ()
    """Forms of words that no candidate holds."""
    compared: tuple[str, ...] = ()
    """Forms whose places are looked at besides."""
    filters: tuple[Filters, ...] = ()
    """What they must be besides: what the query says, and what the call does."""
    layers: Collection[str] | None = None
    """The layers that were asked for; None means every one that may be seen."""
    deep: bool = False
    """Whether more than the best answers will be looked at."""

    @classmethod
    def by(
        cls,
        parsed: Query,
        concepts: Sequence[Concept],
        interpreter: Interpreter,
        layers: Collection[str] | None,
        filters: Filters,
    ) -> "Wanted":
        """What a parsed query wants."""
        plain = [word for word in parsed.excluded if not (word.cjk or word.parts)]
        return cls(
            concepts,
            tuple(
                tuple(term.form for word in phrase for term in terms_of(word))
                for phrase in parsed.phrases
            ),
            tuple(tuple(form for form, _ in interpreter.forms(word.form)) for word in plain),
            tuple(term.form for word in parsed.excluded for term in terms_of(word)),
            (parsed.filters, filters),
            layers,
        )

    @property
    def forms(self) -> frozenset[str]:
        """Every form whose occurrences are asked for afterwards."""
        of_concepts = (form for concept in self.concepts for form, _ in concept.forms)
        others = (form for forms in (*self.phrases, *self.excluded) for form in forms)
        return frozenset((*of_concepts, *others, *self.compared))


class IndexReader(Protocol):
    """One generation of an index, as one search reads it."""

    headings: Sequence[int] | None
    """The words of the heading of each row; None where the records say it."""

    def gather(self, wanted: Wanted) -> int | None:
        """Have the candidates for a query at hand, in place of those before.

        The scope of the caller is part of what the engine is asked, never taken off afterwards.

        Returns:
            How many documents hold any of the concepts; None when all of them are at hand.
        """

    def postings(self, field: str, form: str) -> Sequence[tuple[int, Postings]]:
        """Where a form occurs in the candidates: first row, and what is counted from there."""

    def holders(self, slots: Collection[int]) -> Collection[int]:
        """Which of some documents that are not at hand hold any of the concepts gathered last."""

    def fetch(self, rows: Iterable[int]) -> None:
        """Have the records of some documents at hand: they are the next to be asked for."""

    def record(self, row: int) -> bytes:
        """What is shown of a document, and its sections, packed; by the row of the document."""


class DocumentFilter:
    """Filters the documents of one generation of the index. Safe to share between threads."""

    def __init__(self, ranker: Ranker, interpreter: Interpreter, layers: Collection[str]) -> None:
        self._ranker = ranker
        self._interpreter = interpreter
        self._all_layers = layers

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
            filters: those of the call, beside those in the query.
        """
        filters = filters._replace(tag=self._known_tags(filters.tag, notes))
        if layers is not None and set(layers).issuperset(self._all_layers):
            layers = None
        holding = self._holding_phrases(parsed, notes, deadline)
        excluded = self._excluded(parsed.excluded)
        asked = [one for one in (parsed.filters, filters) if any(one)]
        if layers is None and not asked and holding is None and not excluded:
            return None
        slots = self._ranker.catalog.slots

        def allows(slot: int) -> bool:
            return (
                (layers is None or slots[slot].layer in layers)
                and slot not in excluded
                and (holding is None or slot in holding)
                and all(_passes(slots[slot], one) for one in asked)
            )

        return allows

    def _known_tags(self, tags: Collection[str], notes: list[str]) -> frozenset[str]:
        """The tags as pages write them; one that no page has is noted and allows nothing."""
        if not tags:
            return frozenset()
        written: dict[str, set[str]] = {}
        for entry in self._ranker.catalog.slots:
            for tag in entry.tags:
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
