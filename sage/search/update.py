"""What one update of the index has to do, a batch of documents at a time.

Loading is the library's, describing a document the indexing's; when time runs out it says what
was not reached.
"""

from collections.abc import Callable, Iterator, Sequence

from sage.deadline import Deadline
from sage.documents.boilerplate import Footers, ending_keys, find_footers
from sage.documents.document import Document
from sage.documents.files import SourceFile, Stamp
from sage.documents.library import Loaded
from sage.errors import TimeoutExceeded
from sage.search.index import Index
from sage.search.indexing import CountTokens, Described, describe
from sage.terms.analysis import Analyzer
from sage.terms.postings import Row

LookUp = Callable[[SourceFile], Loaded]
Progress = Callable[[int, int], None]

FIRST_BATCH_BYTES = 500_000
MAX_BATCH_BYTES = 2_000_000
"""The first results come soon, and later batches are few: each becomes a segment."""
MAX_DESCRIBED = 200_000
"""Words of sections, each counted once for a section, that are held until they are indexed: those
of 2 MB in English. A Chinese page gives six times as many for its bytes."""
_FILE_BYTES = 500
"""What a file costs beside its text, in bytes of text."""


class IndexUpdate:
    """Brings an index to some files: batches of documents, each of which can be searched."""

    def __init__(
        self,
        index: Index,
        files: Sequence[SourceFile],
        look_up: LookUp,
        deadline: Deadline,
        nothing: dict[str, Stamp],
        progress: Progress | None = None,
        unseen: bool = False,
    ) -> None:
        """Args:
        nothing: files known to hold no document.
        unseen: whether documents that are not among the files may still be there.
        """
        self._index = index
        self._files = {source.path: source for source in files}
        self._look_up = look_up
        self._deadline = deadline
        self._nothing = nothing
        self._progress = progress
        known = index.catalog.places  # not the entries: to make them takes longer than to search
        self.pending = self._changed()
        """What is still to be loaded, in the order of the files."""
        self.gone = {path for path in known if path not in self._files and not unseen}
        self.gone.update(path for path in self.pending if path in known)
        """What is no longer as it was indexed."""
        self.documents: dict[str, tuple[Document, Stamp]] = {}
        self.footers = index.footers
        self.unreached: set[str] = set()
        self.failed: set[str] = set()
        self.retried: set[str] = set()
        self.outdated: set[str] = set()
        """Files that are being written: an earlier version of them was indexed."""
        self._has_footers = False
        self._batch_bytes = FIRST_BATCH_BYTES
        self._total = len(self.pending)
        self._done = 0

    @property
    def is_long(self) -> bool:
        """Whether it takes more than one batch."""
        sizes = (self._files[path].stamp.size + _FILE_BYTES for path in self.pending)
        return sum(sizes) > FIRST_BATCH_BYTES

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to change, now or after this batch."""
        return bool(self.gone or self.documents or self.pending)

    def limit_seconds(self, seconds: float) -> None:
        """Use no more than that, unless nobody waits: the next update goes on."""
        self._deadline = self._deadline.part(1.0, seconds)

    def load(self) -> None:
        """Load the next batch. Behind the last one come the documents that a footer changes."""
        if self.documents:
            return  # the rest of the last one
        if not self._done and self._progress is not None:
            self._progress(0, 2 * self._total)
        known = self._index.catalog.places
        batch = self._next_batch()
        self.gone.update(path for path in batch if path in known)
        self._load_all(batch)
        if self._deadline.expired:
            self.unreached.update(self.pending)
            self.gone.update(path for path in self.pending if path in known)
            self.pending = []
        if not known:
            self.footers = find_footers(self._endings())
        elif not (self.pending or self.unreached or self._has_footers):
            # Until here the footers stay: every document was described with the same ones.
            self._has_footers = True
            self.footers = find_footers(self._endings())
            self.pending = list(self._changed_by(self._index.footers))
            self._total += len(self.pending)

    def _changed_by(self, before: Footers) -> Iterator[str]:
        """The documents that were described with other footers than are known now."""
        now, none = self.footers, frozenset[str]()
        if before == now:
            return
        moved = {one: before.get(one, none) ^ now.get(one, none) for one in {*before, *now}}
        columns = map(self._index.catalog.column, ("path", "source", "layer", "last_lines"))
        for path, source, layer, lines in zip(*columns, strict=True):
            known = path in self._files and path not in self.gone
            if known and not moved.get((source, layer), none).isdisjoint(lines):
                yield path

    def described(self, analyzer: Analyzer, count_tokens: CountTokens) -> list[Described]:
        """The entries and rows of loaded documents: what may be held, while there is time."""
        described: list[Described] = []
        held = 0
        for path, (document, stamp) in list(self.documents.items()):
            if held >= MAX_DESCRIBED:
                break
            del self.documents[path]
            if self._deadline.expired:
                self.unreached.add(path)
            else:
                described.append(describe(document, stamp, self.footers, analyzer, count_tokens))
                held += sum(map(_words, described[-1][1]))
            self._tell()
        return described

    @property
    def replaced(self) -> set[str]:
        """What is to be taken out together with what was described: the rest stays until then."""
        return self.gone.difference(self.documents)

    def applied(self) -> None:
        """What was described is in the index: go on with the next."""
        self.gone.intersection_update(self.documents)

    def _next_batch(self) -> list[str]:
        """The next files, up to a size that grows from batch to batch."""
        taken = size = 0
        while taken < len(self.pending) and size < self._batch_bytes:
            size += self._files[self.pending[taken]].stamp.size + _FILE_BYTES
            taken += 1
        batch, self.pending = self.pending[:taken], self.pending[taken:]
        self._batch_bytes = min(2 * self._batch_bytes, MAX_BATCH_BYTES)
        return batch

    def _tell(self) -> None:
        """Loading a document is one half of its work, indexing it the other."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, 2 * self._total)

    def _changed(self) -> list[str]:
        """The files that are not as they were when they were looked at last."""
        catalog = self._index.catalog
        places, stamps, nothing = catalog.places, catalog.slots.stamps(), self._nothing
        changed: list[str] = []
        for path, source in self._files.items():
            slot = places.get(path)
            if (nothing.get(path) if slot is None else stamps[slot]) != source.stamp:
                changed.append(path)
        return changed

    def _load_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self._deadline.expired:
                self.unreached.add(path)
                continue
            try:
                self._load(self._files[path])
            except TimeoutExceeded:
                self.unreached.add(path)
            self._tell()

    def _load(self, source: SourceFile) -> None:
        loaded = self._look_up(source)
        if loaded.document is not None:
            self.documents[source.path] = (loaded.document, loaded.stamp)
        elif loaded.digest:
            self._nothing[source.path] = source.stamp
        if loaded.stamp != source.stamp or (loaded.document is None and not loaded.digest):
            # Being written, or gone since the scan: what was loaded may not be what is there.
            self.retried.add(source.path)
        if loaded.stamp.ctime_ns < source.stamp.ctime_ns:
            self.outdated.add(source.path)
        if loaded.passing:
            self.failed.add(source.path)

    def _endings(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        columns = map(self._index.catalog.column, ("path", "source", "layer", "last_lines"))
        for path, source, layer, lines in zip(*columns, strict=True):
            if path not in self.gone:
                yield source, layer, lines
        for document, _ in self.documents.values():
            yield document.source, document.layer, ending_keys(document.body)


def _words(row: Row) -> int:
    return sum(map(len, row.fields.values()))
