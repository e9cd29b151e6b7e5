"""What `sage_get_context` answers: the knowledge for a task, within a budget for the whole answer.

What the index keeps of each page, a search and a way to read a page from it come in, a context
comes out. Freshness and the keeping of answers are the knowledge base's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sage.context.excerpts import ExactCounter, TokenTally
from sage.context.explain import PackedContext, answer_of
from sage.context.packing import Packing
from sage.context.recipes import Recipe
from sage.context.repository import below_root, imports_of
from sage.context.scoring import CORE_LAYER, Candidate, RecipeScorer, Selection
from sage.context.selection import (
    ContextRequest,
    KnownPages,
    PageBase,
    ScoredPages,
    Selector,
    languages_of_request,
)
from sage.deadline import Deadline
from sage.documents.boilerplate import find_footers
from sage.documents.document import Page, reading_order
from sage.documents.source_roots import Listing, are_complete
from sage.documents.topics import successors
from sage.errors import InvalidInput, did_you_mean
from sage.search.catalog import DocumentEntry
from sage.search.protocol import Snapshot
from sage.search.searcher import RankedSections
from sage.values import MAX_CURRENT_FILES, MAX_TASK

__all__ = ["ContextBuilder", "ContextRequest", "PageBase"]

STOP_SHARE = 0.25
"""What serves the task less than this share of the best does not come."""
SMALLER_SHARE = 0.6
"""In the place of what does not fit comes only what is worth this share of it."""
SAME_DOCUMENT = 0.95
"""Without a task: what a section is worth for each one that its document already has."""
ALWAYS_SHARE = 0.6
PRINCIPLES_SHARE = 0.1
"""The most of the budget that goes to principles when there is a task."""
PRINCIPLES_ALONE = 0.3
"""The same when the base holds nothing about the task."""
LEAST_PRINCIPLES = 0.3
MOST_PRINCIPLES = 0.5
LEAST_PRINCIPLE = 130
"""Tokens that a short principle takes: a smaller share is not kept for one."""
ONE_PRINCIPLE = 220
"""Tokens that hold one principle."""
_KEPT_SCORES = 16


def request_in(
    root: Path,
    task_type: str,
    language: str | None,
    token_budget: int,
    task: str,
    current_files: Sequence[str],
    own_language: str,
) -> ContextRequest:
    """What is asked for in a repository, with what its files say of themselves."""
    files = tuple(below_root(root, name) for name in current_files[:MAX_CURRENT_FILES])
    return ContextRequest(
        task_type,
        language,
        token_budget,
        task[:MAX_TASK],
        files,
        imports_of(root, files) if files else (),
        own_language,
    )


class ContextBuilder:
    """Builds contexts; keeps what it learned of pages that did not change. Thread-safe."""

    def __init__(
        self, recipes: Mapping[str, Recipe], counter: ExactCounter, layers: Sequence[str]
    ) -> None:
        self._recipes = recipes
        self._tally = TokenTally(counter)
        self._layers = {layer: n for n, layer in enumerate(layers)}
        self._known = KnownPages({}, (), {}, {}, False)

    def build(self, base: PageBase, request: ContextRequest, deadline: Deadline) -> PackedContext:
        """The context for a request.

        Raises:
            InvalidInput: no such task type, or a budget that holds nothing.
            TimeoutExceeded: the deadline passed.
        """
        recipe = recipe_named(self._recipes, request.task_type)
        known = self._knowledge(base.entries)
        scored = self._scored(known, recipe, request)
        selector = Selector(base, known, recipe, scored, request, deadline)
        selection = selector.select()
        return _Assembly(selection, request.token_budget, self._tally, deadline).run()

    def build_from(
        self,
        listings: Sequence[Listing],
        snapshot: Snapshot,
        request: ContextRequest,
        overrides: Mapping[str, tuple[str, ...]] | None,
        deadline: Deadline,
    ) -> PackedContext:
        """The same from the index of one moment; not complete when it is behind its files."""

        def load(path: str) -> Page | None:
            return snapshot.page(path, deadline)

        def rank(text: str, limit: int) -> RankedSections:
            return snapshot.rank_sections(text, limit=limit, deadline=deadline)

        base = PageBase(snapshot.searcher.catalog.entries, rank, load, overrides)
        pack = self.build(base, request, deadline)
        is_current = are_complete(listings) and not snapshot.behind
        return pack if is_current else replace(pack, complete=False)

    def _scored(self, known: KnownPages, recipe: Recipe, request: ContextRequest) -> ScoredPages:
        has_task = bool(request.task.strip() or request.current_files)
        languages = languages_of_request(request)
        key = (recipe.name, languages, has_task)
        scored = known.scored.get(key)
        if scored is None:
            if len(known.scored) >= _KEPT_SCORES:
                known.scored.clear()
            scorer = RecipeScorer(recipe, languages, known.has_core, any_guest=has_task)
            scored = known.scored[key] = ScoredPages(scorer)
        return scored

    def _knowledge(self, entries: Mapping[str, DocumentEntry]) -> KnownPages:
        known = self._known
        if known.entries is entries:
            return known
        every = list(entries.values())
        ordered = sorted(
            every,
            key=lambda one: (
                self._layers.get(one.layer, len(self._layers)),
                reading_order(one.path, one.is_index, one.order),
            ),
        )
        footers = find_footers((one.source, one.layer, one.last_lines) for one in ordered)
        replaced = {path: one.path for path, one in successors(ordered).items()}
        has_core = any(entry.layer == CORE_LAYER for entry in ordered)
        passages = known.passages if footers == known.footers else {}
        self._known = known = KnownPages(
            entries,
            ordered,
            footers,
            replaced,
            has_core,
            [entry for entry in every if entry.applies_to],
            passages,
            lock=known.lock,
        )
        return known


class _Assembly:
    """One context in the making: what comes first, what fills the rest, until all is within."""

    def __init__(
        self, selection: Selection, budget: int, tally: TokenTally, deadline: Deadline
    ) -> None:
        self._selection = selection
        self._budget = budget
        self._tally = tally
        # What stands in every answer: the names of its fields, the notes, a few omitted topics.
        fixed = answer_of(selection, [], {}, [], 0)
        self._room = budget - tally.in_json(fixed) - min(60, budget // 25)
        same = 1.0 if selection.has_task else SAME_DOCUMENT
        self._packing = Packing(budget, tally, selection.shares, same, deadline)

    def run(self) -> PackedContext:
        packing, selection = self._packing, self._selection
        packing.pack(selection.always, int(self._room * ALWAYS_SHARE))
        left = self._pack_task() if selection.has_task else self._pack_recipe()
        context = self._context(left)
        while context.answer_tokens > self._budget and packing.taken:
            packing.drop_last()
            context = self._context(left)
        if not packing.taken:
            context = self._least(context)
        return context

    def _pack_task(self) -> list[Candidate]:
        packing, selection = self._packing, self._selection
        best = max((one.appeal for one in selection.wanted), default=0.0)
        reserve = int(self._budget * PRINCIPLES_SHARE)
        if not best or reserve < LEAST_PRINCIPLE:
            reserve = 0
        left = packing.pack(
            selection.wanted, self._room - reserve, best * STOP_SHARE, SMALLER_SHARE
        )
        packing.fill(left, self._room - reserve)
        most = int(self._budget * PRINCIPLES_ALONE)
        if best:
            most = int(min(self._budget, packing.used) * PRINCIPLES_SHARE)
        packing.pack(selection.principles, min(self._room, packing.used + most))
        left = packing.pack(left, self._room, best * STOP_SHARE)
        return [one for one in left if packing.lacks(one)]

    def _pack_recipe(self) -> list[Candidate]:
        packing, selection = self._packing, self._selection
        share = min(selection.shares.get(CORE_LAYER, LEAST_PRINCIPLES), MOST_PRINCIPLES)
        least = min(ONE_PRINCIPLE, int(self._room * LEAST_PRINCIPLES))
        limit = packing.used + max(least, int(self._room * share))
        packing.pack(selection.principles, limit, floor=SMALLER_SHARE)
        everything = [*selection.wanted, *selection.principles]
        left = packing.pack(selection.wanted, self._room, floor=SMALLER_SHARE)
        while packing.fill(left, self._room):
            pass
        packing.pack(everything, self._room)
        left = [one for one in everything if packing.lacks(one)]
        left.sort(key=lambda one: (-one.appeal, one.key))
        while packing.fill(left, self._room):
            pass
        return [one for one in left if packing.lacks(one)]

    def _context(self, left: Sequence[Candidate]) -> PackedContext:
        places = None if self._selection.has_task else self._selection.places
        documents = self._packing.documents(places)
        lacking = [one for one in left if self._packing.lacks(one)]
        return PackedContext.of(
            self._selection,
            documents,
            self._packing.taken,
            lacking,
            self._tally,
            self._budget,
            self._why_not,
        )

    def _why_not(self, candidate: Candidate) -> str:
        """Why a candidate that would have served is not among what was taken."""
        needed, left = self._packing.cost(candidate), max(0, self._room - self._packing.used)
        if needed > left:
            return f"does not fit: it takes {needed:,} tokens and {left:,} are left"
        best = max(one.appeal for one in self._packing.taken.values())
        return f"less relevant: it is worth {100 * candidate.appeal / best:.0f} % of the best"

    def _least(self, empty: PackedContext) -> PackedContext:
        """The best candidate of which at least something fits, when nothing did."""
        selection = self._selection
        offered = [*selection.always, *selection.wanted, *selection.principles]
        if not offered:
            return empty
        best = sorted(offered, key=lambda one: (-one.appeal, one.key))[:100]
        small = sorted(offered, key=lambda one: (one.passage.size_bytes, one.key))[:50]
        needed: list[int] = []
        for candidate in (*best, *small):
            self._packing.take_least(candidate)
            context = self._context(())
            if context.answer_tokens <= self._budget:
                return context
            needed.append(context.answer_tokens)
            self._packing.drop_last()
        raise InvalidInput(
            f"token_budget {self._budget} is too small for any section of this knowledge base; "
            f"the least that works here is {min(needed)}"
        )


def recipe_named(recipes: Mapping[str, Recipe], task_type: str) -> Recipe:
    """The recipe of a task type.

    Raises:
        InvalidInput: there is no such task type.
    """
    recipe = recipes.get(task_type.strip().casefold()) or recipes.get(task_type)
    if recipe is None:
        raise InvalidInput(
            f"there is no task type {task_type!r}; use one of {', '.join(recipes)}"
            f"{did_you_mean(task_type, recipes)}"
        )
    return recipe
