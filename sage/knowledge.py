"""The knowledge base: one object that answers, from the files as they are at each call.

It knows nothing of any protocol; tools, commands and pages are built on it. Thread-safe.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sage.answers import (
    CacheInfo,
    ContextAnswer,
    IndexInfo,
    InfoAnswer,
    KnowledgeAnswer,
    KnowledgeMetadata,
    Omitted,
    SearchAnswer,
)
from sage.bounds import (
    ALL_LAYERS,
    DEFAULT_BUDGET,
    DEFAULT_LANGUAGE,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
    MAX_BUDGET,
    MAX_CURRENT_FILES,
    MAX_RESULTS,
    MAX_TASK,
    MAX_TOKENS,
    check_range,
    checked_topic,
)
from sage.cache import Cache
from sage.deadline import Deadline, no_deadline
from sage.documents import Document, topic_of
from sage.errors import InvalidInput, NotFound, SageError, TimeoutExceeded
from sage.files import SourceFile
from sage.later import Later
from sage.library import Library, Listing, Time, are_complete, files_of
from sage.lookup import Loading, files_meant, find_parts, load_all
from sage.reading import Part, Reading, read, whole
from sage.schema import nearest
from sage.settings import Settings
from sage.status import Size, Status
from sage.tokens import TokenCounter

if TYPE_CHECKING:
    from sage.context import ContextBuilder, Request
    from sage.explaining import Explanation
    from sage.finding import Found
    from sage.reasons import Pack
    from sage.searching import Progress, SearchEngine

T = TypeVar("T")


class KnowledgeBase:
    """Everything a team keeps under `.knowledge`, ready to be asked."""

    def __init__(self, settings: Settings, clocks: Time | None = None) -> None:
        self.settings = settings
        self.library = Library(settings, clocks)
        self.counter = TokenCounter(settings.encoding)
        self._clock = (clocks or Time()).monotonic
        self._answers: Cache[Any] = Cache(
            settings.cache.max_answers, settings.cache.ttl_seconds, self._clock
        )
        self._search = Later(self._open_search)
        self._contexts = Later(self._open_contexts)
        self._joined: tuple[tuple[Listing, ...], tuple[SourceFile, ...]] = ((), ())
        self._started = self._clock()

    @property
    def task_types(self) -> tuple[str, ...]:
        """What a context can be asked for."""
        from sage.recipes import task_types

        return task_types(self.settings)

    def warm(self, deadline: Deadline | None = None, progress: "Progress | None" = None) -> None:
        """Bring the search index up to date, so that the next search need not."""
        self._indexed(deadline or no_deadline(), progress)

    def close(self) -> None:
        """Keep what is worth keeping for the next start."""
        if self._search.made:
            self._search.get().close()

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
            f"there is no layer {layer!r}; use one of {', '.join(known)}{nearest(layer, known)}"
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
        (reading, files_loaded, _), from_cache = self._remember(
            ("get", listings, topic, max_tokens),
            lambda: self._read(listings, topic, max_tokens, deadline),
            lambda answer: answer[2],
            deadline,
        )
        return KnowledgeAnswer(
            content=reading.content,
            metadata=KnowledgeMetadata(
                layer=layer,
                topic=topic,
                files_loaded=files_loaded,
                load_time_ms=self._since(started),
                from_cache=from_cache,
                token_count=reading.token_count,
                complete=reading.complete,
                omitted=[omitted.copy() for omitted in reading.omitted],
            ),
        )

    def search(
        self,
        query: str,
        *,
        limit: int = DEFAULT_RESULTS,
        layer: str = ALL_LAYERS,
        deadline: Deadline | None = None,
    ) -> SearchAnswer:
        """The documents that answer a query, each by its best section.

        Raises:
            InvalidInput: a blank query, no such layer, or a limit out of range.
        """
        started = self._clock()
        deadline = deadline or no_deadline()
        if not query.strip():
            raise InvalidInput("query is empty; ask a question or name what you look for")
        check_range("limit", limit, MAX_RESULTS)
        layers = self.layer_names(layer)
        listings = self._indexed(deadline)
        found: Found = self._remember(
            ("search", listings, query, limit, layers),
            lambda: self._search.get().search(query, limit=limit, layers=layers, deadline=deadline),
            lambda found: found.complete,
            deadline,
        )[0]
        answer = SearchAnswer(
            results=[result.copy() for result in found.results],
            total=found.total,
            query_time_ms=self._since(started),
            complete=found.complete,
        )
        if found.note:
            answer["note"] = found.note
        return answer

    def topics_for(self, query: str, layer: str, limit: int) -> list[str]:
        """The topics of the results of a search, best first."""
        return [one["topic"] for one in self.search(query, limit=limit, layer=layer)["results"]]

    def topics(self, layer: str = ALL_LAYERS) -> list[str]:
        """The topic of every document of a layer, from the names alone."""
        listings = self.library.refresh(self.layer_names(layer), no_deadline())
        return [topic_of(source.path) for source in files_of(listings)]

    def explain(
        self, query: str, *, limit: int = DEFAULT_RESULTS, layer: str = ALL_LAYERS
    ) -> list["Explanation"]:
        """What each result of a search owes its place to."""
        deadline = no_deadline()
        layers = self.layer_names(layer)
        self._indexed(deadline)
        return self._search.get().explain(query, limit=limit, layers=layers, deadline=deadline)

    def context(
        self,
        task_type: str,
        *,
        language: str = DEFAULT_LANGUAGE,
        token_budget: int = DEFAULT_BUDGET,
        task: str | None = None,
        current_files: Sequence[str] = (),
        deadline: Deadline | None = None,
    ) -> ContextAnswer:
        """What to read before a task, within a token budget.

        Raises:
            InvalidInput: no such task type, or a budget that is out of range or holds nothing.
            TimeoutExceeded: the deadline passed before the documents were read.
        """
        started = self._clock()
        deadline = deadline or no_deadline()
        check_range("token_budget", token_budget, MAX_BUDGET)
        from sage.context import Request

        files = tuple(current_files[:MAX_CURRENT_FILES])
        request = Request(task_type, language, token_budget, (task or "")[:MAX_TASK], files)
        listings = self._indexed(deadline)
        pack: Pack = self._remember(
            ("context", listings, request),
            lambda: self._pack(listings, request, deadline),
            lambda _: not deadline.expired,
            deadline,
        )[0]
        return ContextAnswer(
            context=pack.context,
            sections=list(pack.sections),
            token_count=pack.token_count,
            load_time_ms=self._since(started),
            sources=[source.copy() for source in pack.sources],
            omitted=[omitted.copy() for omitted in pack.omitted],
            encoding=self.counter.encoding,
            complete=pack.complete,
        )

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

    def info(self, deadline: Deadline | None = None) -> InfoAnswer:
        """The state of the knowledge base."""
        deadline = deadline or no_deadline()
        listings = self.library.refresh(self.settings.layers, deadline)
        problems = self._remember(
            ("problems", listings),
            lambda: self.library.problems(listings, deadline),
            lambda _: True,
            deadline,
        )[0]
        return Status(
            listings=listings,
            problems=[problem for problem in problems if problem.level != "note"],
            sizes=self._sizes(),
            index=self._index_info(),
            cache=CacheInfo(enabled=self._answers.enabled, hit_rate=self._answers.hit_rate),
            folder_exists=self.settings.has_folder,
            encoding=self.counter.encoding,
            uptime_seconds=round(self._clock() - self._started, 1),
        ).answer()

    # What searches and packs is imported by the first call that needs it: reading a page should
    # not wait for the search library, which takes longer to import than a layer to load.
    def _open_search(self) -> "SearchEngine":
        from sage.searching import SearchEngine

        return SearchEngine(self.settings, self.counter.count_slice)

    def _open_contexts(self) -> "ContextBuilder":
        from sage.context import ContextBuilder
        from sage.recipes import load_recipes

        return ContextBuilder(load_recipes(self.settings), self.counter)

    def _index_info(self) -> IndexInfo:
        state = self._search.get().state
        return IndexInfo(
            state=state.state,
            where=state.where,
            documents=state.documents,
            sections=state.sections,
            size_kb=round(state.size_bytes / 1024, 1),
            message=state.message,
        )

    def _sizes(self) -> dict[str, Size] | None:
        if self._search.get().state.state != "ready":
            return None
        return {
            layer: Size(sections, tokens)
            for layer, (sections, tokens) in self._search.get().sizes().items()
        }

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
    ) -> tuple[Listing, ...]:
        """The files as they are now, with the index brought to them."""
        listings = self.library.refresh(self.settings.layers, deadline)
        known, files = self._joined
        if known != listings:
            files = tuple(files_of(listings))
            self._joined = (listings, files)
        look_up = partial(self.library.look_up, deadline=deadline)
        unseen = any(listing.unseen for listing in listings)
        self._search.get().update(files, look_up, deadline, progress, unseen=unseen)
        return listings

    def _pack(self, listings: Sequence[Listing], request: "Request", deadline: Deadline) -> "Pack":
        loading = load_all(self.library, files_of(listings), deadline)
        if loading.unread:
            raise TimeoutExceeded(deadline.message)
        pack = self._contexts.get().build(
            loading.documents,
            request,
            lambda text, limit: self._search.get().rank_sections(
                text, limit=limit, deadline=deadline
            ),
            deadline,
        )
        ready = are_complete(listings) and self._search.get().state.state == "ready"
        return pack if ready and not loading.failed else replace(pack, complete=False)

    def _read(
        self,
        listings: tuple[Listing, ...],
        topic: str | None,
        max_tokens: int,
        deadline: Deadline,
    ) -> tuple[Reading, int, bool]:
        """The content, how many files it took, and whether it may be kept."""
        files = files_of(listings)
        if not self.counter.ready_by(deadline):
            loading, parts = Loading([], files_meant(files, topic) if topic else files), []
        elif topic is None:
            loading = load_all(self.library, files, deadline)
            parts = [whole(document) for document in loading.documents]
        else:
            loading, parts = self._find(listings, topic, deadline)
        unread = [_unread(source) for source in (*loading.failed, *loading.unread)]
        reading = read(parts, unread, max_tokens, self.counter)
        if not are_complete(listings):
            reading = replace(reading, complete=False)
        return reading, len(loading.documents), not unread and are_complete(listings)

    def _find(
        self, listings: Sequence[Listing], topic: str, deadline: Deadline
    ) -> tuple[Loading, list[Part]]:
        try:
            return find_parts(self.library, files_of(listings), topic, deadline)
        except NotFound:
            if not are_complete(listings):
                deadline.check()  # what was not listed in time may have that name
            if any(listing.unseen for listing in listings):
                raise SageError("not every folder can be listed now; ask again") from None
            raise

    def _since(self, started: float) -> float:
        return round((self._clock() - started) * 1000, 3)


def _unread(source: SourceFile) -> Omitted:
    topic = topic_of(source.path)
    return Omitted(topic=topic, title=topic.rsplit("/", 1)[-1], tokens=None)


def open_knowledge(settings: Settings) -> KnowledgeBase:
    """The knowledge base of a root; nothing is read until it is asked."""
    return KnowledgeBase(settings)
