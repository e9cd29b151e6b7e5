"""The knowledge base: one object that answers, from the files as they are at each call.

It knows nothing of any protocol; tools, commands and pages are built on it. Thread-safe.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from sage.answers import (
    ContextAnswer,
    IndexInfo,
    InfoAnswer,
    KnowledgeAnswer,
    ReplicaInfo,
    ScopeAnswer,
    SearchAnswer,
)
from sage.cache import AnswerCache
from sage.deadline import Clocks, Deadline, no_deadline
from sage.documents.document import Document
from sage.documents.library import Library
from sage.documents.source_roots import Listing, files_of
from sage.errors import InvalidInput
from sage.live_index import Backend, Lazy, LiveIndex
from sage.reading import Room, load_in_time, read_topic
from sage.settings import Settings
from sage.status import take_status
from sage.terms.index_file import UntrustedIndex
from sage.token_counter import BundledVocabulary, LightCounter, TokenCounter
from sage.values import (
    ALL_LAYERS,
    DEFAULT_ANSWER,
    DEFAULT_BUDGET,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
    MAX_ANSWER,
    MAX_BUDGET,
    MAX_OFFSET,
    MAX_RESULTS,
    MAX_TOKENS,
    MIN_ANSWER,
    RELEVANCE,
    check_range,
    checked_topic,
    layers_meant,
    source_meant,
)

if TYPE_CHECKING:
    from sage.context.builder import ContextBuilder
    from sage.context.explain import PackedContext
    from sage.search.catalog import DocumentEntry
    from sage.search.engine import Progress
    from sage.search.explain import Explanation
    from sage.search.protocol import Snapshot
    from sage.semantic.meaning import SectionMeaning
    from sage.semantic.nearness import Nearness

T = TypeVar("T")

_NEVER_STALE = 12_000
_NO_QUERY = (
    "query is empty; ask a question or name what you look for, or list pages by types, tags, "
    "status, source or sort"
)


class KnowledgeBase:
    """Everything a team keeps under `.knowledge`, ready to be asked."""

    def __init__(
        self,
        settings: Settings,
        clocks: Clocks | None = None,
        backend: Backend | None = None,
        counter: LightCounter | None = None,
    ) -> None:
        """Args:
        backend: where all of it lies; None means in files, with an index beside them.
        counter: one that others use, too; its vocabulary takes fifty megabytes.
        """
        self.settings = settings
        self._backend = backend
        self.library = (
            Library(settings, clocks) if backend is None else backend.library(settings, clocks)
        )
        self.light_counter = counter or LightCounter(TokenCounter(), BundledVocabulary())
        """The same counts, without tiktoken for as long as nobody needed it."""
        self.counter = self.light_counter.counter
        self._clocks = clocks or Clocks()
        self._clock = self._clocks.monotonic
        self._answers = AnswerCache(settings.cache.ttl_seconds, self._clock)
        self._index = LiveIndex(self.library, self.light_counter, backend)
        self._last: tuple[tuple[Listing, ...], Snapshot] | None = None
        self._contexts = Lazy(self._open_contexts)
        self._language = Lazy(self._find_language)
        self._source_names = tuple(one.name for one in settings.served)
        self.has_sources = len(self._source_names) > 1
        """Whether pages come from more than one source, so that answers say which."""
        self._started = self._clock()

    @property
    def task_types(self) -> tuple[str, ...]:
        """What a context can be asked for."""
        from sage.context.recipes import task_types

        return task_types(self.settings)

    def warm(self, deadline: Deadline | None = None, progress: "Progress | None" = None) -> None:
        """Bring the search index up to date, so that the next search need not."""
        self._current(deadline or no_deadline(), progress)

    def narrowed(self, settings: Settings) -> "KnowledgeBase":
        """The same base with other settings: fewer layers, for somebody who may see no more."""
        settings = self.library.narrowed_settings(settings)
        made = KnowledgeBase(settings, None, self._backend, self.light_counter)
        made._started += self._started - self._clock()
        return made

    @property
    def meaning(self) -> "SectionMeaning | None":
        """What compares meanings of files; None where only words are searched, or in a cluster."""
        return self._index.meaning if self._index.compares_meanings else None

    def nearness(self, deadline: Deadline | None = None) -> "Nearness | None":
        """What is near in meaning; None where only words are compared, or while no vectors are."""
        if not self._index.compares_meanings:
            return None
        from sage.semantic.nearness import nearness_of

        snapshot = self.snapshot(deadline or no_deadline())
        return nearness_of(snapshot.searcher, snapshot.distrust)

    def close(self) -> None:
        """Keep what is worth keeping for the next start."""
        self._index.close()

    def layer_names(self, layer: str) -> tuple[str, ...]:
        """The layers that a `layer` argument means; one that is not there is InvalidInput."""
        return layers_meant(layer, self.settings.layers)

    def source_name(self, name: str | None) -> str | None:
        """The source that a `source` argument means; None for all, InvalidInput for no source."""
        return source_meant(name, self._source_names)

    def get(
        self,
        layer: str,
        topic: str | None = None,
        *,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        deadline: Deadline | None = None,
    ) -> KnowledgeAnswer:
        """A layer, or the documents and sections that a topic names.

        Raises:
            InvalidInput: no such layer, or a limit out of range.
            NotFound: nothing has that topic; the message names the nearest.
            TimeoutExceeded: the deadline passed before anything could be looked up.
        """
        started = self._clock()
        deadline = deadline or no_deadline()
        topic = checked_topic(topic)
        check_range("max_tokens", max_tokens, MAX_TOKENS)
        listings = self.library.refresh(self.layer_names(layer), deadline)
        room = Room(max_tokens, self.indexed)
        found, from_cache = self._answers.remember(
            ("get", listings, topic, max_tokens),
            lambda: read_topic(self.library, listings, topic, room, self.counter, deadline),
            lambda answer: answer.may_keep,
            deadline,
        )
        return found.answer(layer, topic, self._since(started), from_cache)

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_RESULTS,
        layer: str = ALL_LAYERS,
        types: Collection[str] = (),
        tags: Collection[str] = (),
        status: str | None = None,
        source: str | None = None,
        sort: str | None = None,
        offset: int = 0,
        max_tokens: int = DEFAULT_ANSWER,
        whole: bool = True,
        deadline: Deadline | None = None,
    ) -> SearchAnswer:
        """The documents that answer a query, as much of them as a budget allows.

        A blank query with filters, an order or an offset lists all documents that pass.

        Args:
            sort: relevance, which is the default, date or path.
            offset: how many results to leave out, those of the calls before.
            max_tokens: the most for the whole answer as compact JSON.
            whole: whether sections may come whole; otherwise each by its best sentences.

        Raises:
            InvalidInput: a blank query and nothing to list by, no such layer, type, status or
                order, or a limit out of range.
        """
        from sage.search.query import checked_filters, checked_sort
        from sage.search.sections import SearchOptions

        started = self._clock()
        deadline = deadline or no_deadline()
        filters = checked_filters(types, tags, status, self.source_name(source))
        sort = checked_sort(sort)
        has_words = bool(query.strip())
        if not has_words and sort is None and not offset and not any(filters):
            raise InvalidInput(_NO_QUERY)
        check_range("limit", limit, MAX_RESULTS)
        check_range("offset", offset, MAX_OFFSET, 0)
        check_range("max_tokens", max_tokens, MAX_ANSWER, MIN_ANSWER)
        options = SearchOptions(limit, offset, sort or RELEVANCE, self.layer_names(layer), filters)

        def ask(listings: tuple[Listing, ...], snapshot: "Snapshot") -> SearchAnswer:
            def composed() -> SearchAnswer:
                from sage.search.answering import compose

                found = snapshot.search(query, options, deadline)
                months = self.settings.check.stale_months or _NEVER_STALE
                count, day = self.light_counter.vocabulary.count, self._clocks.months_ago(months)
                overrides = self.overrides(listings)
                return compose(found, max_tokens, count, day, whole and has_words, overrides)

            key = ("search", listings, snapshot.meaning, query, options, max_tokens, whole)
            kept: tuple[SearchAnswer, bool] = self._answers.remember(
                key, composed, lambda answer: "complete" not in answer, deadline
            )
            return kept[0]

        answer = self._from_index(ask, deadline)
        results = [result.copy() for result in answer["results"]]
        return {**answer, "results": results, "query_time_ms": self._since(started)}

    @property
    def indexed(self) -> "Mapping[str, DocumentEntry]":
        """What the index knows of each page by now, by path; to ask opens nothing."""
        return self._index.entries

    def snapshot(self, deadline: Deadline) -> "Snapshot":
        """The index as it is now, to be searched."""
        return self._current(deadline)[1]

    def topics_for(self, query: str, layer: str, limit: int) -> list[str]:
        """The topics of the results of a search, best first."""
        from sage.search.sections import SearchOptions

        options = SearchOptions(limit, layers=self.layer_names(layer))
        patience = no_deadline()
        found = self._from_index(lambda _, one: one.search(query, options, patience), patience)
        return [section.topic for section in found.sections]

    def overrides(self, listings: Sequence[Listing]) -> dict[str, tuple[str, ...]] | None:
        """By path the other sources that have a page of its topic; None with one source alone."""
        if not self.has_sources:
            return None
        return {one.path: one.overrides for one in files_of(listings) if one.overrides}

    def topics(self, layer: str = ALL_LAYERS) -> list[str]:
        """The topic of every document of a layer, from the names alone."""
        listings = self.library.refresh(self.layer_names(layer), no_deadline())
        return [source.topic for source in files_of(listings)]

    def explain(
        self,
        query: str,
        *,
        limit: int = DEFAULT_RESULTS,
        layer: str = ALL_LAYERS,
        types: Collection[str] = (),
        tags: Collection[str] = (),
        status: str | None = None,
        source: str | None = None,
        path: str = "",
        deadline: Deadline | None = None,
    ) -> list["Explanation"]:
        """What each result of a search owes its place to; a page named by `path` wherever it is."""
        from sage.search.explain import explain_ranking
        from sage.search.query import checked_filters
        from sage.search.sections import SearchOptions

        deadline = deadline or no_deadline()
        filters = checked_filters(types, tags, status, self.source_name(source))
        options = SearchOptions(limit, layers=self.layer_names(layer), filters=filters)
        return self._from_index(
            lambda _, snapshot: explain_ranking(snapshot.searcher, query, path, options, deadline),
            deadline,
        )

    def context(
        self,
        task_type: str,
        *,
        language: str | None = None,
        token_budget: int = DEFAULT_BUDGET,
        task: str | None = None,
        current_files: Sequence[str] = (),
        deadline: Deadline | None = None,
    ) -> ContextAnswer:
        """What to read before a task; the whole answer as JSON stays within the token budget.

        Args:
            language: of the work; None means the repository's own.

        Raises:
            InvalidInput: no such task type, or a budget that is out of range or holds nothing.
            TimeoutExceeded: the deadline passed before the documents were read.
        """
        return self.explain_context(
            task_type,
            language=language,
            token_budget=token_budget,
            task=task,
            current_files=current_files,
            deadline=deadline,
        )[0]

    def explain_context(
        self,
        task_type: str,
        *,
        language: str | None = None,
        token_budget: int = DEFAULT_BUDGET,
        task: str | None = None,
        current_files: Sequence[str] = (),
        deadline: Deadline | None = None,
    ) -> tuple[ContextAnswer, Sequence[str]]:
        """A context, and why each of its omitted topics is not in it."""
        started = self._clock()
        deadline = deadline or no_deadline()
        check_range("token_budget", token_budget, MAX_BUDGET)
        from sage.context.builder import request_in

        own = self._language.get()
        request = request_in(
            self.settings.root, task_type, language, token_budget, task or "", current_files, own
        )

        def ask(listings: tuple[Listing, ...], snapshot: "Snapshot") -> "PackedContext":
            overrides = self.overrides(listings)
            packed: tuple[PackedContext, bool] = self._answers.remember(
                ("context", listings, snapshot.meaning, request),
                lambda: self._contexts.get().build_from(
                    listings, snapshot, request, overrides, deadline
                ),
                lambda _: not deadline.expired,
                deadline,
            )
            return packed[0]

        pack = self._from_index(ask, deadline)
        return pack.answer(self._since(started)), pack.reasons

    def scope(self, file: str, deadline: Deadline | None = None) -> ScopeAnswer:
        """The pages whose front matter says that they belong to a file."""
        from sage.context.repository import below_root, pages_of_file

        name = below_root(self.settings.root, file)
        entries = self.snapshot(deadline or no_deadline()).searcher.catalog.entries.values()
        return ScopeAnswer(file=name, pages=pages_of_file(entries, name))

    def documents(
        self, layer: str = ALL_LAYERS, deadline: Deadline | None = None
    ) -> tuple[Document, ...]:
        """The documents of a layer in reading order; TimeoutExceeded where some were not loaded."""
        deadline = deadline or no_deadline()
        listings = self.library.refresh(self.layer_names(layer), deadline)
        return load_in_time(self.library, files_of(listings), deadline)

    def info(self, deadline: Deadline | None = None) -> InfoAnswer | ReplicaInfo:
        """The state of the knowledge base, with what is known by the deadline."""
        deadline = deadline or no_deadline()
        sizes, index, meaning = self._index.measure(deadline)
        status = take_status(self.library, self.counter, sizes, index, deadline)
        answer = status.answer(self._answers.info, round(self._clock() - self._started, 1))
        if meaning is not None:
            answer["meaning"] = meaning
        return self._index.described(answer, deadline)

    def index(self) -> IndexInfo:
        """The state of the search index."""
        return self._index.info

    def _from_index(
        self, ask: "Callable[[tuple[Listing, ...], Snapshot], T]", deadline: Deadline
    ) -> T:
        """What the index says; one built anew where the kept one turns out to be damaged."""
        listings, snapshot = self._current(deadline)
        try:
            return ask(listings, snapshot)
        except UntrustedIndex as error:
            snapshot.distrust(error)
        return ask(*self._current(deadline))

    def _current(
        self, deadline: Deadline, progress: "Progress | None" = None
    ) -> "tuple[tuple[Listing, ...], Snapshot]":
        """The files as they are now, and the index brought to them."""
        listings = self.library.refresh(self.settings.layers, deadline)
        known = self._last
        if known is not None and known[0] == listings and known[1].stands:
            return known
        known = self._last = None  # what is over is freed before the next index is made
        found = listings, self._index.brought_to(listings, deadline, progress)
        self._last = found if found[1].stands else None
        return found

    def _find_language(self) -> str:
        from sage.context.repository import repository_language

        return self.settings.context.language or repository_language(self.settings.root)

    def _open_contexts(self) -> "ContextBuilder":
        from sage.context.builder import ContextBuilder
        from sage.context.recipes import load_recipes

        return ContextBuilder(load_recipes(self.settings), self.light_counter, self.settings.layers)

    def _since(self, started: float) -> float:
        return round((self._clock() - started) * 1000, 3)


def open_knowledge(settings: Settings) -> KnowledgeBase:
    """The knowledge base of a root; nothing is read until it is asked."""
    return KnowledgeBase(settings)
