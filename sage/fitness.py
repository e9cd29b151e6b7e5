"""What a passage is worth to a task: whether it may come at all, how well it fits, and why.

The recipe, the front matter and the languages give the fit of a passage; the search gives its
relevance to what is being done. Which passages are packed is the business of `packing`.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from sage.candidates import Candidate, Fit, Reason
from sage.documents import Document
from sage.frontmatter import PRIORITIES
from sage.kinds import kinds_of, word_pattern
from sage.languages import ANY_LANGUAGE, canonical, languages_in, languages_of_path
from sage.passages import Passage
from sage.recipes import BUILT_IN, OTHER_LAYERS, Recipe

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


class Fitness:
    """One recipe for one set of languages."""

    def __init__(self, recipe: Recipe, languages: Collection[str]) -> None:
        self._recipe = recipe
        self._languages = frozenset(languages)
        self._words = word_pattern(recipe.words)
        self._stems = [word.casefold().replace("-", " ") for word in recipe.words]
        self._own = word_pattern((_stem(recipe.name),))
        others = (other.name for other in BUILT_IN if other.name != recipe.name)
        self._others = word_pattern(map(_stem, others))
        self._has_core = True
        self._most = max(1.0, *recipe.kinds.values(), *recipe.types.values())

    def candidates(
        self, documents: Iterable[tuple[Document, Sequence[Passage]]]
    ) -> list[Candidate]:
        """The passages that may come."""
        found: list[Candidate] = []
        documents = list(documents)
        self._has_core = any(document.layer == CORE_LAYER for document, _ in documents)
        for document, passages in documents:
            page = self._page(document) if passages else None
            if page is not None:
                fits = ((passage, self._section(passage, page)) for passage in passages)
                found += [Candidate(passage, fit) for passage, fit in fits if fit is not None]
        return found

    def share(self, layer: str) -> float:
        """The layer's share of the budget, before it is divided among those that are there."""
        layers = self._recipe.layers
        return layers.get(layer, layers.get(OTHER_LAYERS, 0.0))

    def shares(self, layers: Iterable[str]) -> dict[str, float]:
        """The budget divided among some layers."""
        shares = {layer: self.share(layer) for layer in layers}
        whole = sum(shares.values()) or 1.0
        return {layer: share / whole for layer, share in shares.items()}

    def _page(self, document: Document) -> Fit | None:
        meta = document.meta
        own = languages_of(document)
        foreign = bool(own and self._languages and not self._languages.intersection(own))
        is_current = meta.status == "published" and not meta.superseded_by
        if not is_current or foreign or not self.share(document.layer):
            return None
        reasons = list(self._page_reasons(document))
        if self._languages.intersection(own):
            name = next(one for one in own if one in self._languages)
            reasons.append(Reason(f"language {name}", _FOR_LANGUAGE * self._recipe.language))
        is_meant = not meta.task_types or self._recipe.name in meta.task_types
        if not meta.task_types and self._is_for_others(f"{document.topic} {document.title}"):
            reasons = [Reason(one.words, one.weight * _OTHER_TASK) for one in reasons]
        # Words are -1 to 2; of larger numbers only the order counts.
        priority = max(-2, min(meta.priority, 2)) + meta.priority / 100
        value = _BASE + _FOR_PRIORITY * priority + sum(one.weight for one in reasons)
        kinds = kinds_of(f"{document.title}\n{document.topic}")
        is_core = self._is_core(document, kinds)
        return Fit(value, tuple(reasons), is_core, is_meant, kinds, own)

    def _is_core(self, document: Document, kinds: Collection[str]) -> bool:
        """Whether a page is what all work rests on; without a core layer, its principles are."""
        if self._has_core:
            return document.layer == CORE_LAYER
        return "principles" in kinds or document.meta.priority == PRIORITIES["critical"]

    def _page_reasons(self, document: Document) -> Iterable[Reason]:
        meta = document.meta
        if self._recipe.name in meta.task_types:
            # A page for this task alone is more specific than one for every task.
            weight = _FOR_TASK_TYPE * (0.6 + 0.4 / len(meta.task_types))
            yield Reason(f"front matter task_types: {self._recipe.name}", weight)
        wanted = self._recipe.types.get(meta.type, 0.0) / self._most
        if wanted:
            yield Reason(f"type {meta.type}", _FOR_TYPE * wanted)
        if meta.priority > 0:
            yield Reason(f"priority {_PRIORITY_NAMES.get(meta.priority, meta.priority)}", 0.01)
        yield from self._word_reasons(document)

    def _word_reasons(self, document: Document) -> Iterable[Reason]:
        meta = document.meta
        name = document.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        title = self._found(f"{document.title} {name}", "title", _FOR_TITLE)
        tags = " ".join((*meta.tags, *meta.aliases, document.summary))
        yield from title or self._found(tags, "tags", _FOR_TAGS)

    def _section(self, passage: Passage, page: Fit) -> Fit | None:
        headings = " ".join(section.heading for section in passage.sections if section.level > 1)
        named = languages_in(passage.sections[0].heading) if headings and not page.languages else ()
        if named and self._languages and not self._languages.intersection(named):
            return None
        reasons = list(self._section_reasons(passage, headings, page))
        if self._languages.intersection(named):
            name = next(one for one in named if one in self._languages)
            reasons.append(Reason(f"language {name}", _FOR_LANGUAGE * self._recipe.language))
        value = page.value + sum(one.weight for one in reasons)
        value *= 1 - _LATER * min(passage.first, 12)
        if passage.kinds == {"background"}:
            value *= _BACKGROUND
        if self._is_for_others(headings):
            value *= _OTHER_TASK
        if passage.size_bytes < _THIN_BYTES:
            value *= (passage.size_bytes / _THIN_BYTES) ** 0.5
        if len(passage.sections) == 1 and passage.sections[0].level < 2:
            value *= _INTRODUCTION
        if self._is_foreign_code(passage):
            value *= _FOREIGN_CODE
        return Fit(value, (*page.reasons, *reasons), page.is_core, page.is_meant)

    def _section_reasons(self, passage: Passage, headings: str, page: Fit) -> Iterable[Reason]:
        # A heading says little on a page that is about something else.
        trust = _LEAST_TRUST + (1 - _LEAST_TRUST) * min(1.0, page.evidence / _FOR_TITLE)
        kind, wanted = self._kind(passage, page)
        if wanted:
            yield Reason(f"kind {kind}", trust * _FOR_KIND * wanted / self._most)
        yield from self._found(headings, "heading", trust * _FOR_HEADING)
        if page.is_core:
            principles = "principles" in page.kinds or passage.document.meta.priority > 1
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
        named = ", ".join(dict.fromkeys(found[:3]))
        words = f"{self._recipe.name} words in the {place}: {named}"
        return [Reason(words, weight * (1 - 0.5 * rank / len(self._recipe.words)))]

    def _rank(self, found: str) -> int:
        return next((n for n, word in enumerate(self._stems) if found.startswith(word)), 0)


def languages_of(document: Document) -> tuple[str, ...]:
    """The languages a page is for: as it says itself, else as its title and path show."""
    if document.meta.languages:
        named = tuple(canonical(name) for name in document.meta.languages)
        return () if ANY_LANGUAGE.intersection(named) else named
    inner = document.path.split("/", 2)[-1]
    return languages_in(document.title) or languages_of_path(inner)


def _stem(name: str) -> str:
    """`debugging` as it begins in debug and debugger."""
    return re.sub(r"(?:([a-z])\1|(?<=[a-z]))ing$", r"\1", name)
