"""From the bytes of pages to lines that the cluster takes: what a process that describes does.

It is started for nothing else, reads what it is given from its standard input and ends with it.
"""

import gc
import os
import pickle
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sage.cluster.bulk_lines import put_lines
from sage.cluster.page_record import PageWords, content_stamp, to_document
from sage.cluster.schema import page_id
from sage.cluster.words import WordCount
from sage.documents.files import SourceFile
from sage.documents.library import decoded, parsed
from sage.search.indexing import describe
from sage.terms.analysis import Analyzer, stem_of
from sage.token_counter import RememberingCounter, TokenCounter

_NEW_OBJECTS = 100_000
"""Pages come and go and hold no circles: to look for some after every 700 objects takes long."""


class PageToPublish(NamedTuple):
    """A page as it was read."""

    source: SourceFile
    data: bytes
    hashed: str


@dataclass(frozen=True, slots=True)
class PagesForCluster:
    """Some pages as the cluster takes them."""

    lines: list[bytes] = field(default_factory=list)
    """Of each page, in their order."""
    sections: int = 0
    words: dict[str, WordCount] = field(default_factory=dict)
    """By layer: those of all pages, when the last of them is described."""


class Describer:
    """Describes pages of one generation."""

    def __init__(
        self, footers: frozenset[str], generation: int, counter: TokenCounter | None = None
    ) -> None:
        self._footers = footers
        self._generation = generation
        self._analyzer = Analyzer()
        self._counter = RememberingCounter(counter or TokenCounter())
        self._words: dict[str, WordCount] = {}

    def describe(self, pages: Iterable[PageToPublish]) -> PagesForCluster:
        """Some pages as the cluster takes them."""
        lines: list[bytes] = []
        words: dict[str, list[PageWords]] = {}
        sections = 0
        for source, data, hashed in pages:
            stamp = content_stamp(data)
            document = parsed(source, data, stamp, b"").document
            if document is None:
                continue  # it was one when it was read: this cannot be
            described = describe(
                document, stamp, self._footers, self._analyzer, self._counter.count_slice
            )
            page = to_document(described, decoded(data), hashed, self._generation)
            lines.append(put_lines(page_id(document.path), page.document, page.columns))
            sections += described[0].indexed_sections
            words.setdefault(source.layer, []).append(page.words)
        for layer, on_pages in words.items():
            self._words.setdefault(layer, WordCount()).add(on_pages)
        return PagesForCluster(lines, sections)

    def words(self) -> PagesForCluster:
        """No page, but the words of all that were described."""
        return PagesForCluster(words=self._words)


def work() -> None:
    """Describe what comes from the standard input until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    counter = TokenCounter()
    counter.count(stem_of("ready"))  # both load tables: that takes as long as the first pages do
    try:
        footers, generation = _given()
        describer = Describer(footers, generation, counter)
        while True:
            pages = _given()
            made = describer.describe(pages) if pages else describer.words()
            pickle.dump(made, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
    except (EOFError, BrokenPipeError):
        return


def _given() -> Any:
    return pickle.load(sys.stdin.buffer)  # noqa: S301 - only whoever started it writes there
