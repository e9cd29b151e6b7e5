"""Meaning, as the search uses it: the vectors of a base, made in the background and compared.

The model is loaded by the thread that makes vectors, or by a command that waits for it; a call
never waits, and is answered by words alone until both are there.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sage.search.catalog import Catalog
from sage.search.fusion import Bounds, Similarities
from sage.search.sections import ReadDocument
from sage.semantic.models import Encoder, Model, wanted_model
from sage.semantic.questions import QuestionVectors
from sage.semantic.weights import ModelUnavailable
from sage.settings import Settings
from sage.terms.index_file import IndexFile, UntrustedIndex
from sage.values import OWN

if TYPE_CHECKING:
    from sage.semantic.likeness import TableLikeness
    from sage.semantic.vectors import Table

logger = logging.getLogger("sage.semantic")


@dataclass(frozen=True, slots=True)
class MeaningState:
    """How far the meaning of a base is known."""

    model: str
    state: str
    """waiting, loading, embedding, ready or unavailable."""
    sections: int
    """Those that have a vector."""
    size_bytes: int
    message: str
    """Why it is unavailable or not kept; empty when all is well."""


class SectionMeaning:
    """What is near a text in one base. Thread-safe."""

    def __init__(self, settings: Settings, model: Model, trouble: str = "") -> None:
        """Args:
        trouble: why the model cannot be used, where that is known already.
        """
        self._settings = settings
        self._model = model
        self._loading = threading.Lock()
        self._ready: _Ready | None = None
        self._generation: tuple[Catalog, ReadDocument] | None = None
        self._thread: threading.Thread | None = None
        self._trouble = trouble
        self._is_closed = False
        self.generation = 0

    @property
    def is_multilingual(self) -> bool:
        """Whether a question finds pages in other languages."""
        return self._model.is_multilingual

    @property
    def state(self) -> MeaningState:
        """How far it is."""
        ready, generation = self._ready, self._generation
        if ready is None:
            state = "unavailable" if self._trouble else "loading" if self._thread else "waiting"
            return MeaningState(self._model.name, state, 0, 0, self._trouble)
        sections = ready.table(generation[0]).sections if generation else 0
        wanted = generation[0].section_count if generation else 0
        state = "ready" if sections >= wanted else "embedding"
        size = ready.vectors.size_bytes
        return MeaningState(self._model.name, state, sections, size, self._trouble)

    def compare(self, text: str, catalog: Catalog) -> Similarities | None:
        """How near the documents of a catalog are; None while that is not known."""
        ready = self._ready
        if ready is None or not len(ready.vectors):
            return None
        return ready.table(catalog).similarities(ready.questions.vector(text), self._model.bounds)

    def likeness(self, catalog: Catalog) -> "TableLikeness | None":
        """How near they are to each other; None while that is not known."""
        ready = self._ready
        if ready is None or not len(ready.vectors):
            return None
        return ready.likeness(catalog, self._model.bounds)

    def follow(self, catalog: Catalog, read: ReadDocument) -> None:
        """There is another generation of the index."""
        self._generation = (catalog, read)
        if self._ready is not None:
            self._ready.embedder.follow(self._generation)

    def make_way(self) -> None:
        """A call begins: nothing else uses the processor for a moment."""
        if self._ready is not None:
            self._ready.embedder.make_way()

    def use(self, paths: Sequence[str]) -> None:
        """These documents are asked for: their vectors are wanted first."""
        if self._ready is not None:
            self._ready.embedder.use(paths)

    def start(self) -> None:
        """Make the missing vectors from now on, in a thread of its own; once."""
        with self._loading:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="sage-embedder", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._trouble = "no thread can be started"
                return
            self._thread = thread

    def recall(self) -> None:
        """Load the model and the kept vectors now, if there are any: for a command that ends."""
        if _file_of(self._settings, self._model).path.is_file():
            self._load()

    def embed(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the missing vectors now.

        Raises:
            ModelUnavailable: the model cannot be used.
        """
        ready = self._load()
        if ready is None:
            raise ModelUnavailable(self._trouble)
        ready.embedder.catch_up(progress=progress)

    def close(self) -> None:
        """End the thread, and keep what it made."""
        self._is_closed = True
        if self._ready is not None:
            self._ready.embedder.stop()
            self._ready.keep()

    def _run(self) -> None:
        ready = self._load()
        if ready is not None and not self._is_closed:
            ready.embedder.run()

    def _load(self) -> "_Ready | None":
        with self._loading:
            if self._ready is None and not self._trouble:
                try:
                    ready = _Ready(self._settings, self._model, self._tell, self._complain)
                except ModelUnavailable as error:
                    self._trouble = str(error)
                    logger.warning("meaning is not searched: %s", error)
                    return None
                if self._generation is not None:
                    ready.embedder.follow(self._generation)
                self._ready = ready
                self._tell()
        return self._ready

    def _tell(self) -> None:
        self.generation += 1
        if self._ready is not None:
            self._ready.forget_table()

    def _complain(self, trouble: str) -> None:
        self._trouble = trouble


class _Ready:
    """A loaded model with its vectors and what makes them."""

    def __init__(
        self,
        settings: Settings,
        model: Model,
        tell: Callable[[], None],
        complain: Callable[[str], None],
    ) -> None:
        # Here begins what the extra brings: nothing of it is imported before somebody needs it.
        from sage.semantic.embedder import Embedder
        from sage.semantic.encoder import use_one_thread
        from sage.semantic.vector_file import VectorFile
        from sage.semantic.vectors import Vectors

        use_one_thread()
        self.encoder: Encoder = model.load()
        self._file = VectorFile(_file_of(settings, model), model.id)
        dimensions = self.encoder.dimensions
        self.vectors = self._file.load(dimensions) or Vectors(dimensions)
        self._complain = complain
        self.embedder = Embedder(self.encoder, self.vectors, tell, self.keep)
        self._table: Table | None = None
        self._likeness: TableLikeness | None = None
        self._kept = self.vectors.changes
        self.questions = QuestionVectors(self.encoder)

    def table(self, catalog: Catalog) -> "Table":
        """The vectors of a catalog's documents."""
        table = self._table
        if table is None or table.catalog is not catalog:
            table = self._table = self.vectors.table(catalog)
        return table

    def likeness(self, catalog: Catalog, bounds: Bounds) -> "TableLikeness":
        """The same, to be compared among themselves."""
        from sage.semantic.likeness import TableLikeness

        table, known = self.table(catalog), self._likeness
        if known is None or known.table is not table:
            known = self._likeness = TableLikeness(table, bounds)
        return known

    def forget_table(self) -> None:
        """There are other vectors than before."""
        self._table = None

    def keep(self) -> None:
        """Write what there is, if it is not what was written last."""
        changes = self.vectors.changes
        if changes == self._kept:
            return
        try:
            self._file.save(self.vectors)
        except UntrustedIndex as error:
            self._complain(f"not kept on disk: {error}")
        else:
            self._kept = changes
            self._complain("")


def _file_of(settings: Settings, model: Model) -> IndexFile:
    """Where the vectors of a model are kept, beside the index."""
    short = hashlib.blake2b(model.id.encode(), digest_size=6).hexdigest()
    others = [one.place for one in settings.served if one.name != OWN]
    return IndexFile(settings.cache_dir, settings.root, others, f"-vectors-{short}")


def open_meaning(settings: Settings) -> SectionMeaning | None:
    """The meaning of a base as the settings want it; None where the extra is not installed.

    Raises:
        ModelUnavailable: `search.semantic` is on and the model cannot be used.
    """
    found = wanted_model(settings)
    return SectionMeaning(settings, *found) if found is not None else None
