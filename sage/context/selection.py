"""Which passages a context may be made of: found for the task, wanted by the recipe, in scope.

Pages are judged by what the index keeps of them, and only those that may come are opened.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sage.context.passages import Passage, passages_of
from sage.context.recipes import Recipe
from sage.context.relevance import (
    PRINCIPLES_WEIGHT,
    Rank,
    Relevance,
    find_relevance,
    meant_by,
    queries_of,
    task_words,
)
from sage.context.scoring import Candidate, Reason, RecipeScorer, Selection
from sage.deadline import Deadline
from sage.documents.boilerplate import Footers
from sage.documents.document import Page
from sage.documents.languages import (
    asked_languages,
    guests_in,
    is_guest,
    languages_named,
    languages_of_files,
)
from sage.documents.scopes import matching_glob
from sage.documents.topics import addresses_of, named_document
from sage.search.catalog import DocumentEntry
from sage.values import DEFAULT_LANGUAGE

NOTHING_NOTE = "nothing here is about this task; only principles follow"
LEAST_FOR_OTHERS = 0.7
"""A page that is meant for other task types comes only when the search finds it so relevant."""
LEAST_NAMED = 0.5
"""A page that may not come is named when it is so near the best."""
MOST_PAGES = 16
"""Pages that are opened for a task beside those whose scope holds its files."""
MOST_PRINCIPLE_PAGES = 8
PRINCIPLE_PAGES_FOR_TASK = 3
WEAKEST_PAGE = 0.15
"""A page whose best section is found more weakly than this share of the best is not opened."""
_PAGES_FOR_RECIPE = 2.0
"""Without a task, pages with so many times the tokens of the budget are looked at."""
_LEFT_NAMED = 3
KEPT_BYTES = 24_000_000
"""What opened pages may take, with all that was worked out of them, until the next context."""
_PAGE_BYTES = 4_000
_BYTES_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a context is asked for."""

    task_type: str
    language: str | None = None
    """None means the repository's own."""
    token_budget: int = 4000
    task: str = ""
    current_files: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """What the first lines of the files import."""
    own_language: str = DEFAULT_LANGUAGE
    """The language of the repository."""


@dataclass(frozen=True)
class PageBase:
    """The pages of one moment: what the index keeps of each, and how to search and open them."""

    entries: Mapping[str, DocumentEntry]
    rank: Rank
    load: Callable[[str], Page | None]
    """Opens the page at a path; None when it cannot be read now."""
    overrides: Mapping[str, Sequence[str]] | None = None
    """By path, when there are several sources: the others that have a page of the topic."""


@dataclass(frozen=True)
class KnownPages:
    """What is worked out once for the entries of one moment."""

    entries: Mapping[str, DocumentEntry]
    ordered: Sequence[DocumentEntry]
    footers: Footers
    successors: Mapping[str, str]
    has_core: bool
    scoped: Sequence[DocumentEntry] = ()
    """Those that say which files they belong to."""
    passages: dict[str, tuple[DocumentEntry, tuple[Passage, ...]]] = field(default_factory=dict)
    scored: dict[object, "ScoredPages"] = field(default_factory=dict)
    """By recipe and languages."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, entry: DocumentEntry, passages: tuple[Passage, ...]) -> None:
        """Remember the passages of a page, in place of those of the first when it is too much."""
        with self.lock:
            self.passages.pop(entry.path, None)
            self.passages[entry.path] = (entry, passages)
            kept = sum(_size_of(page) for page, _ in self.passages.values())
            while kept > KEPT_BYTES and len(self.passages) > 1:
                path = next(iter(self.passages))
                kept -= _size_of(self.passages.pop(path)[0])
                for scored in list(self.scored.values()):
                    scored.candidates.pop(path, None)


def _size_of(entry: DocumentEntry) -> int:
    """Roughly what the passages of a page take in memory."""
    return _PAGE_BYTES + _BYTES_PER_TOKEN * entry.tokens


@dataclass(frozen=True)
class ScoredPages:
    """The pages of one moment for one recipe and its languages, as far as they were opened."""

    scorer: RecipeScorer
    candidates: dict[str, list[Candidate]] = field(default_factory=dict)


class Selector:
    """Finds what a context may be made of, opening only pages that may come."""

    def __init__(
        self,
        base: PageBase,
        known: KnownPages,
        recipe: Recipe,
        scored: ScoredPages,
        request: ContextRequest,
        deadline: Deadline,
    ) -> None:
        self._base = base
        self._known = known
        self._recipe = recipe
        self._scored = scored
        self._scorer = scored.scorer
        self._request = request
        self._deadline = deadline

    def select(self) -> Selection:
        """The candidates, by what they come for."""
        request = self._request
        relevance = self._relevance()
        self._deadline.check()
        notes: list[str] = []
        wanted: list[Candidate] = []
        if relevance is None:
            wanted = self._by_recipe()
        else:
            left_out = self._left_out(relevance)
            if relevance.finds_nothing and request.task.strip():
                notes.append(NOTHING_NOTE)
                relevance.pages = dict.fromkeys(relevance.scopes, 1.0)
                relevance.sections = {}
            wanted = self._by_task(relevance)
            notes += left_out
        return Selection(
            task_type=self._recipe.name,
            always=self._always(),
            wanted=wanted,
            principles=self._principles(relevance),
            shares=self._shares() if relevance is None else {},
            words=task_words(request.task, request.current_files, request.imports),
            places=self._core_places(),
            has_task=relevance is not None,
            notes=notes,
            overrides=self._base.overrides,
        )

    def _relevance(self) -> Relevance | None:
        request = self._request
        *texts, files = queries_of(request.task, request.current_files, request.imports)
        entries = self._known.entries
        scopes = {entry.path: glob for entry in self._known.scoped if (glob := self._scope(entry))}
        return find_relevance(
            texts,
            meant_by(request.task),
            files,
            self._base.rank,
            lambda path: path in entries and not self._scorer.why_not(entries[path]),
            self._known.successors,
            scopes,
        )

    def _scope(self, entry: DocumentEntry) -> str:
        """The glob of a page that may come in which one of the files lies."""
        globs = (matching_glob(entry.applies_to, name) for name in self._request.current_files)
        glob = next(filter(None, globs), "")
        return "" if self._scorer.why_not(entry) else glob

    def _by_task(self, relevance: Relevance) -> list[Candidate]:
        """The passages of the pages that the search found or that belong to the files."""
        pages = [
            (value, path)
            for path, value in relevance.pages.items()
            if path in self._known.entries and not self._scorer.why_not(self._known.entries[path])
        ]
        pages.sort(key=lambda page: (-page[0], page[1]))
        in_scope = [page for page in pages if page[1] in relevance.scopes]
        least = WEAKEST_PAGE * pages[0][0] if pages else 0.0
        found = [page for page in pages if page[1] not in relevance.scopes and page[0] >= least]
        wanted: list[Candidate] = []
        for value, path in (*in_scope, *found[:MOST_PAGES]):
            entry = self._known.entries[path]
            is_scoped = path in relevance.scopes
            fit = self._scorer.page(entry)
            if not fit.is_meant and not is_scoped and value < LEAST_FOR_OTHERS:
                continue
            wanted += self._relevant(path, relevance)
        return wanted

    def _relevant(self, path: str, relevance: Relevance) -> list[Candidate]:
        """The passages of one page with what the search says of them."""
        candidates = self._candidates(path)
        if not candidates:
            return []
        reasons = []
        if path in relevance.scopes:
            reasons.append(Reason(f"applies to {relevance.scopes[path]}", 3.0))
        if path in relevance.replaces:
            reasons.append(Reason(f"replaces {relevance.replaces[path]}", 1.2))
        if path in relevance.by_meaning:
            reasons.append(Reason("task, by meaning", 1.5))
        values = relevance.of_page([one.passage for one in candidates])
        if "principles" in self._scorer.page(self._known.entries[path]).kinds:
            values = [PRINCIPLES_WEIGHT * value for value in values]
        return [
            Candidate(one.passage, one.fit, value, tuple(reasons))
            for one, value in zip(candidates, values, strict=True)
        ]

    def _by_recipe(self) -> list[Candidate]:
        """Without a task: the passages of the pages that the recipe wants most."""
        pages = [
            (self._scorer.page(entry), entry)
            for entry in self._known.ordered
            if not self._scorer.why_not(entry) and not self._scorer.is_core(entry)
        ]
        meant = [(fit, entry) for fit, entry in pages if fit.is_meant]
        meant.sort(key=lambda page: (page[1].is_index, -page[0].value, page[1].path))
        wanted: list[Candidate] = []
        tokens = 0
        for _, entry in meant:
            self._deadline.check()
            wanted += self._candidates(entry.path)
            tokens += entry.tokens
            if tokens > _PAGES_FOR_RECIPE * self._request.token_budget + 4_000:
                break
        return wanted

    def _principles(self, relevance: Relevance | None) -> list[Candidate]:
        """The passages of the pages that all work rests on, those about the task first."""
        scorer = self._scorer
        core = [
            entry
            for entry in self._known.ordered
            if not entry.is_index and scorer.is_core(entry) and not scorer.why_not(entry)
        ]
        fits = {entry.path: self._scorer.page(entry) for entry in core}
        core = [entry for entry in core if fits[entry.path].is_meant]
        found = relevance.pages if relevance else {}
        core.sort(key=lambda entry: -found.get(entry.path, 0.0) - fits[entry.path].value)
        principles: list[Candidate] = []
        most = PRINCIPLE_PAGES_FOR_TASK if relevance else MOST_PRINCIPLE_PAGES
        for entry in core[:most]:
            principles += self._candidates(entry.path)
        return principles

    def _core_places(self) -> dict[str, int]:
        """The places of the pages that all work rests on in the order of reading."""
        is_core = self._scorer.is_core
        return {one.path: n for n, one in enumerate(self._known.ordered) if is_core(one)}

    def _always(self) -> list[Candidate]:
        """The candidates that the recipe names as always belonging."""
        if not self._recipe.always:
            return []
        addresses = addresses_of(self._known.ordered)
        wanted: list[Candidate] = []
        for topic in self._recipe.always:
            entry = named_document(self._known.ordered, addresses, topic)
            anchor = topic.partition("#")[2]
            reason = Reason(f"always for {self._recipe.name}", 4.0)
            offered = self._candidates(entry.path) if entry else ()
            wanted += [
                Candidate(one.passage, one.fit, None, (reason,))
                for one in offered
                if not anchor or any(section.anchor == anchor for section in one.passage.sections)
            ]
        return wanted

    def _left_out(self, relevance: Relevance) -> list[str]:
        """The pages that would have served, and why they may not come."""
        best = max(relevance.pages.values(), default=0.0)
        kept_out = [
            (value, entry.topic, self._scorer.why_not(entry))
            for path, value in relevance.pages.items()
            if value >= LEAST_NAMED * best
            and path not in self._known.successors
            and (entry := self._known.entries.get(path)) is not None
            and self._scorer.why_not(entry)
        ]
        kept_out.sort(key=lambda one: (-one[0], one[1]))
        named = [f"{topic} ({why})" for _, topic, why in kept_out[:_LEFT_NAMED]]
        return [f"left out: {', '.join(named)}"] if named else []

    def _candidates(self, path: str) -> list[Candidate]:
        """The passages of one page that may come, with how well they fit the recipe."""
        self._deadline.check()
        known = self._scored.candidates.get(path)
        if known is None:
            entry = self._known.entries[path]
            passages = self._passages(entry)
            if passages is None:
                return []
            page = self._scorer.page(entry)
            fits = ((one, self._scorer.passage(one, page)) for one in passages)
            known = [Candidate(one, fit) for one, fit in fits if fit is not None]
            self._scored.candidates[path] = known
        return known

    def _passages(self, entry: DocumentEntry) -> tuple[Passage, ...] | None:
        """The passages of a page; None when it cannot be opened now."""
        known = self._known.passages.get(entry.path)
        # An entry stays the same object for as long as its page does.
        if known is None or known[0] is not entry:
            page = self._base.load(entry.path)
            if page is None:
                return None
            known = (entry, passages_of(page, self._known.footers))
            self._known.keep(*known)
        return known[1]

    def _shares(self) -> dict[str, float]:
        return self._scorer.shares({entry.layer for entry in self._known.ordered})


def languages_of_request(request: ContextRequest) -> tuple[str, ...]:
    """The languages whose pages are wanted; none means those of every language.

    The files being worked on name theirs, and so does the task. The repository's own language
    yields to that of the files.
    """
    asked = asked_languages(request.own_language if request.language is None else request.language)
    if not asked:
        return ()
    found = languages_of_files(request.current_files)
    main = tuple(language for language in found if not is_guest(language))
    if main and request.language is None and not set(asked).intersection(main):
        asked = ()
    named: Iterable[str] = (*languages_named(request.task), *guests_in(request.task))
    return tuple(dict.fromkeys((*main, *asked, *found, *named)))
