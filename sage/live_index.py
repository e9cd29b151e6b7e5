"""The index of a knowledge base, opened by the first call that needs it and brought to the files as
a call finds them.

What searches is imported then as well: reading a page should not wait for the search library, which
takes longer to import than a layer to load.
"""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sage.answers import IndexInfo, InfoAnswer, MeaningInfo, ReplicaInfo
from sage.deadline import Clocks, Deadline
from sage.documents.files import SourceFile
from sage.documents.library import Library
from sage.documents.source_roots import Listing, files_of
from sage.settings import Settings
from sage.status import index_info, meaning_info
from sage.token_counter import LightCounter

if TYPE_CHECKING:
    from sage.search.catalog import DocumentEntry
    from sage.search.engine import Progress
    from sage.search.protocol import Engine, Snapshot
    from sage.semantic.meaning import SectionMeaning

T = TypeVar("T")


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

    def describe(self, answer: InfoAnswer, settings: Settings, deadline: Deadline) -> ReplicaInfo:
        """What `sage_info` says, with what only the backend knows."""

    @property
    def compares_meanings(self) -> bool:
        """Whether meanings may be compared."""


def may_compare_meanings(settings: Settings) -> bool:
    """Whether settings want meanings compared where that can be; to ask imports nothing."""
    wanted = settings.search.semantic
    return wanted == "on" or (wanted == "auto" and find_spec("tokenizers") is not None)


class LiveIndex:
    """Files and index together, at the moment of a call. Thread-safe."""

    def __init__(
        self,
        library: Library,
        counter: LightCounter,
        backend: Backend | None,
    ) -> None:
        self._settings = library.settings
        self._library = library
        self._counter = counter
        self._backend = backend
        self._engine = Lazy(self._open)
        self._meaning: SectionMeaning | None = None
        self._joined: tuple[tuple[Listing, ...], tuple[SourceFile, ...]] = ((), ())
        self._progress = (0, 0)

    @property
    def engine(self) -> "Engine":
        """What searches, opened now or earlier."""
        return self._engine.get()

    @property
    def is_open(self) -> bool:
        """Whether anything has been searched yet."""
        return self._engine.made

    @property
    def compares_meanings(self) -> bool:
        """Whether meanings may be compared; to ask imports and opens nothing."""
        if self._backend is not None:
            return self._backend.compares_meanings
        return may_compare_meanings(self._settings)

    @property
    def meaning(self) -> "SectionMeaning | None":
        """What compares meanings of files; None where only words are searched, or in a cluster."""
        self._engine.get()
        return self._meaning

    @property
    def info(self) -> IndexInfo:
        """The state of the index."""
        return index_info(self.engine.state, self._progress)

    @property
    def entries(self) -> Mapping[str, "DocumentEntry"]:
        """What is known of each page by now, by path; nothing before the first search of files."""
        return self.engine.entries if self.is_open or self._backend is not None else {}

    def measure(
        self, deadline: Deadline
    ) -> tuple[Mapping[str, "DocumentEntry"], IndexInfo, MeaningInfo | None]:
        """What the index knows of each file, its state, and how many sections have vectors."""
        # To import what searches may take longer than a caller with a deadline has.
        is_quick = self.is_open or self._backend is not None
        if deadline.remaining_seconds is not None and not is_quick:
            return {}, IndexInfo(state="opening"), None
        engine, meaning = self.engine, self.meaning
        told = meaning_info(meaning.state, engine.state.sections) if meaning else None
        return engine.entries, self.info, told

    def described(self, answer: InfoAnswer, deadline: Deadline) -> InfoAnswer | ReplicaInfo:
        """What is said of the base, with what is known where it lies."""
        if self._backend is None:
            return answer
        return self._backend.describe(answer, self._settings, deadline)

    def brought_to(
        self,
        listings: tuple[Listing, ...],
        deadline: Deadline,
        progress: "Progress | None" = None,
    ) -> "Snapshot":
        """The index brought to the files that are listed."""
        known, files = self._joined
        if known != listings:
            files = tuple(files_of(listings))
            self._joined = (listings, files)
        look_up = partial(self._library.look_up, deadline=deadline)

        def tell(done: int, total: int) -> None:
            self._progress = (done, total)
            if progress is not None:
                progress(done, total)

        unseen = any(listing.unseen for listing in listings)
        return self._engine.get().update(files, look_up, deadline, tell, unseen=unseen)

    def close(self) -> None:
        """Keep what is worth keeping for the next start."""
        if self._engine.made:
            self._engine.get().close()
        if self._meaning is not None:
            self._meaning.close()

    def _open(self) -> "Engine":
        if self._backend is not None:
            return self._backend.engine(self._settings)
        from sage.search.engine import SearchEngine

        self._meaning = self._open_meaning()
        count, vocabulary = self._counter.counter.count_slice, self._counter.vocabulary
        return SearchEngine(self._settings, count, vocabulary, self._meaning)

    def _open_meaning(self) -> "SectionMeaning | None":
        """What compares meanings; None without the extra, of which then nothing is imported."""
        if not self.compares_meanings:
            return None
        from sage.semantic.meaning import open_meaning

        return open_meaning(self._settings)
