"""Search, as the knowledge base uses it: an index that follows the files, and answers from it.

It keeps the index in the user's vault and says in its state where that failed and why. Ranking,
queries and snippets have modules of their own. Thread-safe.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sage import holdings as kept_holdings
from sage.analysis import Analyzer
from sage.changes import LookUp, Progress, Work
from sage.deadline import Deadline
from sage.explaining import Explanation
from sage.files import SourceFile, Stamp
from sage.finding import Finder, Found, RankedSection
from sage.holdings import Holdings
from sage.indexing import CountTokens
from sage.settings import Settings
from sage.synonyms import with_team
from sage.vault import Doubtful, Vault

__all__ = ["IndexState", "LookUp", "Progress", "SearchEngine"]

BEHIND = "some documents changed and could not be indexed in time"
UNSEEN = "some documents could not be looked at just now"
_CLOSE_SECONDS = 5.0
_KEEP_AFTER = 20
"""Documents that may change before the index is written again; fewer wait for the end."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the index is."""

    state: str
    """empty, building, ready, or partial when time ran out before all was indexed."""
    where: str
    """disk, or memory when it could not be kept."""
    documents: int
    sections: int
    size_bytes: int
    message: str
    """Why it was built again or is not kept; empty when all is well."""


class SearchEngine:
    """The index of one knowledge base."""

    def __init__(self, settings: Settings, count_tokens: CountTokens) -> None:
        self._settings = settings
        self._count_tokens = count_tokens
        self._synonyms = with_team(settings.synonyms)
        self._vault = Vault(settings.cache_dir, settings.root)
        self._made_for = {"root": str(settings.root), "encoding": settings.encoding}
        self._analyzer = Analyzer()
        self._changing = threading.Lock()
        self._own = threading.local()
        self._writing = threading.Lock()
        self._writer: threading.Thread | None = None
        self._holdings: Holdings | None = None
        self._finder: Finder | None = None
        self._files: Sequence[SourceFile] | None = None
        self._nothing: dict[str, Stamp] = {}
        self._retried: set[str] = set()
        self._unkept = 0
        self._missing = 0
        self._where = "memory"
        self._rebuilt = self._trouble = ""

    @property
    def state(self) -> IndexState:
        """How the index is now."""
        finder, held = self._finder, self._holdings
        if finder is None or held is None:
            state = "building" if self._changing.locked() else "empty"
            return IndexState(state, "", 0, 0, 0, "")
        catalog = finder.catalog
        return IndexState(
            state="partial" if self._missing else "ready",
            where=self._where,
            documents=len(catalog.slots),
            sections=catalog.section_count,
            size_bytes=held.index.size_bytes,
            message=self._trouble or self._rebuilt,
        )

    def update(
        self,
        files: Sequence[SourceFile],
        look_up: LookUp,
        deadline: Deadline,
        progress: Progress | None = None,
        *,
        unseen: bool = False,
    ) -> None:
        """Bring the index to exactly these files, loading only what changed.

        When time runs out, what was indexed stays and the next call goes on from there. So does
        what is `unseen`: not among the files but perhaps still there.
        """
        self._own.behind, self._own.why = (files, UNSEEN) if unseen else (None, BEHIND)
        if self._is_current(files):
            return
        remaining = deadline.remaining_seconds
        if not self._changing.acquire(timeout=-1 if remaining is None else remaining):
            self._own.behind = files
            return
        try:
            if not self._is_current(files):
                self._bring_to(files, look_up, deadline, progress, unseen)
        finally:
            self._changing.release()

    def search(
        self,
        query: str,
        *,
        limit: int,
        layers: Collection[str] | None = None,
        deadline: Deadline,
    ) -> Found:
        """The best documents for a query; any text is one."""
        finder = self._finder
        if finder is None:
            return Found([], 0, "the index is still being built", False)
        behind = self._behind()
        found = finder.search(query, limit, layers, deadline, behind)
        if behind is None and not self._missing:
            return found
        note = f"{self._missing} documents are not indexed yet" if self._missing else self._own.why
        return Found(found.results, found.total, "; ".join(filter(None, (found.note, note))), False)

    def rank_sections(
        self,
        text: str,
        *,
        limit: int,
        layers: Collection[str] | None = None,
        deadline: Deadline,
    ) -> list[RankedSection]:
        """The best sections of all documents for a free text."""
        finder = self._finder
        return finder.rank_sections(text, limit, layers, deadline) if finder else []

    def explain(
        self,
        query: str,
        *,
        limit: int,
        layers: Collection[str] | None = None,
        deadline: Deadline,
    ) -> list[Explanation]:
        """Why the results of a query rank as they do, in the same order."""
        finder = self._finder
        return finder.explain(query, limit, layers, deadline) if finder else []

    def suggest(self, words: Sequence[str]) -> list[str]:
        """Words of the documents that look like these."""
        return self._finder.asker.suggest(words) if self._finder else []

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """For each layer its sections and their tokens, as far as they are indexed."""
        return self._finder.catalog.sizes if self._finder else {}

    def close(self) -> None:
        """Keep what is not kept yet."""
        # A build that is still running would keep the process alive; its work is then lost.
        if self._changing.acquire(blocking=False):
            try:
                if self._unkept and self._holdings is not None and not self._missing:
                    self._start_keeping(self._holdings)
            finally:
                self._changing.release()
        if self._writer is not None:
            self._writer.join(_CLOSE_SECONDS)

    def _behind(self) -> Mapping[str, Stamp] | None:
        """The files as this caller knows them, when the index could not be brought to them."""
        files = getattr(self._own, "behind", None)
        return None if files is None else {source.path: source.stamp for source in files}

    def _is_current(self, files: Sequence[SourceFile]) -> bool:
        known = self._files
        return known is not None and not self._retried and (known is files or known == files)

    def _bring_to(
        self,
        files: Sequence[SourceFile],
        look_up: LookUp,
        deadline: Deadline,
        progress: Progress | None,
        unseen: bool,
    ) -> None:
        first = self._holdings is None
        held = self._holdings or self._restored()
        work = Work(held, files, look_up, deadline, self._nothing, progress, unseen)
        work.load()
        self._retried = work.retried
        if work.is_needed:
            self._apply(held, work)
        elif first:
            self._serve(held)
        self._missing = len(work.unreached | work.failed)
        self._files = None if work.unreached or unseen else files
        if self._unkept >= _KEEP_AFTER or (first and self._unkept):
            self._start_keeping(held)

    def _apply(self, held: Holdings, work: Work) -> None:
        changes = len(work.gone)
        described = work.described(self._analyzer, self._count_tokens)
        held.footers = work.footers
        held.change(work.gone, described)
        self._unkept += max(changes, len(work.documents))
        self._serve(held)

    def _serve(self, held: Holdings) -> None:
        finder = Finder(
            held.ranker(),
            held.index.reader,
            held.vocabulary,
            self._synonyms,
            self._settings.layers,
        )
        self._holdings, self._finder = held, finder

    def _restored(self) -> Holdings:
        try:
            held = kept_holdings.kept(self._vault, self._made_for)
        except Doubtful as doubt:
            self._rebuilt = f"built again: {doubt}"
            held = None
        if held is None:
            return Holdings()
        self._where = "disk"
        return held

    def _start_keeping(self, held: Holdings) -> None:
        """Write the index off the request path; a write that runs sees only its own moment."""
        packed = kept_holdings.parcel(held)
        writer = threading.Thread(
            target=self._keep, args=(packed,), name="sage-index-writer", daemon=True
        )
        try:
            writer.start()
        except RuntimeError:
            self._trouble = "not kept on disk: no thread can be started"
            return
        self._unkept = 0
        self._writer = writer  # only now: one that has not begun cannot be waited for

    def _keep(self, packed: kept_holdings.Parcel) -> None:
        with self._writing:
            try:
                kept_holdings.keep(self._vault, packed, self._made_for)
            except Doubtful as doubt:
                self._where, self._trouble = "memory", f"not kept on disk: {doubt}"
            else:
                self._where, self._trouble = "disk", ""
