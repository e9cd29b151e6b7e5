"""The vectors that lie beside the pages in the cluster: who writes them, and who reads them.

Without the extra `semantic` nothing of it is imported, and search is by words.
"""

import base64
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sage.answers import MeaningInfo
from sage.cluster.page_record import (
    bytes_from_column,
    bytes_to_column,
    document_in,
    entries_of,
    with_field,
)
from sage.cluster.schema import VECTORS
from sage.errors import Unavailable
from sage.live_index import may_compare_meanings
from sage.search.catalog import Catalog, DocumentEntry
from sage.search.sections import unpack_record
from sage.settings import Settings
from sage.status import meaning_info

if TYPE_CHECKING:
    from sage.semantic.published import PageEmbedder, PublishedMeaning

DAMAGED = "the vectors of a page in the cluster are damaged; publish again with --anew"
Fields = Mapping[str, Any]


class VectorWriter:
    """Gives pages their vectors before they are published, where the extra is installed."""

    def __init__(self, settings: Settings) -> None:
        """Raises:
        ModelUnavailable: `search.semantic` is on and the model cannot be used.
        """
        self._embedder: PageEmbedder | None = None
        if may_compare_meanings(settings):
            from sage.semantic.published import open_embedder

            self._embedder = open_embedder(settings)

    @property
    def model(self) -> str:
        """What makes the vectors; empty without any."""
        return self._embedder.made_by if self._embedder is not None else ""

    def remember(self, stored: Fields, model: str) -> None:
        """Take the vectors of a page as it was, if they can be used for what it is now."""
        if self._embedder is not None and model == self.model and VECTORS in stored:
            try:
                self._embedder.remember(bytes_from_column(stored[VECTORS][0]))
            except ValueError as error:
                raise Unavailable(DAMAGED) from error

    def added_to(self, lines: bytes) -> bytes:
        """The lines that write a page, with its vectors."""
        if self._embedder is None:
            return lines
        document = document_in(lines)
        (entry,) = entries_of([document])
        stored = unpack_record(base64.b64decode(document["record"]))
        return with_field(lines, VECTORS, bytes_to_column(self._embedder.embed(entry, stored)))


class VectorReader:
    """Hands what was published to what compares it in a replica."""

    def __init__(self, settings: Settings) -> None:
        """Raises:
        ModelUnavailable: `search.semantic` is on and the model cannot be used.
        """
        self._is_off = settings.search.semantic == "off"
        self.meaning: PublishedMeaning | None = None
        if may_compare_meanings(settings):
            from sage.semantic.published import open_published

            self.meaning = open_published(settings)

    def reads(self, model: str) -> bool:
        """Whether vectors of that model can be compared here."""
        return self.meaning is not None and model == self.meaning.made_by

    def meaning_of(self, models: Iterable[str]) -> "PublishedMeaning | None":
        """What compares pages that were published with some models; None where nothing can."""
        return self.meaning if any(map(self.reads, models)) else None

    def take(self, entry: DocumentEntry, stored: Fields) -> None:
        """Keep the vectors of a page."""
        if self.meaning is not None and VECTORS in stored:
            try:
                data = bytes_from_column(stored[VECTORS][0])
                self.meaning.take(entry.path, entry.stamp, data)
            except ValueError as error:
                raise Unavailable(DAMAGED) from error

    def keep_only(self, paths: Collection[str]) -> None:
        """Let go of the pages that are no longer served."""
        if self.meaning is not None:
            self.meaning.keep_only(paths)

    def info(self, catalog: Catalog, models: Collection[str]) -> MeaningInfo | None:
        """How many sections can be compared, and why not all; None where nobody wants any."""
        published = ", ".join(sorted(filter(None, models)))
        sections = catalog.section_count
        if self._is_off or (self.meaning is None and not published):
            return None
        if self.meaning is None:
            why = f"published with vectors of {published}; install SAGE with its extra `semantic`"
            return _unused(published, sections, why)
        told = meaning_info(self.meaning.state_of(catalog), sections)
        if "message" not in told and not self.meaning_of(models):
            why = "published without vectors; publish where the extra `semantic` is installed"
            if published:
                here = self.meaning.made_by
                why = f"published with vectors of {published}; {here} cannot be compared with them"
            return _unused(told["model"], sections, why)
        return told


def _unused(model: str, sections: int, why: str) -> MeaningInfo:
    return MeaningInfo(
        model=model, state="unavailable", sections=0, of=sections, size_kb=0.0, message=why
    )
