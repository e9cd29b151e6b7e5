"""Search, as the knowledge base uses it: an index that follows the files, in snapshots to search.

It keeps the index in the user's cache folder and says in its state where that failed and why.
Ranking, queries and snippets have modules of their own. Thread-safe.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sage.deadline import Deadline
from sage.documents.files import SourceFile, Stamp
from sage.search import index as kept_index
from sage.search.catalog import DocumentEntry
from sage.search.fusion import Meaning
from sage.search.index import Index
from sage.search.indexing import CountTokens
from sage.search.ranking import Ranker
from sage.search.searcher import NOT_BUILT, IndexSnapshot, RankedSections, Searcher
from sage.search.synonyms import with_team
from sage.search.update import IndexUpdate, LookUp, Progress
from sage.settings import Settings
from sage.terms.analysis import Analyzer
from sage.terms.index_file import IN_MEMORY, IndexFile, UntrustedIndex
from sage.terms.postings import Vocabulary
from sage.terms.spelling import Lexicon, RealWords
from sage.values import OWN

__all__ = ["IndexSnapshot", "IndexState", "LookUp", "Progress", "RankedSections", "SearchEngine"]

BEHIND = "some documents changed and could not be indexed in time"
UNSEEN = "some documents could not be looked at just now"
BEING_WRITTEN = "some documents are being written: an earlier version of them was searched"
_BUILD_SHARE = 0.7
"""What a call may use of its time to index; the rest is for the answer."""
_LONG_BUILD_SECONDS = 3.0
"""The most that a call with a deadline gives to an update of many documents: others go on."""
_PATIENCE_SECONDS = 0.5
"""How long a call waits for another one that indexes, once there is something to search."""
_CLOSE_SECONDS = 5.0
_KEEP_AFTER = 20
"""Documents that may change before the index is written again; fewer wait for the end."""
_MOST_IN_MEMORY = 32_000_000
"""Bytes of segments that a long build holds; then they are kept, and read from the file."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the index is."""

    state: str
    """empty, building, ready, or partial when time ran out before all was indexed."""
    where: str
    """disk, or memory when it could not be kept."""
    documents: int
    sections: int
    pending: int
    """Documents that are not indexed yet."""
    size_bytes: int
    """0 where it is not held here, as in a cluster."""
    message: str
    """Why it was built again or is not kept; empty when all is well."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """An index and what searches it as it is now."""

    index: Index
    searcher: Searcher


class SearchEngine:
    """The index of one knowledge base."""

    def __init__(
        self,
        settings: Settings,
        count_tokens: CountTokens,
        lexicon: Lexicon,
        meaning: Meaning | None = None,
    ) -> None:
        """Args:
        lexicon: which words there are, whatever the documents hold.
        meaning: what is near a text in meaning; None to search by words alone.
        """
        self._meaning = meaning
        self._settings = settings
        self._real_words = RealWords(lexicon)
        self._count_tokens = count_tokens
        self._synonyms = with_team(settings.synonyms)
        places = [one.place for one in settings.served if one.name != OWN]
        self._file = IndexFile(settings.cache_dir, settings.root, places)
        self._made_for = _made_for(settings)
        self._analyzer = Analyzer()
        self._changing = threading.Lock()
        self._writing = threading.Lock()
        self._writer: threading.Thread | None = None
        self._served: Served | None = None
        self._vocabulary: Vocabulary | None = None
        self._handing_out = threading.Lock()
        self._last: IndexSnapshot | None = None
        self._files: Sequence[SourceFile] | None = None
        self._nothing: dict[str, Stamp] = {}
        self._retried: set[str] = set()
        self._outdated: set[str] = set()
        self._searchable = threading.Event()
        self._unkept = 0
        self._missing = 0
        self._where = "memory"
        self._may_write = True
        self._rebuilt = self._trouble = self._doubt = ""

    @property
    def state(self) -> IndexState:
        """How the index is now."""
        served = self._served
        if served is None:
            state = "building" if self._changing.locked() else "empty"
            return IndexState(state, "", 0, 0, self._missing, 0, "")
        catalog = served.searcher.catalog
        unfinished = "building" if self._changing.locked() else "partial"
        return IndexState(
            state=unfinished if self._missing else "ready",
            where=self._where,
            documents=len(catalog.slots),
            sections=catalog.section_count,
            pending=self._missing,
            size_bytes=served.index.segments.size_bytes,
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
    ) -> IndexSnapshot:
        """Bring the index to exactly these files, loading only what changed; it can be searched.

        When time runs out, what was indexed stays and the next call goes on from there. So does
        what is `unseen`: not among the files but perhaps still there. A call that finds another
        one indexing waits for the first documents and then takes what there is.
        """
        if self._meaning is not None:
            self._meaning.make_way()
        if self._is_current(files):
            return self._standing(files, unseen)
        if not self._acquire(deadline.part(_BUILD_SHARE)):
            return self._snapshot(files, BEHIND)
        try:
            if not self._is_current(files):
                self._bring_to(files, look_up, deadline.part(_BUILD_SHARE), progress, unseen)
            return self._standing(files, unseen)
        finally:
            self._changing.release()

    @property
    def entries(self) -> Mapping[str, DocumentEntry]:
        """The documents that are indexed, by path; the same object until the index changes."""
        served = self._served
        return served.searcher.catalog.entries if served else {}

    def close(self) -> None:
        """Keep what is not kept yet."""
        # A build that is still running would keep the process alive; its work is then lost.
        if self._changing.acquire(blocking=False):
            try:
                if self._unkept and self._served is not None and not self._missing:
                    self._start_keeping(self._served.index)
            finally:
                self._changing.release()
        if self._writer is not None:
            self._writer.join(_CLOSE_SECONDS)

    def _standing(self, files: Sequence[SourceFile], unseen: bool) -> IndexSnapshot:
        """What can be searched now, for every call that sees these files if that is known."""
        with self._handing_out:
            # There is one that stands at most: it alone is taken back.
            if self._last is not None and not unseen and self._is_current(files):
                return self._last
            snapshot = self._snapshot(files, UNSEEN if unseen else "")
            # Vectors come while nothing else changes: each call asks how many there are.
            if not snapshot.behind and self._meaning is None and self._is_current(files):
                snapshot.stands, self._last = True, snapshot
        return snapshot

    def _replace(self, served: Served | None) -> None:
        """Serve another index, or none; the last snapshot is right for nobody who has not got it
        yet. The lock of those that hand out is held.
        """
        self._served = served
        if self._last is not None:
            self._last.stands, self._last = False, None
        if served is not None:
            self._searchable.set()
        else:
            self._searchable.clear()

    def _snapshot(self, files: Sequence[SourceFile], behind: str) -> IndexSnapshot:
        """What can be searched now; with `behind`, only what still is as it was indexed."""
        served = self._served
        if served is None:
            return IndexSnapshot(self._searcher_of(Index()), behind=NOT_BUILT)
        missing = f"{self._missing:,} of {len(files):,} documents are not indexed yet"
        current = {source.path: source.stamp for source in files} if behind else None
        behind = missing if self._missing else behind or (BEING_WRITTEN if self._outdated else "")
        meaning = self._meaning.generation if self._meaning is not None else 0
        distrust = partial(self._distrust, served.index)
        return IndexSnapshot(served.searcher, current, behind, distrust, meaning)

    def _acquire(self, deadline: Deadline) -> bool:
        """Wait for the call that indexes, but during a long build only for the first documents."""
        if deadline.remaining_seconds is None:
            return self._changing.acquire()
        if self._served is None:
            if self._changing.acquire(blocking=False):
                return True
            self._searchable.wait(deadline.remaining_seconds)
        patience = deadline.remaining_seconds or 0.0
        if self._missing:
            patience = min(patience, _PATIENCE_SECONDS)
        return self._changing.acquire(timeout=patience)

    def _is_current(self, files: Sequence[SourceFile]) -> bool:
        known = self._files
        current = known is not None and (known is files or known == files)
        return current and not self._retried and not self._doubt

    def _distrust(self, index: Index, error: UntrustedIndex) -> None:
        """Serve an index no longer that is damaged, and build it again with the next update.

        Others may find the same damage later: what was built since is not thrown away for it.
        """
        with self._handing_out:
            if self._served is not None and self._served.index is index:
                self._doubt = str(error)
                self._replace(None)

    def _bring_to(
        self,
        files: Sequence[SourceFile],
        look_up: LookUp,
        deadline: Deadline,
        progress: Progress | None,
        unseen: bool,
    ) -> None:
        first, index = self._taken_up()
        self._may_write = True
        update = IndexUpdate(index, files, look_up, deadline, self._nothing, progress, unseen)
        try:
            self._apply(index, update)
        except UntrustedIndex as error:
            # The kept file broke under it: everything is indexed again, and in memory, since a
            # disk that goes on like this would let it never come to an end.
            self._distrust(index, error)
            self._rebuilt, self._doubt = f"built again: {error}", ""
            first, index, self._may_write = True, Index(), False
            update = IndexUpdate(index, files, look_up, deadline, self._nothing, progress, unseen)
            self._apply(index, update)
        if self._served is None or self._served.index is not index:
            self._serve(index)
        self._retried, self._outdated = update.retried, update.outdated
        self._missing = len(update.unreached | update.failed)
        self._files = None if update.unreached or unseen else files
        if self._unkept >= _KEEP_AFTER or (first and self._unkept):
            self._start_keeping(index)

    def _taken_up(self) -> tuple[bool, Index]:
        """The index to go on with, and whether it was not served until now."""
        if self._doubt:
            self._rebuilt, self._doubt = f"built again: {self._doubt}", ""
            return True, Index()
        return (False, self._served.index) if self._served else (True, self._restored())

    def _apply(self, index: Index, update: IndexUpdate) -> None:
        """Index a batch after the other; each can be searched at once."""
        if update.is_long:
            self._missing = len(update.pending)
            update.limit_seconds(_LONG_BUILD_SECONDS)
        while update.is_needed:
            update.load()
            described = update.described(self._analyzer, self._count_tokens)
            index.footers = update.footers
            replaced = update.replaced
            if replaced or described:
                index.change(replaced, described)
                self._unkept += max(len(replaced), len(described))
                self._serve(index)
            update.applied()
            if self._may_write and index.segments.memory_bytes > _MOST_IN_MEMORY:
                self._keep_so_far(index)
            waiting = len(update.pending) + len(update.documents)
            self._missing = waiting + len(update.unreached)

    def _keep_so_far(self, index: Index) -> None:
        """In the middle of a build: write what there is and go on with what the file holds.

        A build that is killed later goes on from here.
        """
        packed = kept_index.contents_of(index)
        with self._writing:
            try:
                kept_index.save(self._file, packed, self._made_for)
                index.segments.replace(kept_index.reopened(self._file, packed, self._made_for))
            except UntrustedIndex as reason:
                self._where, self._trouble = "memory", f"not kept on disk: {reason}"
        # Tried once more for every batch, it would take longer than the build.
        self._may_write = index.segments.memory_bytes <= _MOST_IN_MEMORY
        self._serve(index)

    def _serve(self, index: Index) -> None:
        searcher = self._searcher_of(index)
        with self._handing_out:
            self._replace(Served(index, searcher))
        if self._meaning is not None:
            self._meaning.follow(searcher.catalog, searcher.documents.read)

    def _searcher_of(self, index: Index) -> Searcher:
        reader = index.segments.reader
        vocabulary = Vocabulary(reader, self._vocabulary)
        self._vocabulary = vocabulary
        ranker = Ranker(index.catalog, reader.lengths, reader.postings, vocabulary.fields)
        return Searcher(
            ranker,
            reader,
            vocabulary,
            self._synonyms,
            self._settings.layers,
            self._real_words,
            self._meaning,
        )

    def _restored(self) -> Index:
        try:
            index = kept_index.load(self._file, self._made_for)
        except UntrustedIndex as reason:
            self._rebuilt = f"built again: {reason}"
            index = None
        if index is None:
            return Index()
        self._where = "disk"
        return index

    def _start_keeping(self, index: Index) -> None:
        """Write the index off the request path; a write that runs sees only its own moment."""
        packed = kept_index.contents_of(index)
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

    def _keep(self, packed: kept_index.Contents) -> None:
        try:
            with self._writing:
                size = kept_index.save(self._file, packed, self._made_for)
            # Only now: an update that writes what it has so far waits with its lock for this one.
            if size > IN_MEMORY:
                self._read_from_disk(packed)
        except UntrustedIndex as reason:
            self._where, self._trouble = "memory", f"not kept on disk: {reason}"
        else:
            self._where, self._trouble = "disk", ""

    def _read_from_disk(self, packed: kept_index.Contents) -> None:
        """Let go of what is in memory and in the file as well."""
        replaced = kept_index.reopened(self._file, packed, self._made_for)
        with self._changing:
            if self._served is not None:
                self._served.index.segments.replace(replaced)
                self._serve(self._served.index)


def _made_for(settings: Settings) -> dict[str, Any]:
    """What gives every page of an index its path, its layer and its topic."""
    others = {f"source {one.name}": str(one.place) for one in settings.served if one.name != OWN}
    mapped = {
        one.name: {layer: list(places) for layer, places in one.layer_paths.items()}
        for one in settings.served
        if one.layer_paths
    }
    return {"root": str(settings.root), "mapped": mapped, **others}
