"""Pages as the cluster keeps them; many are made by several processes.

To describe a page takes several times as long as it takes the cluster to write it. A process that
describes ends with the one that started it, however that ended: it reads from a pipe to it.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from sage.cluster.page_record import content_stamp, to_document, words_of
from sage.cluster.words import WordCount
from sage.documents.document import Document
from sage.documents.files import SourceFile
from sage.documents.library import decoded, parsed
from sage.errors import SageError
from sage.search.indexing import describe
from sage.terms.analysis import Analyzer
from sage.token_counter import TokenCounter

MANY_BYTES = 2_000_000
"""Texts that are worth the start of other processes: about a second's work."""
_MOST_PROCESSES = 8
_TOGETHER = 50
"""Pages that a process describes before it answers."""


@dataclass(frozen=True, slots=True)
class PageToPublish:
    """A page to be published."""

    document: Document
    data: bytes
    hashed: str

    @property
    def raw(self) -> "RawPage":
        """What another process needs to make the same of it."""
        page = self.document
        source = SourceFile(
            page.path, page.layer, content_stamp(self.data), page.topic, page.source
        )
        return RawPage(source, self.data, self.hashed)


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page as it was read."""

    source: SourceFile
    data: bytes
    hashed: str


@dataclass(frozen=True, slots=True)
class PagesForCluster:
    """Some pages as the cluster keeps them, and their words."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    words: dict[str, WordCount] = field(default_factory=dict)
    """By layer."""


class Describer:
    """Describes pages of one generation."""

    def __init__(self, footers: frozenset[str], generation: int) -> None:
        self._footers = footers
        self._generation = generation
        self._analyzer = Analyzer()
        self._counter = TokenCounter()

    def describe(self, pages: Iterable[RawPage]) -> PagesForCluster:
        """Some pages as the cluster keeps them."""
        made = PagesForCluster()
        for page in pages:
            source = page.source
            document = parsed(source, page.data, source.stamp, b"").document
            if document is None:
                continue  # it was one when it was read: this cannot be
            described = describe(
                document, source.stamp, self._footers, self._analyzer, self._counter.count_slice
            )
            made.documents.append(
                to_document(described, decoded(page.data), page.hashed, self._generation)
            )
            made.words.setdefault(source.layer, WordCount()).add(words_of(described[1]))
        return made


def described(
    pages: Sequence[PageToPublish], footers: frozenset[str], generation: int
) -> Iterator[PagesForCluster]:
    """All pages as the cluster keeps them, in their order, some at a time."""
    left = iter(pages)
    batches = iter(lambda: [page.raw for page in islice(left, _TOGETHER)], [])
    count = min(_cores(), _MOST_PROCESSES)
    if count < 2 or sum(len(page.data) for page in pages) < MANY_BYTES:
        yield from map(Describer(footers, generation).describe, batches)
        return
    with ExitStack() as stack:
        idle: SimpleQueue[Connection] = SimpleQueue()
        for _ in range(count):
            idle.put(stack.enter_context(_process(footers, generation)))
        threads = ThreadPoolExecutor(count, "sage-describing")
        # Before the pipes are closed: nobody may be waiting at one.
        stack.callback(threads.shutdown, cancel_futures=True)
        waiting: deque[Future[PagesForCluster]] = deque()
        for batch in batches:
            waiting.append(threads.submit(_ask, idle, batch))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _ask(idle: "SimpleQueue[Connection]", batch: list[RawPage]) -> PagesForCluster:
    connection = idle.get()
    try:
        connection.send(batch)
        made: PagesForCluster = connection.recv()
        return made
    except (EOFError, OSError) as error:
        raise SageError("a process that described pages ended; publish again") from error
    finally:
        idle.put(connection)


@contextmanager
def _process(footers: frozenset[str], generation: int) -> Iterator[Connection]:
    """The pipe to a new process that describes pages."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, footers, generation), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join()


def _work(connection: Connection, footers: frozenset[str], generation: int) -> None:
    """Describe what comes through a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    describer = Describer(footers, generation)
    while True:
        try:
            batch = connection.recv()
        except EOFError:
            return
        connection.send(describer.describe(batch))


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
