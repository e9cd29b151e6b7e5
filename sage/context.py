"""What `sage_get_context` answers: the knowledge for a task, exactly within a token budget.

Pure: documents, a request and a search come in, a pack comes out. Freshness and the keeping of
answers are the knowledge base's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sage.assembling import assemble
from sage.bounds import DEFAULT_LANGUAGE
from sage.candidates import Candidate, Lineup, Stock
from sage.deadline import Deadline
from sage.documents import Document
from sage.errors import InvalidInput
from sage.fitness import CORE_LAYER, Fitness
from sage.languages import (
    asked_languages,
    guests_in,
    is_guest,
    languages_of_files,
)
from sage.passages import Passage, footers_of, passages_of
from sage.reasons import Pack, Wish
from sage.recipes import Recipe
from sage.relevance import Rank, Relevance, find_relevance, task_words
from sage.schema import nearest
from sage.supersession import addresses_of, named_document, successors
from sage.tally import Tally
from sage.tokens import TokenCounter

LEAST_RELEVANT = 0.7
"""A page that is meant for other task types comes only when the search finds it so relevant."""
RELEVANT_CORE = 0.25
_KEPT_OFFERS = 32


@dataclass(frozen=True, slots=True)
class Request:
    """What a context is asked for."""

    task_type: str
    language: str = DEFAULT_LANGUAGE
    token_budget: int = 4000
    task: str = ""
    current_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Offer:
    """What the documents of one moment hold for a task type and its languages."""

    all: Stock
    core: Stock
    free: Stock
    by_path: Mapping[str, Sequence[Candidate]]
    """Those included that only a search brings in."""
    shares: Mapping[str, float]
    core_share: float
    places: Mapping[str, int]
    """The paths of core documents, and their place in reading order."""


@dataclass(frozen=True)
class _Base:
    """The documents of one moment with their passages."""

    documents: tuple[Document, ...]
    footers: frozenset[str]
    passages: Mapping[str, tuple[Document, tuple[Passage, ...]]]
    successors: Mapping[str, Document]
    offers: dict[object, _Offer]


class ContextBuilder:
    """Builds contexts; keeps what it learned of documents that did not change. Thread-safe."""

    def __init__(self, recipes: Mapping[str, Recipe], counter: TokenCounter) -> None:
        self._recipes = recipes
        self._tally = Tally(counter)
        self._base = _Base((), frozenset(), {}, {}, {})

    def build(
        self, documents: Sequence[Document], request: Request, rank: Rank, deadline: Deadline
    ) -> Pack:
        """The pack for a request.

        Args:
            documents: every document that may be packed, in reading order.

        Raises:
            InvalidInput: no such task type, or a budget that holds nothing.
            TimeoutExceeded: the deadline passed.
        """
        recipe = recipe_named(self._recipes, request.task_type)
        base = self._known(tuple(documents), deadline)
        languages = languages_of_request(request)
        offer = self._offer(base, recipe, languages)
        relevance = find_relevance(
            request.task, request.current_files, rank, offer.by_path, base.successors
        )
        deadline.check()
        found = _found(offer, relevance) if relevance else []
        pages = relevance.pages if relevance else {}
        # Beyond its share the core comes only where the search asks for it.
        free = [one for one in found if not one.fit.is_core or one.relevance >= RELEVANT_CORE]
        wish = Wish(
            task_type=recipe.name,
            all=Lineup(offer.all, found, pages),
            core=Lineup(offer.core, [one for one in found if one.fit.is_core], pages),
            free=Lineup(offer.free, free, pages),
            always=_always(recipe, base, offer, found),
            shares=offer.shares,
            core_share=offer.core_share,
            places=offer.places,
            words=task_words(request.task, request.current_files),
            has_task=relevance is not None,
        )
        return assemble(wish, request.token_budget, self._tally, deadline)

    def _known(self, documents: tuple[Document, ...], deadline: Deadline) -> _Base:
        known = self._base
        if known.documents == documents:
            return known
        footers = footers_of(documents)
        same_footers = footers == known.footers
        passages = {}
        for document in documents:
            deadline.check()
            before = known.passages.get(document.path)
            if before and before[0] is document and same_footers:
                passages[document.path] = before
            else:
                passages[document.path] = (document, passages_of(document, footers))
        self._base = base = _Base(documents, footers, passages, successors(documents), {})
        return base

    def _offer(self, base: _Base, recipe: Recipe, languages: tuple[str, ...]) -> _Offer:
        key = (recipe.name, languages)
        known = base.offers.get(key)
        if known is None:
            if len(base.offers) >= _KEPT_OFFERS:
                base.offers.clear()
            known = base.offers[key] = _offered(base, Fitness(recipe, languages))
        return known


def recipe_named(recipes: Mapping[str, Recipe], task_type: str) -> Recipe:
    """The recipe of a task type.

    Raises:
        InvalidInput: there is no such task type.
    """
    recipe = recipes.get(task_type.strip().casefold()) or recipes.get(task_type)
    if recipe is None:
        raise InvalidInput(
            f"there is no task type {task_type!r}; use one of {', '.join(recipes)}"
            f"{nearest(task_type, recipes)}"
        )
    return recipe


def languages_of_request(request: Request) -> tuple[str, ...]:
    """The languages whose pages are wanted; none means those of every language.

    The files being worked on name theirs. A default that no file bears out yields to them.
    """
    asked = asked_languages(request.language)
    if not asked:
        return ()
    found = languages_of_files(request.current_files)
    main = tuple(language for language in found if not is_guest(language))
    if main and asked == (DEFAULT_LANGUAGE,) and DEFAULT_LANGUAGE not in main:
        asked = ()
    return tuple(dict.fromkeys((*main, *asked, *found, *guests_in(request.task))))


def _offered(base: _Base, fitness: Fitness) -> _Offer:
    pages = ((one, base.passages[one.path][1]) for one in base.documents)
    everything = Stock(fitness.candidates(pages))
    meant = [one for one in everything.candidates if one.fit.is_meant]
    core = Stock(one for one in meant if one.fit.is_core)
    layers = sorted({one.passage.document.layer for one in meant})
    return _Offer(
        all=Stock(meant),
        core=core,
        free=Stock(one for one in meant if not one.fit.is_core),
        by_path=everything.by_path,
        shares=fitness.shares(layers),
        core_share=fitness.shares({*layers, CORE_LAYER})[CORE_LAYER],
        places={one.path: n for n, one in enumerate(base.documents) if one.path in core.by_path},
    )


def _found(offer: _Offer, relevance: Relevance) -> list[Candidate]:
    """The candidates on pages that a search found, with what it says of them."""
    found = []
    for path in relevance.pages:
        for one in offer.by_path.get(path, ()):
            value = relevance.of(one.passage)
            if one.fit.is_meant or value >= LEAST_RELEVANT:
                replaces = relevance.replaces.get(path, "")
                found.append(Candidate(one.passage, one.fit, value, replaces))
    return found


def _always(
    recipe: Recipe, base: _Base, offer: _Offer, found: Iterable[Candidate]
) -> list[Candidate]:
    """The candidates that the recipe names as always belonging."""
    if not recipe.always:
        return []
    weighed = {one.key: one for one in found}
    addresses = addresses_of(base.documents)
    wanted: list[Candidate] = []
    for topic in recipe.always:
        document = named_document(base.documents, addresses, topic)
        anchor = topic.partition("#")[2]
        offered = offer.by_path.get(document.path, ()) if document else ()
        wanted += [
            weighed.get(one.key, one)
            for one in offered
            if not anchor or any(section.anchor == anchor for section in one.passage.sections)
        ]
    return wanted
