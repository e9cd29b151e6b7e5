"""A search engine over a base on disk, brought up to date before each search."""

from collections.abc import Callable

from sage.deadline import Deadline
from sage.documents.document import Document
from sage.documents.files import SourceFile
from sage.documents.library import Library, Loaded
from sage.search.engine import IndexSnapshot, SearchEngine
from sage.search.sections import Found, SearchOptions
from sage.token_counter import BundledVocabulary
from tests.conftest import Base


def count_words(document: Document, start: int, end: int) -> int:
    """Tokens for tests that are not about tokens."""
    return len(document.body[start:end].split())


class IndexedBase:
    """What a knowledge base does with an engine, in the open."""

    def __init__(self, base: Base, **flags: object) -> None:
        self.settings = base.settings(**flags)
        self.library = Library(self.settings, base.clocks)
        self.engine = SearchEngine(self.settings, count_words, BundledVocabulary())
        self.loaded: list[str] = []

    def files(self) -> list[SourceFile]:
        listings = self.library.refresh(self.settings.layers, Deadline())
        return [source for listing in listings for source in listing.files]

    def update(
        self, deadline: Deadline | None = None, progress: Callable[[int, int], None] | None = None
    ) -> IndexSnapshot:
        return self.engine.update(self.files(), self.look_up, deadline or Deadline(), progress)

    def look_up(self, source: SourceFile) -> Loaded:
        self.loaded.append(source.path)
        return self.library.look_up(source, Deadline())

    def search(self, query: str, limit: int = 10, layers: tuple[str, ...] | None = None) -> Found:
        return self.update().search(query, SearchOptions(limit, layers=layers), Deadline())

    def paths(self, query: str, **options: object) -> list[str]:
        found = self.search(query, **options)  # type: ignore[arg-type]
        return [result.path.removeprefix(".knowledge/") for result in found.sections]
