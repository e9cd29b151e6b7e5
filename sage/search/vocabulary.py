"""The words of the index, and what the words of a query mean there.

Stems bring the forms of one word together, the vocabulary knows the forms of one generation of the
index, synonyms stand for each other, and the interpreter turns words into concepts: forms,
synonyms, corrections, compounds. What a match of a concept is worth is the ranking's.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, Protocol

from sage.search.analysis import JOIN, STOP_WORDS, Word, pairs
from sage.search.postings import BITS, PostingReader
from sage.search.segments import EnglishStemmer
from sage.search.spelling import RealWords, Spelling

_MAX_STEMS = 30_000
_SHORT_DOUBLE = re.compile(r"([aeiou]([bdfgnr])\2)(?:ed|ing)")
"""`added` is no form of `ad`: a vowel and a doubled letter are a whole word."""
_FAMILIES = (
    "emergenc",
    "internal",
    "internation",
    "interval",
    "lateral",
    "organis",
    "organiz",
    "universal",
    "universit",
)
"""What else would be cut down to emerge, intern, interview, later, organ, universe."""
_WORDS = {
    "evening": "evening",
    "evenings": "evening",
    "paste": "paste",
    "pasted": "paste",
    "pastes": "paste",
    "pasting": "paste",
}


class Stemmer:
    """What the forms of one English word share; every other word is its own stem.

    Whoosh's Snowball (its Porter stemmer turns running into runn), corrected where today's
    Snowball differs: over 288,830 words of manuals and source code nothing else that is a word
    did. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._snowball = EnglishStemmer()
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def stem(self, form: str) -> str:
        """The stem of an English word, anything else unchanged."""
        known = self._known.get(form)
        if known is None:
            english = len(form) > 2 and form.isascii() and form.isalpha()
            known = self._stemmed(form) if english else form
            with self._lock:
                if len(self._known) >= _MAX_STEMS:
                    self._known.clear()
                self._known[form] = known
        return known

    def _stemmed(self, form: str) -> str:
        double = _SHORT_DOUBLE.fullmatch(form)
        if double:
            return double[1]
        family = next((start for start in _FAMILIES if form.startswith(start)), None)
        return family or _WORDS.get(form) or str(self._snowball.stem(form))


@cache
def shared_stemmer() -> Stemmer:
    """The stemmer of this process: what one caller stemmed another need not."""
    return Stemmer()


@lru_cache(maxsize=_MAX_STEMS)
def stem_of(form: str) -> str:
    """What the forms of one word share; a joined form is one of them."""
    return shared_stemmer().stem(form.removesuffix(JOIN))


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


class Vocabulary:
    """Every form of one generation: by stem, with its fields. Safe to share between threads.

    A form whose last document went stays until its segment is merged; it then has no postings
    that live, and callers check that.
    """

    def __init__(self, reader: PostingReader, before: "Vocabulary | None" = None) -> None:
        self._reader = reader
        self._segments = frozenset(leaf.segment for leaf in reader.leaves)
        self._spelling: Spelling | None = None
        if before is not None and before._spelling is not None:
            self._spelling = self._still_right(before._spelling, before._segments)

    def stem(self, form: str) -> str:
        """What the forms of one word share."""
        return stem_of(form)

    def forms(self, form: str) -> tuple[str, ...]:
        """The written forms that share a form's stem."""
        return tuple(self._reader.forms(stem_of(form)))

    def __contains__(self, form: str) -> bool:
        return form in self._reader.forms(stem_of(form))

    def fields(self, form: str) -> list[str]:
        """The fields in which a form may occur."""
        mask = self._reader.forms(stem_of(form)).get(form, 0)
        return [name for name, bit in BITS.items() if mask & bit]

    @property
    def spelling(self) -> Spelling:
        """How the forms look; joined ones are nobody's spelling."""
        spelling = self._spelling
        if spelling is None:
            forms = set(self._reader.all_forms())
            spelling = Spelling(form for form in forms if not form.endswith(JOIN))
            self._spelling = spelling
        return spelling

    def _still_right(self, spelling: Spelling, known: Collection[str]) -> Spelling | None:
        """The spelling of the generation before, unless a form is new: making one takes long."""
        new = self._reader.all_forms(known)
        return spelling if all(form.endswith(JOIN) or form in spelling for form in new) else None


# Words that mean the same to anybody who writes software; a team adds its own in its settings.
_GROUPS = """
admin administrator
app application
arg argument parameter param
async asynchronous
auth authentication authorization
authn authentication
authz authorization
autoscaling autoscaler
bug defect
ci integration
config configuration
creds credentials
csharp c#
cpp c++
db database
deps dependencies
dev development
dir directory folder
doc docs documentation
dotnet .net
e2e end-to-end
env environment
err error
exec execute
golang go
i18n internationalization
impl implementation
info information
js javascript
k8s kubernetes
l10n localization
lib library
lint linter linting
msg message
mr pr pull-request merge-request
perf performance
postgres postgresql
prod production
py python
regex regexp
repo repository
rollback revert undo
setup installation
spec specification
sync synchronize
temp temporary
ts typescript
tz timezone
util utility
var variable
vm virtual-machine
yml yaml
"""


def built_in() -> dict[str, tuple[str, ...]]:
    """For each word the others of its groups."""
    return _linked(line.split() for line in _GROUPS.strip().splitlines())


def with_team(settings: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The built-in synonyms and a team's own, which stand for each other both ways."""
    linked = built_in()
    own = _linked([key.casefold(), *map(str.casefold, words)] for key, words in settings.items())
    for word, others in own.items():
        linked[word] = tuple(dict.fromkeys((*others, *linked.get(word, ()))))
    return linked


def _linked(groups: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    linked: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for word in group:
            others = tuple(other for other in group if other != word)
            linked[word] = tuple(dict.fromkeys((*linked.get(word, ()), *others)))
    return linked


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
