"""What an engine has to offer so that search can stand on it.

Analysis, the meaning of a query, scores, verdicts, permissions and cleaning are ours and stand
above it: an engine brings itself to documents (`Engine.update`), finds candidates for an analysed
query inside a filter and loads what it keeps (`index_reader.IndexReader`), knows words and their
frequencies (`query.Words`, `ranking.Counts`), says whether it is ready, and closes.
`sage.cluster.conformance` tries all of it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sage.deadline import Deadline
from sage.documents.document import Page
from sage.documents.files import SourceFile
from sage.search.catalog import DocumentEntry
from sage.search.engine import IndexState
from sage.search.searcher import RankedSections, Searcher
from sage.search.sections import Found, SearchOptions
from sage.search.update import LookUp, Progress
from sage.terms.index_file import UntrustedIndex


class Snapshot(Protocol):
    """One generation to be searched by the caller of one update.

    Whatever reads of it raises UntrustedIndex where what is kept is damaged. Whoever asked tells
    `distrust` and asks the snapshot of another update.
    """

    @property
    def searcher(self) -> Searcher: ...
    @property
    def behind(self) -> str:
        """How it differs from the files; empty when it does not."""

    @property
    def meaning(self) -> int:
        """Another number whenever meaning may answer otherwise; 0 without any."""

    @property
    def stands(self) -> bool:
        """Whether it is right for every later call that sees the same files."""

    def search(self, text: str, options: SearchOptions, deadline: Deadline) -> Found:
        """The best documents for a query."""

    def rank_sections(self, text: str, *, limit: int, deadline: Deadline) -> RankedSections:
        """The best sections of all documents for a free text."""

    @property
    def distrust(self) -> Callable[[UntrustedIndex], None]:
        """Told when what is kept turns out to be damaged while it is read."""

    def page(self, path: str, deadline: Deadline) -> Page | None:
        """A page as it was indexed; None when it is there no longer, or no longer as it was."""


class Engine(Protocol):
    """What keeps the index of one knowledge base. Thread-safe."""

    @property
    def state(self) -> IndexState:
        """Whether it is ready, where it is, and how much it holds."""

    @property
    def entries(self) -> Mapping[str, DocumentEntry]:
        """The documents that are indexed, by path; the same object until the index changes."""

    def update(
        self,
        files: Sequence[SourceFile],
        look_up: LookUp,
        deadline: Deadline,
        progress: Progress | None = None,
        *,
        unseen: bool = False,
    ) -> Snapshot:
        """Bring the index to exactly these documents; what comes back can be searched."""

    def close(self) -> None:
        """Keep or let go of what it holds."""
