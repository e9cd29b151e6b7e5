"""Pages as the cluster takes them; many are made by several processes.

To describe a page takes several times as long as it takes the cluster to write it. A process that
describes is started for nothing else, reads what it is given from its standard input, and ends with
the one that started it, however that ended.
"""

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any, NamedTuple, cast

from sage.cluster.page_record import PageWords, content_stamp, put_lines, to_document
from sage.cluster.schema import page_id
from sage.cluster.words import WordCount
from sage.documents.boilerplate import Footers
from sage.documents.files import SourceFile
from sage.documents.library import decoded, parsed
from sage.errors import SageError
from sage.search.indexing import describe
from sage.terms.analysis import Analyzer, stem_of
from sage.token_counter import RememberingCounter, TokenCounter

logger = logging.getLogger("sage.cluster")

MANY_BYTES = 2_000_000
"""Texts that are worth the start of other processes: about a second's work."""
_MOST_PROCESSES = 8
_TOGETHER_BYTES = 150_000
"""Texts that a process describes before it answers."""
_ENDED = "a process that described pages ended; publish again"
_WORK = "from sage.publish.describing import work; work()"
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
        self, footers: Footers, generation: int, counter: TokenCounter | None = None
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
            try:
                document = parsed(source, data, stamp, b"").document
                if document is None:
                    raise ValueError("it was a page when it was read")
                described = describe(
                    document, stamp, self._footers, self._analyzer, self._counter.count_slice
                )
                page = to_document(described, decoded(data), hashed, self._generation)
            except Exception as error:  # in another process nobody else knows which page it was
                logger.exception("%s could not be described", source.path)
                raise SageError(
                    f"{source.path} cannot be published ({type(error).__name__}: {error}); leave "
                    "it out with `ignore` in sage.yaml, and tell those who make SAGE of it"
                ) from error
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
            made: PagesForCluster | str
            try:
                made = describer.describe(pages) if pages else describer.words()
            except SageError as error:
                made = str(error)
            pickle.dump(made, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
    except (EOFError, BrokenPipeError):
        return


def _given() -> Any:
    return pickle.load(sys.stdin.buffer)  # noqa: S301 - only whoever started it writes there


class Describing:
    """Describes pages here or, where they are many, in processes that it starts and ends."""

    def __init__(self) -> None:
        self._processes: list[_Process] = []

    def start(self, size: int) -> None:
        """Let processes get ready for so many bytes of pages, if these are worth it.

        They take half a second: whoever has to read the pages first starts them before.
        """
        count = min(_cores(), _MOST_PROCESSES)
        if size >= MANY_BYTES and count > 1 and not self._processes:
            for _ in range(count):
                self._processes.append(_Process())

    def described(
        self, pages: Sequence[PageToPublish], footers: Footers, generation: int
    ) -> Iterator[PagesForCluster]:
        """All pages as the cluster takes them, in their order, some at a time, then their words."""
        self.start(sum(len(page.data) for page in pages))
        if not self._processes:
            describer = Describer(footers, generation)
            yield from map(describer.describe, _batches(pages))
            yield describer.words()
            return
        with ExitStack() as stack:
            stack.callback(self.close)
            idle: SimpleQueue[_Process] = SimpleQueue()
            for process in self._processes:
                process.tell(footers, generation)
                idle.put(process)
            count = len(self._processes)
            threads = ThreadPoolExecutor(count, "sage-describing")
            # Before the pipes are closed: nobody may be waiting at one.
            stack.callback(threads.shutdown, cancel_futures=True)
            waiting: deque[Future[PagesForCluster]] = deque()
            for batch in _batches(pages):
                waiting.append(threads.submit(_ask, idle, batch))
                if len(waiting) > 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            for process in self._processes:
                yield process.ask([])

    def close(self) -> None:
        """End the processes, if any were started."""
        while self._processes:
            self._processes.pop().close()


def _batches(pages: Sequence[PageToPublish]) -> Iterator[list[PageToPublish]]:
    batch: list[PageToPublish] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.data)
        if size >= _TOGETHER_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Process:
    """Another process that describes pages."""

    def __init__(self) -> None:
        # Not by multiprocessing: it would import all that this process began with, every time.
        self._process = subprocess.Popen(  # noqa: S603 - this program and words of our own
            [sys.executable, "-P", "-c", _WORK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._given = cast("IO[bytes]", self._process.stdin)
        self._made = cast("IO[bytes]", self._process.stdout)

    def tell(self, footers: Footers, generation: int) -> None:
        """Say what holds for all pages.

        Raises:
            SageError: it ended.
        """
        self._say((footers, generation))

    def ask(self, batch: list[PageToPublish]) -> PagesForCluster:
        """Some pages as the cluster takes them; for none the words of all.

        Raises:
            SageError: it ended, or says that a page cannot be described.
        """
        self._say(batch)
        try:
            made: PagesForCluster | str = pickle.load(self._made)  # noqa: S301 - from our own process
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise SageError(_ENDED) from error
        if isinstance(made, str):
            raise SageError(made)
        return made

    def close(self) -> None:
        """Let it end."""
        with suppress(OSError):  # it may have ended before it read all
            self._given.close()
        self._made.close()
        self._process.wait()

    def _say(self, words: object) -> None:
        try:
            pickle.dump(words, self._given, pickle.HIGHEST_PROTOCOL)
            self._given.flush()
        except OSError as error:
            raise SageError(_ENDED) from error


def _ask(idle: "SimpleQueue[_Process]", batch: list[PageToPublish]) -> PagesForCluster:
    process = idle.get()
    try:
        return process.ask(batch)
    finally:
        idle.put(process)


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
