"""What one update of the index has to do, and the documents it needs for that.

Loading is the library's, describing a document the indexing's; when time runs out it says what
was not reached.
"""

from collections.abc import Callable, Iterator, Sequence

from sage.analysis import Analyzer
from sage.catalog import Card
from sage.deadline import Deadline
from sage.documents import Document
from sage.errors import TimeoutExceeded
from sage.files import SourceFile, Stamp
from sage.holdings import Holdings
from sage.indexing import CountTokens, describe, ending, find_footers
from sage.library import Loaded
from sage.postings import Row

LookUp = Callable[[SourceFile], Loaded]
Progress = Callable[[int, int], None]


class Work:
    """What one update has to do, and the documents it needs for that."""

    def __init__(
        self,
        held: Holdings,
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
        self._held = held
        self._cards = held.catalog.cards
        self._files = {source.path: source for source in files}
        self._look_up = look_up
        self._deadline = deadline
        self._nothing = nothing
        self._progress = progress
        self.documents: dict[str, tuple[Document, Stamp]] = {}
        self.gone = {path for path in self._cards if path not in self._files and not unseen}
        self.footers = held.footers
        self.unreached: set[str] = set()
        self.failed: set[str] = set()
        self.retried: set[str] = set()

    @property
    def is_needed(self) -> bool:
        return bool(self.gone or self.documents)

    def load(self) -> None:
        """Load what changed, and what an appearing or vanishing footer changes."""
        self._load_all([path for path in self._files if not self._is_known(path)])
        self.footers = find_footers(self._endings())
        moved = self.footers ^ self._held.footers
        if moved:
            self._load_all(
                [
                    path
                    for path, card in self._cards.items()
                    if path in self._files
                    and path not in self.gone
                    and not moved.isdisjoint(card.last_lines)
                ]
            )

    def described(
        self, analyzer: Analyzer, count_tokens: CountTokens
    ) -> Iterator[tuple[Card, list[Row]]]:
        """The cards and rows of the loaded documents, for as long as there is time."""
        total = len(self.documents)
        for done, (path, (document, stamp)) in enumerate(self.documents.items()):
            self._tell(total + done, 2 * total)
            if self._deadline.expired:
                self.unreached.add(path)
            else:
                yield describe(document, stamp, self.footers, analyzer, count_tokens)
        self._tell(2 * total, 2 * total)

    def _tell(self, done: int, total: int) -> None:
        """Loading a document is one half of its work, indexing it the other."""
        if self._progress is not None:
            self._progress(done, total)

    def _is_known(self, path: str) -> bool:
        stamp = self._files[path].stamp
        card = self._cards.get(path)
        if card is not None:
            return card.stamp == stamp
        return self._nothing.get(path) == stamp

    def _load_all(self, paths: Sequence[str]) -> None:
        for done, path in enumerate(paths):
            self._tell(done, 2 * len(paths))
            if path in self._cards:
                self.gone.add(path)
            if self._deadline.expired:
                self.unreached.add(path)
                continue
            try:
                self._load(self._files[path])
            except TimeoutExceeded:
                self.unreached.add(path)

    def _load(self, source: SourceFile) -> None:
        loaded = self._look_up(source)
        if loaded.document is not None:
            self.documents[source.path] = (loaded.document, loaded.stamp)
        elif loaded.digest:
            self._nothing[source.path] = source.stamp
        if loaded.stamp != source.stamp or (loaded.document is None and not loaded.digest):
            # Being written, or gone since the scan: what was loaded may not be what is there.
            self.retried.add(source.path)
        if loaded.passing:
            self.failed.add(source.path)

    def _endings(self) -> Iterator[tuple[str, ...]]:
        for path, card in self._cards.items():
            if path not in self.gone:
                yield card.last_lines
        for document, _ in self.documents.values():
            yield ending(document)
