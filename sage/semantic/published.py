"""Vectors that are published with their pages: made once, and compared by every replica.

Who publishes embeds what no page had before; a replica makes vectors of questions only.
"""

import logging
import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sage.documents.files import Stamp
from sage.search.catalog import Catalog, DocumentEntry
from sage.search.fusion import Similarities
from sage.search.sections import ReadDocument, StoredDocument
from sage.semantic.meaning import MeaningState
from sage.semantic.models import Encoder, Model, wanted_model
from sage.semantic.passages import FORMAT, key_of, passages
from sage.semantic.questions import QuestionVectors
from sage.semantic.weights import ModelUnavailable
from sage.settings import Settings

if TYPE_CHECKING:
    from sage.semantic.likeness import TableLikeness
    from sage.semantic.vectors import Table, Vectors

logger = logging.getLogger("sage.semantic")

_MOST_TABLES = 32


def made_by(model: Model) -> str:
    """Names what vectors are made of and by which model: those of two names are never compared."""
    return f"{model.id}-{FORMAT}"


class PageEmbedder:
    """Makes the vectors of pages that are published."""

    def __init__(self, model: Model) -> None:
        self.made_by = made_by(model)
        self._model = model
        self._encoder: Encoder | None = None
        self._vectors: Vectors | None = None

    def remember(self, data: bytes) -> None:
        """Take the vectors of a page as it was: what it says still is not embedded again.

        Raises:
            ValueError: they are damaged.
        """
        from sage.semantic.page_vectors import unpack_page
        from sage.semantic.vectors import Vectors

        page = unpack_page(data)
        if self._vectors is None:
            self._vectors = Vectors(page.numbers.shape[1])
        self._vectors.add_packed(page.keys, page.numbers, page.scales)

    def embed(self, entry: DocumentEntry, stored: StoredDocument) -> bytes:
        """The vectors of a page, packed.

        Raises:
            ModelUnavailable: the model cannot be used.
        """
        from sage.semantic.page_vectors import pack_page
        from sage.semantic.vectors import Vectors

        vectors = self._vectors
        if vectors is None:
            vectors = self._vectors = Vectors(self._loaded().dimensions)
        keys: list[bytes] = []
        for text in passages(entry, stored):
            keys.append(key_of(text))
            if keys[-1] not in vectors:
                vectors.add(keys[-1:], self._loaded().embed([text]))
        return pack_page(vectors, keys)

    def _loaded(self) -> Encoder:
        if self._encoder is None:
            self._encoder = loaded(self._model)
        return self._encoder


class PublishedMeaning:
    """What is near a text in a published base, whatever part of it is searched. Thread-safe."""

    def __init__(self, model: Model, trouble: str = "") -> None:
        """Args:
        trouble: why the model cannot be used, where that is known already.
        """
        self.made_by = made_by(model)
        self.generation = 0
        self._model = model
        self._trouble = trouble
        self._loading = threading.Lock()
        self._thread: threading.Thread | None = None
        self._questions: QuestionVectors | None = None
        self._vectors: Vectors | None = None
        self._tables: dict[int, Table] = {}
        self._likeness: TableLikeness | None = None

    @property
    def is_multilingual(self) -> bool:
        """Whether a question finds pages in other languages."""
        return self._model.is_multilingual

    def state_of(self, catalog: Catalog) -> MeaningState:
        """How far it is for what somebody may see."""
        name = self._model.name
        if self._trouble:
            return MeaningState(name, "unavailable", 0, 0, self._trouble)
        table = self._table(catalog)
        if table is None or not table.sections:
            return MeaningState(name, "waiting", 0, 0, "")
        state = "ready" if self._questions is not None else "loading"
        return MeaningState(name, state, table.sections, table.size_bytes, "")

    def take(self, path: str, stamp: Stamp, data: bytes) -> None:
        """Keep the vectors of a page as it was published.

        Raises:
            ValueError: they are damaged.
        """
        from sage.semantic.page_vectors import unpack_page
        from sage.semantic.vectors import DocumentVectors, Vectors

        page = unpack_page(data)
        if self._vectors is None:
            self._vectors = Vectors(page.numbers.shape[1])
        if page.numbers.shape[1] != self._vectors.dimensions:
            raise ValueError("the vectors of a page have another size than those of others")
        self._vectors.add_packed(page.keys, page.numbers, page.scales)
        self._vectors.documents[path] = DocumentVectors(stamp, page.keys)

    def keep_only(self, paths: Collection[str]) -> None:
        """All that is served was taken: let go of every other page."""
        if self._vectors is not None:
            known = self._vectors.documents
            for path in [path for path in known if path not in paths]:
                del known[path]
            self._vectors.drop_unused()
        self._tables = {}
        self.generation += 1

    def compare(self, text: str, catalog: Catalog) -> Similarities | None:
        """How near the documents of a catalog are; None while that is not known."""
        questions, table = self._questions, self._table(catalog)
        if questions is None:
            self.start()
        if questions is None or table is None:
            return None
        return table.similarities(questions.vector(text), self._model.bounds)

    def likeness(self, catalog: Catalog) -> "TableLikeness | None":
        """How near they are to each other; None while that is not known."""
        from sage.semantic.likeness import TableLikeness

        table, known = self._table(catalog), self._likeness
        if table is not None and (known is None or known.table is not table):
            known = self._likeness = TableLikeness(table, self._model.bounds)
        return known if table is not None else None

    def follow(self, catalog: Catalog, read: ReadDocument) -> None:
        """What changes comes with a generation."""

    def make_way(self) -> None:
        """Nothing is done in the background."""

    def use(self, paths: Sequence[str]) -> None:
        """All vectors are there, or none."""

    def start(self) -> None:
        """Load the model, in a thread of its own; once."""
        if self._thread is None and not self._trouble:
            self._thread = threading.Thread(target=self.load, name="sage-model", daemon=True)
            self._thread.start()

    def load(self) -> None:
        """Load the model now, if it is not loaded."""
        with self._loading:
            if self._questions is not None or self._trouble:
                return
            try:
                self._questions = QuestionVectors(loaded(self._model))
            except ModelUnavailable as error:
                self._trouble = str(error)
                logger.warning("meaning is not searched: %s", error)
            self.generation += 1

    def _table(self, catalog: Catalog) -> "Table | None":
        """The vectors of what somebody may see, the last ones remembered."""
        if self._vectors is None:
            return None
        tables = self._tables
        table = tables.get(id(catalog))
        if table is None or table.catalog is not catalog:
            if len(tables) >= _MOST_TABLES:
                tables = self._tables = {}
            table = tables[id(catalog)] = self._vectors.table(catalog)
        return table


def loaded(model: Model) -> Encoder:
    """The model, using one core.

    Raises:
        ModelUnavailable: it cannot be used.
    """
    from sage.semantic.encoder import use_one_thread

    use_one_thread()
    return model.load()


def open_embedder(settings: Settings) -> PageEmbedder | None:
    """What makes the vectors of pages that are published; None without the extra.

    Raises:
        ModelUnavailable: `search.semantic` is on and the model cannot be used.
    """
    found = wanted_model(settings)
    if found is None:
        return None
    model, trouble = found
    if trouble:
        logger.warning("pages are published without vectors: %s", trouble)
        return None
    return PageEmbedder(model)


def open_published(settings: Settings) -> PublishedMeaning | None:
    """What compares meanings in a replica; None without the extra.

    Raises:
        ModelUnavailable: `search.semantic` is on and the model cannot be used.
    """
    found = wanted_model(settings)
    return PublishedMeaning(*found) if found is not None else None
