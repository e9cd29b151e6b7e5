"""The knowledge base: one object that answers, from the files as they are at each call.

It knows nothing of any protocol; tools, commands and pages are built on it. Thread-safe.
"""

import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sage.answers import (
    CacheInfo,
    ContextAnswer,
    IndexInfo,
    InfoAnswer,
    KnowledgeAnswer,
    KnowledgeMetadata,
    ReplicaInfo,
    ScopeAnswer,
    SearchAnswer,
)
from sage.bundled_vocabulary import BundledVocabulary
from sage.cache import Cache, bytes_of
from sage.deadline import Clocks, Deadline, no_deadline
from sage.documents.document import Document
from sage.documents.files import SourceFile
from sage.documents.library import Library, Listing, are_complete, files_of
from sage.errors import InvalidInput, TimeoutExceeded, did_you_mean
from sage.reading import load_all, read_topic
from sage.settings import Settings
from sage.status import index_info, meaning_info, take_status
from sage.token_counter import TokenCounter
from sage.values import (
    ALL_LAYERS,
    DEFAULT_ANSWER,
    DEFAULT_BUDGET,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
    MAX_ANSWER,
    MAX_BUDGET,
    MAX_CURRENT_FILES,
    MAX_OFFSET,
    MAX_RESULTS,
    MAX_TASK,
    MAX_TOKENS,
    MIN_ANSWER,
    RELEVANCE,
    check_range,
    checked_topic,
)

if TYPE_CHECKING:
    from sage.context.builder import ContextBuilder, ContextRequest
    from sage.context.explain import PackedContext
    from sage.search.engine import Progress, RankedSections
    from sage.search.explain import Explanation
    from sage.search.protocol import Engine, Snapshot
    from sage.semantic.meaning import SectionMeaning

T = TypeVar("T")

_MONTH_SECONDS = 365.25 / 12 * 86_400
_NEVER_STALE = 12_000
_NO_QUERY = (
    "query is empty; ask a question or name what you look for, or list pages by types, tags, "
    "status, source or sort"
)
MAX_ANSWERS = 256
"""Answers kept in memory."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""What they take together; half of it those of one caller."""


class Lazy(Generic[T]):
    """Something made by the first thread that needs it, once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._value: T | None = None

    @property
    def made(self) -> bool:
        """Whether anybody has needed it yet."""
        return self._value is not None

    def get(self) -> T:
        """What was made, now or earlier."""
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = self._make()
        return self._value


class Backend(Protocol):
    """Where the pages and the index of a base lie, when they are not on this machine."""

    def library(self, settings: Settings, clocks: Clocks | None) -> Library:
        """Lists and loads its pages, of the layers of these settings only."""

    def engine(self, settings: Settings) -> "Engine":
        """Searches them."""

    def describe(self, answer: InfoAnswer, settings: Settings) -> ReplicaInfo:
        """What `sage_info` says, with what only the backend knows."""


class KnowledgeBase:
    """Everything a team keeps under `.knowledge`, ready to be asked."""

    def __init__(
        self,
        settings: Settings,
        clocks: Clocks | None = None,
        backend: Backend | None = None,
    ) -> None:
        """Args:
        backend: where all of it lies; None means in files, with an index beside them.
        """
        self.settings = settings
        self._backend = backend
        self.library = (
            Library(settings, clocks) if backend is None else backend.library(settings, clocks)
        )
        self.counter = TokenCounter()
        self._vocabulary = BundledVocabulary()
        self._clocks = clocks or Clocks()
        self._clock = self._clocks.monotonic
        self._answers: Cache[Any] = Cache(
            MAX_ANSWER_BYTES,
            settings.cache.ttl_seconds,
            self._clock,
            bytes_of,
            most_values=MAX_ANSWERS,
            largest=MAX_ANSWER_BYTES // 8,
            owner_most=MAX_ANSWER_BYTES // 2,
        )
        self._meaning: SectionMeaning | None = None
        self._search = Lazy(self._open_search)
        self._contexts = Lazy(self._open_contexts)
        self._language = Lazy(self._find_language)
        self._joined: tuple[tuple[Listing, ...], tuple[SourceFile, ...]] = ((), ())
        self.has_sources = len(settings.served) > 1
        """Whether pages come from more than one source, so that answers say which."""
        self._progress = (0, 0)
        self._started = self._clock()

    @property
    def task_types(self) -> tuple[str, ...]:
        """What a context can be asked for."""
        from sage.context.recipes import task_types

        return task_types(self.settings)

    def warm(self, deadline: Deadline | None = None, progress: "Progress | None" = None) -> None:
        """Bring the search index up to date, so that the next search need not."""
        self._indexed(deadline or no_deadline(), progress)

    def narrowed(self, settings: Settings) -> "KnowledgeBase":
        """The same base with other settings: fewer layers, for somebody who may see no more."""
        return KnowledgeBase(settings, backend=self._backend)

    @property
    def meaning(self) -> "SectionMeaning | None":
        """What compares meanings; None where only words are searched."""
        self._search.get()
        return self._meaning

    def close(self) -> None:
        """Keep what is worth keeping for the next start."""
        if self._search.made:
            self._search.get().close()
        if self._meaning is not None:
            self._meaning.close()

    def layer_names(self, layer: str) -> tuple[str, ...]:
        """The layers that a `layer` argument means.

        Raises:
            InvalidInput: there is no such layer.
        """
        if layer == ALL_LAYERS:
            return self.settings.layers
        if layer in self.settings.layers:
            return (layer,)
        known = (*self.settings.layers, ALL_LAYERS)
        raise InvalidInput(
            f"there is no layer {layer!r}; use one of {', '.join(known)}"
            f"{did_you_mean(layer, known)}"
        )

    def source_name(self, name: str | None) -> str | None:
        """The source that a `source` argument means; None for all.

        Raises:
            InvalidInput: there is no such source.
        """
        known = [one.name for one in self.settings.served]
        if not name or name in known:
            return name or None
        close = did_you_mean(name, known)
        raise InvalidInput(
            f"there is no source {name[:60]!r}; use one of {', '.join(known)}{close}"
        )

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
        if self._search.made or self._backend is not None:
            self.library.titles.learn_all(self._search.get().entries)
        found, from_cache = self._remember(
            ("get", listings, topic, max_tokens),
            lambda: read_topic(self.library, listings, topic, max_tokens, self.counter, deadline),
            lambda answer: answer.may_keep,
            deadline,
        )
        reading = found.reading
        metadata = KnowledgeMetadata(
            layer=layer,
            topic=topic,
            files_loaded=found.files_loaded,
            load_time_ms=self._since(started),
            from_cache=from_cache,
            token_count=reading.token_count,
            complete=reading.complete,
            omitted=[omitted.copy() for omitted in reading.omitted],
        )
        if found.overrides:
            metadata["overrides"] = list(found.overrides)
        return KnowledgeAnswer(content=reading.content, metadata=metadata)

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

        started = self._clock()
        deadline = deadline or no_deadline()
        filters, sort = (
            checked_filters(types, tags, status, self.source_name(source)),
            checked_sort(sort),
        )
        has_words = bool(query.strip())
        if not has_words and sort is None and not offset and not any(filters):
            raise InvalidInput(_NO_QUERY)
        check_range("limit", limit, MAX_RESULTS)
        check_range("offset", offset, MAX_OFFSET, 0)
        check_range("max_tokens", max_tokens, MAX_ANSWER, MIN_ANSWER)
        layers = self.layer_names(layer)
        listings, snapshot = self._indexed(deadline)

        def ask() -> SearchAnswer:
            from sage.search.answering import compose

            found = snapshot.search(
                query,
                limit=limit,
                offset=offset,
                sort=sort or RELEVANCE,
                layers=layers,
                filters=filters,
                deadline=deadline,
            )
            count, day = self._vocabulary.count, self._stale_before()
            overrides = self.overrides(listings)
            return compose(found, max_tokens, count, day, whole and has_words, overrides)

        kept: SearchAnswer = self._remember(
            (
                *("search", listings, snapshot.meaning, query, limit, layers, filters),
                *(sort, offset, max_tokens, whole),
            ),
            ask,
            lambda answer: "complete" not in answer,
            deadline,
        )[0]
        results = [result.copy() for result in kept["results"]]
        return {**kept, "results": results, "query_time_ms": self._since(started)}

    def snapshot(self, deadline: Deadline) -> "Snapshot":
        """The index as it is now, to be searched."""
        return self._indexed(deadline)[1]

    def topics_for(self, query: str, layer: str, limit: int) -> list[str]:
        """The topics of the results of a search, best first."""
        deadline = no_deadline()
        layers = self.layer_names(layer)
        _, snapshot = self._indexed(deadline)
        found = snapshot.search(query, limit=limit, layers=layers, deadline=deadline)
        return [section.topic for section in found.sections]

    def overrides(self, listings: Sequence[Listing]) -> dict[str, tuple[str, ...]] | None:
        """For the path of a page the sources that have one of its topic too; None when all pages
        come from the repository."""
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
        deadline: Deadline | None = None,
    ) -> list["Explanation"]:
        """What each result of a search owes its place to."""
        from sage.search.query import checked_filters

        deadline = deadline or no_deadline()
        layers, filters = (
            self.layer_names(layer),
            checked_filters(types, tags, status, self.source_name(source)),
        )
        _, snapshot = self._indexed(deadline)
        return snapshot.searcher.explain(
            query, limit=limit, layers=layers, filters=filters, deadline=deadline
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
        from sage.context.builder import ContextRequest
        from sage.context.repository import below_root, imports_of

        root = self.settings.root
        files = tuple(below_root(root, name) for name in current_files[:MAX_CURRENT_FILES])
        request = ContextRequest(
            task_type,
            language=language,
            token_budget=token_budget,
            task=(task or "")[:MAX_TASK],
            current_files=files,
            imports=imports_of(root, files),
            own_language=self._language.get(),
        )
        listings, snapshot = self._indexed(deadline)
        pack: PackedContext = self._remember(
            ("context", listings, snapshot.meaning, request),
            lambda: self._pack(listings, snapshot, request, deadline),
            lambda _: not deadline.expired,
            deadline,
        )[0]
        answer = ContextAnswer(
            context=pack.context,
            sections=list(pack.sections),
            token_count=pack.token_count,
            load_time_ms=self._since(started),
            sources=[source.copy() for source in pack.sources],
        )
        pack.say_rest(answer)
        return answer, pack.reasons

    def scope(self, file: str, deadline: Deadline | None = None) -> ScopeAnswer:
        """The pages whose front matter says that they belong to a file."""
        from sage.context.repository import below_root, pages_of_file

        name = below_root(self.settings.root, file)
        _, snapshot = self._indexed(deadline or no_deadline())
        entries = snapshot.searcher.catalog.entries.values()
        return ScopeAnswer(file=name, pages=pages_of_file(entries, name))

    def documents(
        self, layer: str = ALL_LAYERS, deadline: Deadline | None = None
    ) -> tuple[Document, ...]:
        """The documents of a layer in reading order.

        Raises:
            TimeoutExceeded: not all could be loaded in time.
        """
        deadline = deadline or no_deadline()
        listings = self.library.refresh(self.layer_names(layer), deadline)
        loading = load_all(self.library, files_of(listings), deadline)
        if loading.unread:
            raise TimeoutExceeded(deadline.message)
        return tuple(loading.documents)

    def info(self, deadline: Deadline | None = None) -> InfoAnswer | ReplicaInfo:
        """The state of the knowledge base, with what is known by the deadline."""
        deadline = deadline or no_deadline()
        # To import what searches may take longer than a caller with a deadline has.
        can_wait = deadline.remaining_seconds is None
        engine = self._search.get() if can_wait or self._search.made else None
        answer = take_status(
            self.library,
            self.counter,
            engine.sizes() if engine else {},
            index_info(engine.state, self._progress) if engine else IndexInfo(state="opening"),
            deadline,
        ).answer(
            CacheInfo(enabled=self._answers.enabled, hit_rate=self._answers.hit_rate),
            round(self._clock() - self._started, 1),
        )
        if engine is not None and self._meaning is not None:
            answer["meaning"] = meaning_info(self._meaning.state, engine.state.sections)
        return answer if self._backend is None else self._backend.describe(answer, self.settings)

    def index(self) -> IndexInfo:
        """The state of the search index."""
        return index_info(self._search.get().state, self._progress)

    # What searches and packs is imported by the first call that needs it: reading a page should
    # not wait for the search library, which takes longer to import than a layer to load.
    def _open_search(self) -> "Engine":
        if self._backend is not None:
            return self._backend.engine(self.settings)
        from sage.search.engine import SearchEngine

        self._meaning = self._open_meaning()
        count, holds = self.counter.count_slice, self._vocabulary.holds
        return SearchEngine(self.settings, count, holds, self._meaning)

    def _open_meaning(self) -> "SectionMeaning | None":
        """What compares meanings; None without the extra, of which then nothing is imported."""
        wanted = self.settings.search.semantic
        if wanted == "off" or (wanted == "auto" and find_spec("tokenizers") is None):
            return None
        from sage.semantic.meaning import open_meaning

        return open_meaning(self.settings)

    def _find_language(self) -> str:
        from sage.context.repository import repository_language

        return self.settings.context.language or repository_language(self.settings.root)

    def _open_contexts(self) -> "ContextBuilder":
        from sage.context.builder import ContextBuilder
        from sage.context.recipes import load_recipes

        return ContextBuilder(load_recipes(self.settings), self.counter, self.settings.layers)

    def _remember(
        self,
        key: Hashable,
        compute: Callable[[], T],
        may_keep: Callable[[T], bool],
        deadline: Deadline,
    ) -> tuple[T, bool]:
        """An answer, and whether it was ready; partial ones are not kept."""

        def computed() -> tuple[T, bool]:
            value = compute()
            return value, may_keep(value)

        value, from_cache = self._answers.remember(key, computed, deadline)
        answer: T = value
        return answer, from_cache

    def _indexed(
        self, deadline: Deadline, progress: "Progress | None" = None
    ) -> tuple[tuple[Listing, ...], "Snapshot"]:
        """The files as they are now, and the index brought to them."""
        listings = self.library.refresh(self.settings.layers, deadline)
        known, files = self._joined
        if known != listings:
            files = tuple(files_of(listings))
            self._joined = (listings, files)
        look_up = partial(self.library.look_up, deadline=deadline)

        def tell(done: int, total: int) -> None:
            self._progress = (done, total)
            if progress is not None:
                progress(done, total)

        unseen = any(listing.unseen for listing in listings)
        snapshot = self._search.get().update(files, look_up, deadline, tell, unseen=unseen)
        return listings, snapshot

    def _pack(
        self,
        listings: Sequence[Listing],
        snapshot: "Snapshot",
        request: "ContextRequest",
        deadline: Deadline,
    ) -> "PackedContext":
        from sage.context.builder import PageBase

        sources = {source.path: source for source in files_of(listings)}
        unread: list[str] = []

        def load(path: str) -> Document | None:
            source = sources.get(path)
            if source is None:
                return None
            loaded = self.library.look_up(source, deadline)
            if loaded.document is None and loaded.passing:
                unread.append(path)
            return loaded.document

        def rank(text: str, limit: int) -> "RankedSections":
            return snapshot.rank_sections(text, limit=limit, deadline=deadline)

        entries = snapshot.searcher.catalog.entries
        base = PageBase(entries, rank, load, self.overrides(listings))
        pack = self._contexts.get().build(base, request, deadline)
        ready = are_complete(listings) and not snapshot.behind and not unread
        return pack if ready else replace(pack, complete=False)

    def _stale_before(self) -> date:
        """The day before which a page is called old."""
        months = self.settings.check.stale_months or _NEVER_STALE
        moment = max(0.0, self._clocks.now() - months * _MONTH_SECONDS)
        return datetime.fromtimestamp(moment, UTC).date()

    def _since(self, started: float) -> float:
        return round((self._clock() - started) * 1000, 3)


def open_knowledge(settings: Settings) -> KnowledgeBase:
    """The knowledge base of a root; nothing is read until it is asked."""
    return KnowledgeBase(settings)
