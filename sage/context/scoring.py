"""What a passage is worth to a task: whether it is a candidate, how well it fits, and why.

The recipe, the front matter and the languages give the fit of a passage; the search gives its
relevance to what is being done. Which passages are packed is the business of `packing`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sage.context.passages import Passage, PassageKey
from sage.context.recipes import BUILT_IN, OTHER_LAYERS, Recipe
from sage.context.section_kinds import kinds_of, shows_kind, word_pattern
from sage.documents.front_matter import PRIORITIES
from sage.documents.languages import (
    ANY_LANGUAGE,
    canonical,
    is_guest,
    languages_in,
    languages_of_path,
)
from sage.search.catalog import DocumentEntry

FIT_SHARE = 0.4
"""What the recipe counts beside the task, for a passage that the recipe wants most."""
USUAL_FIT = 1.5
"""The fit of a passage that the recipe wants most."""
_SIZE_POWER = 0.2
_SMALL_BYTES = 600
"""Below this size a section is not worth more for being shorter."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that speaks for a passage."""

    words: str
    weight: float


@dataclass(frozen=True, slots=True)
class Fit:
    """How well something fits a recipe and its languages, and why."""

    value: float
    reasons: tuple[Reason, ...] = ()
    is_core: bool = False
    is_meant: bool = True
    """False when the front matter names other task types: only the search brings it in."""
    kinds: frozenset[str] = frozenset()
    """The kinds that the title and the folders of a page show."""
    languages: tuple[str, ...] = ()
    """The languages a page is for; none means all."""

    @property
    def evidence(self) -> float:
        """What speaks for it, summed."""
        return sum(reason.weight for reason in self.reasons)


@dataclass(slots=True, eq=False)
class Candidate:
    """A passage that may come, with its worth to the call at hand."""

    passage: Passage
    fit: Fit
    relevance: float | None = None
    """How much it is about the task; None when there is no task."""
    reasons: tuple[Reason, ...] = ()
    """What speaks for it beside the recipe and the words of the task."""
    path: str = field(init=False)
    key: PassageKey = field(init=False)
    appeal: float = field(init=False)
    """Its worth, less for a long text: what it brings to an empty context."""

    def __post_init__(self) -> None:
        self.path = self.passage.document.path
        self.key = self.passage.key
        worth = self.fit.value
        if self.relevance is not None:
            fit = max(0.0, min(1.0, self.fit.value / USUAL_FIT))
            worth = self.relevance * (1 - FIT_SHARE + FIT_SHARE * fit)
        size = self.passage.size_bytes
        if size > _SMALL_BYTES:
            worth *= (_SMALL_BYTES / size) ** _SIZE_POWER
        self.appeal = worth


@dataclass(frozen=True, slots=True)
class Selection:
    """What a context may be made of."""

    task_type: str
    always: Sequence[Candidate]
    """What belongs in any case."""
    wanted: Sequence[Candidate]
    """What serves the task, or the recipe when there is no task."""
    principles: Sequence[Candidate]
    """What all work rests on."""
    shares: Mapping[str, float]
    """How the budget is divided among layers when there is no task."""
    words: Sequence[str]
    """The words of the task and its files."""
    places: Mapping[str, int]
    """The place of each page in reading order."""
    has_task: bool
    notes: Sequence[str] = ()
    """What the reader should know of the choice."""
    overrides: Mapping[str, Sequence[str]] | None = None
    """By path, when there are several sources: the others that have a page of the topic."""


CORE_LAYER = "core"

# The weights of what speaks for a passage. Their order matters, their second digit does not.
_FOR_TASK_TYPE = 0.5
_FOR_TITLE = 0.35
_FOR_TAGS = 0.2
_FOR_HEADING = 0.2
_FOR_KIND = 0.35
_FOR_TYPE = 0.2
_FOR_PRIORITY = 0.15
_FOR_LANGUAGE = 0.35
_FOR_PRINCIPLES = 0.4
_BASE = 0.2
_BACKGROUND = 0.75
_OTHER_TASK = 0.65
_FROM_PAGE = 0.7
_INTRODUCTION = 0.7
"""The words before the second heading seldom say what to do."""
_THIN_BYTES = 240
_FOREIGN_CODE = 0.7
_LEAST_TRUST = 0.3
_LATER = 0.025
"""How much less each later section of a document is worth: authors put first things first."""

_PRIORITY_NAMES = {value: name for name, value in PRIORITIES.items()}


class RecipeScorer:
    """One recipe for one set of languages and the pages of one moment; it keeps what it found."""

    def __init__(
        self, recipe: Recipe, languages: Collection[str], has_core: bool, any_guest: bool = False
    ) -> None:
        """With `any_guest`, pages for languages inside others (SQL, shell) may come unasked."""
        self._recipe = recipe
        self._languages = frozenset(languages)
        self._words = word_pattern(recipe.words)
        self._stems = [word.casefold().replace("-", " ") for word in recipe.words]
        self._own = word_pattern((_stem(recipe.name),))
        others = (other.name for other in BUILT_IN if other.name != recipe.name)
        self._others = word_pattern(map(_stem, others))
        self._has_core = has_core
        self._any_guest = any_guest
        self._fits: dict[str, Fit] = {}
        self._refusals: dict[str, str] = {}
        self._core: dict[str, bool] = {}
        self._own_languages: dict[str, tuple[str, ...]] = {}
        self._most = max((1.0, *recipe.kinds.values(), *recipe.types.values()))

    def share(self, layer: str) -> float:
        """The layer's share of the budget, before it is divided among those that are there."""
        layers = self._recipe.layers
        return layers.get(layer, layers.get(OTHER_LAYERS, 0.0))

    def shares(self, layers: Iterable[str]) -> dict[str, float]:
        """The budget divided among some layers."""
        shares = {layer: self.share(layer) for layer in layers}
        whole = sum(shares.values()) or 1.0
        return {layer: share / whole for layer, share in shares.items()}

    def why_not(self, entry: DocumentEntry) -> str:
        """What keeps a page out, in a word; empty when it may come."""
        known = self._refusals.get(entry.path)
        if known is None:
            known = self._refusals[entry.path] = self._refusal(entry)
        return known

    def page(self, entry: DocumentEntry) -> Fit:
        """How well a page fits that may come."""
        known = self._fits.get(entry.path)
        if known is None:
            known = self._fits[entry.path] = self._page(entry)
        return known

    def _refusal(self, entry: DocumentEntry) -> str:
        if entry.superseded_by and entry.status == "published":
            return "superseded"
        if entry.status != "published":
            return entry.status
        own = self._languages_of(entry)
        is_wanted = not own or not self._languages or self._languages.intersection(own)
        if not is_wanted and not (self._any_guest and any(map(is_guest, own))):
            return ", ".join(own)
        return "" if self.share(entry.layer) else f"layer {entry.layer}"

    def _page(self, entry: DocumentEntry) -> Fit:
        own = self._languages_of(entry)
        reasons = list(self._page_reasons(entry))
        if self._languages.intersection(own):
            name = next(one for one in own if one in self._languages)
            reasons.append(Reason(f"language {name}", _FOR_LANGUAGE * self._recipe.language))
        is_meant = not entry.task_types or self._recipe.name in entry.task_types
        if not entry.task_types and self._is_for_others(f"{entry.topic} {entry.title}"):
            reasons = [Reason(one.words, one.weight * _OTHER_TASK) for one in reasons]
        # Words are -1 to 2; of larger numbers only the order counts.
        priority = max(-2, min(entry.priority, 2)) + entry.priority / 100
        value = _BASE + _FOR_PRIORITY * priority + sum(one.weight for one in reasons)
        kinds = kinds_of(_shown_kinds_by(entry))
        return Fit(value, tuple(reasons), self.is_core(entry), is_meant, kinds, own)

    def _languages_of(self, entry: DocumentEntry) -> tuple[str, ...]:
        known = self._own_languages.get(entry.path)
        if known is None:
            known = self._own_languages[entry.path] = languages_of(entry)
        return known

    def is_core(self, entry: DocumentEntry) -> bool:
        """Whether a page is what all work rests on; without a core layer, its principles are."""
        if self._has_core:
            return entry.layer == CORE_LAYER
        known = self._core.get(entry.path)
        if known is None:
            # Asked of every page of a base: how well each fits takes thirty times as long.
            is_critical = entry.priority == PRIORITIES["critical"]
            known = is_critical or shows_kind("principles", _shown_kinds_by(entry))
            self._core[entry.path] = known
        return known

    def _page_reasons(self, entry: DocumentEntry) -> Iterable[Reason]:
        if self._recipe.name in entry.task_types:
            # A page for this task alone is more specific than one for every task.
            weight = _FOR_TASK_TYPE * (0.6 + 0.4 / len(entry.task_types))
            yield Reason(f"for {self._recipe.name}", weight)
        wanted = self._recipe.types.get(entry.type, 0.0) / self._most
        if wanted:
            yield Reason(f"type {entry.type}", _FOR_TYPE * wanted)
        if entry.priority > 0:
            yield Reason(f"priority {_PRIORITY_NAMES.get(entry.priority, entry.priority)}", 0.01)
        yield from self._word_reasons(entry)

    def _word_reasons(self, entry: DocumentEntry) -> Iterable[Reason]:
        name = entry.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        title = self._found(f"{entry.title} {name}", "title", _FOR_TITLE)
        tags = " ".join((*entry.tags, *entry.aliases, entry.summary))
        yield from title or self._found(tags, "tags", _FOR_TAGS)

    def passage(self, passage: Passage, page: Fit) -> Fit | None:
        """How well a passage fits; None when its heading names only other languages."""
        named = self._languages_named(passage, page)
        if named and self._languages and not self._languages.intersection(named):
            return None
        headings = _headings(passage)
        reasons = list(self._section_reasons(passage, headings, page))
        if self._languages.intersection(named):
            name = next(one for one in named if one in self._languages)
            reasons.append(Reason(f"language {name}", _FOR_LANGUAGE * self._recipe.language))
        value = page.value + sum(one.weight for one in reasons)
        value *= self._discount(passage, headings)
        return Fit(value, (*page.reasons, *reasons), page.is_core, page.is_meant)

    def _languages_named(self, passage: Passage, page: Fit) -> tuple[str, ...]:
        """The languages in the heading of a section on a page that is for all of them."""
        first = passage.sections[0]
        return languages_in(first.heading) if _headings(passage) and not page.languages else ()

    def _discount(self, passage: Passage, headings: str) -> float:
        """What a passage loses by its place, its kind, its size and its code."""
        factor = 1 - _LATER * min(passage.first, 12)
        if passage.kinds == {"background"}:
            factor *= _BACKGROUND
        if self._is_for_others(headings):
            factor *= _OTHER_TASK
        if passage.size_bytes < _THIN_BYTES:
            factor *= (passage.size_bytes / _THIN_BYTES) ** 0.5
        if len(passage.sections) == 1 and passage.sections[0].level < 2:
            factor *= _INTRODUCTION
        if self._is_foreign_code(passage):
            factor *= _FOREIGN_CODE
        return factor

    def _section_reasons(self, passage: Passage, headings: str, page: Fit) -> Iterable[Reason]:
        # A heading says little on a page that is about something else.
        trust = _LEAST_TRUST + (1 - _LEAST_TRUST) * min(1.0, page.evidence / _FOR_TITLE)
        kind, wanted = self._kind(passage, page)
        if wanted:
            yield Reason(f"kind {kind}", trust * _FOR_KIND * wanted / self._most)
        yield from self._found(headings, "heading", trust * _FOR_HEADING)
        if page.is_core:
            principles = "principles" in page.kinds or passage.document.priority > 1
            name = "core principle" if principles else "core knowledge"
            yield Reason(name, _FOR_PRINCIPLES if principles else _FOR_PRINCIPLES / 4)

    def _is_for_others(self, text: str) -> bool:
        """Whether a text names another task type, and not this one."""
        folded = text.casefold()
        return bool(self._others.search(folded)) and not self._own.search(folded)

    def _kind(self, passage: Passage, page: Fit) -> tuple[str, float]:
        """The most wanted kind of a passage; what title and folders show counts for all of it."""
        weights = self._recipe.kinds
        wanted = [(weights.get(kind, 0.0), kind) for kind in passage.kinds]
        wanted += [(_FROM_PAGE * weights.get(kind, 0.0), kind) for kind in page.kinds]
        weight, kind = max(wanted, default=(0.0, ""))
        return kind, weight

    def _is_foreign_code(self, passage: Passage) -> bool:
        """Whether all the code in a passage is in other languages."""
        if not self._languages:
            return False
        return bool(passage.code_languages) and self._languages.isdisjoint(passage.code_languages)

    def _found(self, text: str, place: str, weight: float) -> list[Reason]:
        """What the recipe's words in a text say for it; its first words say the most."""
        found = self._words.findall(re.sub(r"[_-]+", " ", text.casefold()))
        if not found:
            return []
        rank = min(self._rank(word) for word in found)
        words = f"{place}: {', '.join(dict.fromkeys(found[:3]))}"
        return [Reason(words, weight * (1 - 0.5 * rank / len(self._recipe.words)))]

    def _rank(self, found: str) -> int:
        return next((n for n, word in enumerate(self._stems) if found.startswith(word)), 0)


def _shown_kinds_by(entry: DocumentEntry) -> str:
    """What shows the kinds of a page."""
    return f"{entry.title}\n{entry.topic}"


def _headings(passage: Passage) -> str:
    return " ".join(section.heading for section in passage.sections if section.level > 1)


def languages_of(entry: DocumentEntry) -> tuple[str, ...]:
    """The languages a page is for: as it says itself, else as its title and path show."""
    if entry.languages:
        named = tuple(canonical(name) for name in entry.languages)
        return () if ANY_LANGUAGE.intersection(named) else named
    inner = entry.path.split("/", 2)[-1]
    return languages_in(entry.title) or languages_of_path(inner)


def _stem(name: str) -> str:
    """`debugging` as it begins in debug and debugger."""
    return re.sub(r"(?:([a-z])\1|(?<=[a-z]))ing$", r"\1", name)
