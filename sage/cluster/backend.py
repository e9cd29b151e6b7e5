"""A knowledge base that lies in a cluster: its pages, its engine, and how fresh they are."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from sage.answers import InfoAnswer, PublishedInfo, ReplicaInfo
from sage.cache import Cache
from sage.cluster.connection import ClusterOptions, Connection
from sage.cluster.loading import SourceGeneration
from sage.cluster.node_errors import Misconfigured, NotThere
from sage.cluster.page_record import DAMAGED
from sage.cluster.pages import REMOVED, ClusterPages
from sage.cluster.published_settings import PublishedSettings, scope_of
from sage.cluster.reader import ClusterReader
from sage.cluster.replica import LOAD_SECONDS, LONGEST_WAIT_SECONDS, SILENT, START_SECONDS, Replica
from sage.cluster.requests import check_search
from sage.cluster.vectors import VectorReader
from sage.cluster.view import Scope, View
from sage.deadline import Clock, Clocks, Deadline
from sage.documents.document import Page
from sage.documents.files import SourceFile
from sage.documents.library import Library
from sage.errors import TimeoutExceeded, Unavailable
from sage.knowledge import KnowledgeBase
from sage.search.catalog import DocumentEntry
from sage.search.engine import IndexState
from sage.search.protocol import Engine
from sage.search.ranking import Ranker
from sage.search.searcher import RankedSections, Searcher
from sage.search.sections import Found, SearchOptions
from sage.search.synonyms import with_team
from sage.search.update import LookUp, Progress
from sage.settings import Settings
from sage.terms.index_file import UntrustedIndex
from sage.terms.spelling import RealWords
from sage.token_counter import BundledVocabulary

RECENT_BYTES = 32_000_000
"""What was shown of pages is kept in so much memory."""
RECENT_PAGES = 16_000
"""Of so many pages at most: each takes half a kilobyte more than what was shown of it."""

T = TypeVar("T")


@dataclass
class ClusterSnapshot:
    """One view of the base, for one call."""

    engine: "ClusterEngine"
    scope: Scope
    """Another one from where the generation goes that is read: what follows is of that, too."""
    behind: str = ""
    meaning: int = 0
    stands: bool = False
    """Another call looks whether the alias moved."""
    records: dict[Scope, dict[int, bytes]] = field(default_factory=dict)
    """What was fetched of pages: a context reads those that it ranked."""

    @property
    def searcher(self) -> Searcher:
        """Searches it without a limit of time."""
        return self._searcher(self.scope, Deadline())

    def search(self, text: str, options: SearchOptions, deadline: Deadline) -> Found:
        """The best documents for a query."""

        def search(scope: Scope) -> Found:
            found = self._searcher(scope, deadline).search(text, options, deadline)
            lacks = [*filter(None, (self.behind, scope.note))]
            if not lacks:
                return found
            note = "; ".join(filter(None, (found.note, *lacks)))
            return replace(found, note=note, complete=False)

        return self._on_view(search, deadline)

    def rank_sections(self, text: str, *, limit: int, deadline: Deadline) -> RankedSections:
        """The best sections of all documents for a free text."""

        def rank(scope: Scope) -> RankedSections:
            searcher = self._searcher(scope, deadline)
            return searcher.rank_sections(text, limit=limit, deadline=deadline)

        return self._on_view(rank, deadline)

    def distrust(self, error: UntrustedIndex) -> None:
        """What is kept is damaged."""
        raise Unavailable(DAMAGED) from error

    def page(self, path: str, deadline: Deadline) -> Page | None:
        """A page as it was published."""

        def read(scope: Scope) -> Page | None:
            if path not in scope.catalog.entries:
                return None
            return self._searcher(scope, deadline).documents.page(path)

        return self._on_view(read, deadline)

    def _on_view(self, work: Callable[[Scope], T], deadline: Deadline) -> T:
        """Do the work on the view; when that was removed meanwhile, on the one in force.

        A generation that goes while it is searched is not there, or some of its parts fail.
        """
        try:
            return work(self.scope)
        except Unavailable as error:
            newer = self.engine.scope_in_force(deadline, is_gone=isinstance(error, NotThere))
            if newer.indexes == self.scope.indexes:
                raise
            self.scope = newer
            return work(newer)

    def _searcher(self, scope: Scope, deadline: Deadline) -> Searcher:
        return self.engine.searcher(scope, deadline, self.records.setdefault(scope, {}))


class ClusterEngine:
    """Searches the layers of some settings in the cluster."""

    def __init__(
        self, replica: Replica, settings: Settings, real_words: RealWords, recent: Cache[bytes]
    ) -> None:
        """Args:
        recent: what was shown of pages, for all who search.
        """
        self._replica = replica
        self._settings = settings
        self._real_words = real_words
        self._recent = recent
        self._synonyms = with_team(settings.synonyms)
        self._last: tuple[object, Scope] | None = None

    @property
    def state(self) -> IndexState:
        """Whether a generation is served."""
        if not self._replica.views:
            return IndexState("empty", "opensearch", 0, 0, 0, 0, self._replica.silence)
        scope = self._scope(self._replica.views[0])
        catalog, sections = scope.catalog, scope.catalog.section_count
        trouble = self._replica.silence or scope.trouble
        return IndexState("ready", "opensearch", len(catalog.slots), sections, 0, 0, trouble)

    @property
    def entries(self) -> Mapping[str, DocumentEntry]:
        """The documents that are served, by path."""
        views = self._replica.views
        return self._scope(views[0]).catalog.entries if views else {}

    def update(
        self,
        files: Sequence[SourceFile],
        look_up: LookUp,
        deadline: Deadline,
        progress: Progress | None = None,
        *,
        unseen: bool = False,
    ) -> ClusterSnapshot:
        """The view that these files were listed from."""
        del look_up, progress, unseen
        last = self._last
        if last is not None and last[0] is files:
            return self._snapshot(last[1])
        for view in (*self._replica.views, self._replica.view(deadline)):
            scope = self._scope(view)
            listed = [one for listing in scope.listings.values() for one in listing.files]
            if list(files) == listed:
                self._last = (files, scope)
                return self._snapshot(scope)
        raise Unavailable("the base was published again in the middle of the call; ask again")

    def searcher(self, scope: Scope, deadline: Deadline, records: dict[int, bytes]) -> Searcher:
        """Searches one scope for one call.

        Args:
            records: what was fetched of the pages of the scope, and will be.
        """
        ask, patience = self._replica.connection, self._replica.patience(deadline)
        reader = ClusterReader(ask, scope, patience, records, self._recent)
        words, meaning = scope.words, self._replica.vectors.meaning_of(scope.models)
        ranker = Ranker(
            scope.catalog,
            scope.row_lengths,
            reader.postings,
            words.fields,
            stats=scope.stats,
            counts=reader,
        )
        return Searcher(
            ranker, reader, words, self._synonyms, self._settings.layers, self._real_words, meaning
        )

    def scope_in_force(self, deadline: Deadline, *, is_gone: bool) -> Scope:
        """What may be seen of what the alias names at this moment.

        Args:
            is_gone: whether what was searched is not there any more.
        """
        return self._scope(self._replica.view(deadline, fresh=True, is_gone=is_gone))

    def close(self) -> None:
        """Others may use the connections still."""

    def _scope(self, view: View) -> Scope:
        return scope_of(view, self._settings)

    def _snapshot(self, scope: Scope) -> ClusterSnapshot:
        meaning = self._replica.vectors.meaning_of(scope.models)
        generation = meaning.generation if meaning else 0
        return ClusterSnapshot(self, scope, self._replica.behind, generation)


class ClusterBackend:
    """What a knowledge base needs to be answered from a cluster."""

    def __init__(self, replica: Replica, settings: Settings) -> None:
        """Args:
        settings: the operator's.
        """
        self._replica = replica
        self._published = PublishedSettings(replica, settings)
        self._real_words = RealWords(BundledVocabulary())
        # What a generation holds stays as it is: its records are as good in an hour as now.
        self._recent: Cache[bytes] = Cache(
            RECENT_BYTES,
            math.inf,
            time.monotonic,
            len,
            most_values=RECENT_PAGES,
            owner_most=RECENT_BYTES // 2,
        )

    @property
    def settings(self) -> Settings:
        """Those of all that is published."""
        return self._published.current

    def library(self, settings: Settings, clocks: Clocks | None) -> Library:
        """Lists and loads pages of the layers of these settings."""
        return Library(settings, clocks, ClusterPages(self._replica, settings, self._published))

    def engine(self, settings: Settings) -> Engine:
        """Searches them."""
        return ClusterEngine(self._replica, settings, self._real_words, self._recent)

    @property
    def compares_meanings(self) -> bool:
        """Whether meanings may be compared."""
        return self._replica.vectors.meaning is not None

    def load_model(self) -> None:
        """Load what makes vectors of questions now, if pages have any to be compared with."""
        models = {source.meta.model for view in self._replica.views for source in view.sources}
        meaning = self._replica.vectors.meaning_of(models)
        if meaning is not None:
            meaning.load()

    def describe(self, answer: InfoAnswer, settings: Settings, deadline: Deadline) -> ReplicaInfo:
        """Which commit of which source is served, since when, and how far behind it is."""
        replica = self._replica
        view = replica.views[0] if replica.views else View(())
        seen = scope_of(view, settings)
        published = [_published(source, settings) for source in seen.sources]
        behind = round(replica.behind_seconds, 3)
        told: ReplicaInfo = {**answer, "published": published, "behind_seconds": behind}
        meaning = replica.vectors.info(seen.catalog, seen.models)
        if meaning is not None:
            told["meaning"] = meaning
        trouble = replica.silence or self._search_trouble(seen, deadline)
        # What another repository says is nothing for whoever sees a part only.
        refused = "" if settings.is_narrowed else self._published.refused
        reasons = [*filter(None, (trouble, seen.trouble, replica.behind, refused))]
        if reasons:
            is_served = not trouble and (seen.sources or not seen.trouble)
            told["status"] = "degraded" if is_served else "unhealthy"
            told["reasons"] = [*reasons, *answer["reasons"]]
        return told

    def _search_trouble(self, seen: Scope, deadline: Deadline) -> str:
        """Why what is served cannot be searched; empty when it can."""
        try:
            if seen.indexes:
                patience = deadline.earlier(LONGEST_WAIT_SECONDS * 1000)
                check_search(self._replica.connection, seen.indexes, patience)
        except NotThere:
            return REMOVED
        except TimeoutExceeded:
            return SILENT  # that its caller had little time is not what is wrong
        except Unavailable as error:
            return str(error)
        return ""


def _published(source: SourceGeneration, settings: Settings) -> PublishedInfo:
    """What is told of a source; all but its name changes also with pages that may not be seen."""
    told = PublishedInfo(source=source.meta.source)
    if not settings.is_narrowed or source.is_all_in(settings.layers):
        since = datetime.fromtimestamp(source.meta.published, UTC)
        told["commit"] = source.meta.commit
        told["generation"] = source.index
        told["since"] = since.isoformat("T", "seconds")
    return told


def open_cluster(
    connection: Connection,
    settings: Settings,
    deadline: Deadline,
    clock: Clock = time.monotonic,
) -> KnowledgeBase:
    """The knowledge base that is published in a cluster.

    Args:
        settings: what the operator of the replica decides.
        clock: tells how old is what the replica knows of the alias.

    Raises:
        Unavailable, TimeoutExceeded: the cluster does not answer, or holds nothing under that name.
    """
    return _opened(connection, settings, deadline, clock)[0]


def wait_for_cluster(options: ClusterOptions, settings: Settings) -> KnowledgeBase:
    """The same, for a server that starts with its cluster: it asks again for a minute."""
    connection = Connection(options)
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            # A large base takes longer to load than a cluster may take to answer.
            opened = _opened(connection, settings, Deadline(LOAD_SECONDS * 1000))
        except (Unavailable, TimeoutExceeded) as error:
            if isinstance(error, Misconfigured) or time.monotonic() > until:
                raise
            time.sleep(1.0)
        else:
            opened[1].load_model()
            return opened[0]


def _opened(
    connection: Connection,
    settings: Settings,
    deadline: Deadline,
    clock: Clock = time.monotonic,
) -> tuple[KnowledgeBase, ClusterBackend]:
    replica = Replica(connection, VectorReader(settings), clock)
    replica.view(deadline)
    backend = ClusterBackend(replica, settings)
    return KnowledgeBase(backend.settings, backend=backend), backend
