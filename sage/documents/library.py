"""The live set of documents: every call sees the files as they are now.

A stat scan per call finds what changed; only that is read and parsed again. A file in the middle
of being written keeps its last good copy until it is quiet.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sage.cache import Cache
from sage.deadline import Clocks, Deadline
from sage.documents.document import Document, body_of, parse_document
from sage.documents.exported import EXPORTED, is_exported, without_export
from sage.documents.files import Escape, SourceFile, Stamp, may_pass
from sage.documents.problems import Problem, problem_on
from sage.documents.source_roots import Listing, Listings, open_sources
from sage.documents.titles import ReadText, Titles
from sage.documents.unserved import Unserved, left_out
from sage.errors import TimeoutExceeded
from sage.paths import KNOWLEDGE_DIR
from sage.settings import Settings
from sage.sources import Source
from sage.values import OWN

# Editors that truncate and write leave a file torn for a moment. One that has been quiet for this
# long was never seen torn in 43,000 reads of such saves.
QUIET_SECONDS = 0.05
# On a busy machine a writer may be halted for longer between truncating a file and writing it.
EMPTY_SECONDS = 1.0
_TRIES = 8
MAX_KEPT_BYTES = 32_000_000
"""What documents kept in memory may take; a base that has more reads the rest again."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as it was read: its document, or the problem in its place."""

    stamp: Stamp
    digest: bytes
    document: Document | None
    problem: Problem | None = None
    passing: bool = False
    """Whether the problem may be over by the next call: what lacks it now is not complete."""


class PageStore(Protocol):
    """Where the pages of a base lie, when they are no files of its root."""

    @property
    def settings(self) -> Settings:
        """The settings that they were published with last."""

    def narrowed(self, settings: Settings) -> Settings:
        """Settings for some layers and sources, without what the others say."""

    def follow(self, deadline: Deadline) -> None:
        """See what is published now, while nobody asks."""

    def refresh(self, layers: Sequence[str], deadline: Deadline) -> tuple[Listing, ...]:
        """What the layers hold, all at the same moment."""

    def read(self, source: SourceFile, deadline: Deadline) -> tuple[bytes, Stamp]:
        """A listed page and its stamp.

        Raises:
            OSError: it is not there any more.
        """

    def headings(self, files: Sequence[SourceFile], deadline: Deadline, anchor: str) -> ReadText:
        """Reads the headings of listed pages, as many as can be fetched together in time; with an
        id those of all pages that have a heading with it."""


class Library:
    """Lists and loads the documents of one knowledge base. Thread-safe."""

    def __init__(
        self, settings: Settings, clocks: Clocks | None = None, pages: PageStore | None = None
    ) -> None:
        """Args:
        pages: where the pages lie; None means files of the root.
        """
        self.settings = settings
        self._pages = pages
        self._clocks = clocks or Clocks()
        self._trusted: Cache[Loaded] = Cache(
            MAX_KEPT_BYTES, settings.cache.ttl_seconds, self._clocks.monotonic, _kept_bytes
        )
        self._sources = open_sources(settings) if pages is None else {}
        self._listings = Listings(self._sources, self._forget_gone)
        self.refresh = pages.refresh if pages is not None else self._listings.refresh
        """What the layers hold at this moment."""
        self.titles = Titles(self._open)
        self._last_good: dict[str, Loaded] = {}
        self._last_good_bytes = 0
        self._lock = threading.Lock()

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers in the order in which they are read."""
        return self.settings.layers

    def sources(self) -> list[tuple[Source, str]]:
        """The sources, nearest first, each with the reason why it cannot be served now."""
        if self._pages is not None:
            return [(source, source.fault) for source in self.settings.served]
        return [(root.source, root.fault) for root in self._sources.values()]

    @property
    def is_published(self) -> bool:
        """Whether the pages come from elsewhere, with settings that change meanwhile."""
        return self._pages is not None

    def follow(self, deadline: Deadline) -> None:
        """See what is published now; files are looked at by each call."""
        if self._pages is not None:
            self._pages.follow(deadline)

    @property
    def current_settings(self) -> Settings:
        """The settings as they are published now; as long as they stay, the same object.

        Whoever may see some layers only is never given those of all.
        """
        if self._pages is None or self.settings.is_narrowed:
            return self.settings
        return self._pages.settings

    def narrowed_settings(self, settings: Settings) -> Settings:
        """Settings for some layers and sources as they are now, without what the others say."""
        return settings if self._pages is None else self._pages.narrowed(settings)

    @property
    def has_place(self) -> bool:
        """Whether where the pages lie can be seen now."""
        return self._pages is not None or self.settings.has_folder

    def expect_calls(self) -> None:
        """Be ready for many calls, as a server is and a command is not."""
        for root in self._sources.values():
            root.expect_calls()

    def load(self, source: SourceFile, deadline: Deadline) -> Document | None:
        """The document of a listed file; None when it cannot be served."""
        return self.look_up(source, deadline).document

    def look_up(self, source: SourceFile, deadline: Deadline) -> Loaded:
        """A listed file as it is now, read again only when its stamp changed."""
        known = self._known(source)
        if known is not None:
            return known
        loaded, _ = self._trusted.remember(
            (source.path, source.stamp),
            # Whoever waited here for another thread's reading finds it done.
            lambda: (self._known(source) or self._read(source, deadline), False),
            deadline,
        )
        return loaded

    def text(self, source: SourceFile, deadline: Deadline | None = None) -> str:
        """A listed file as it is written; empty when it cannot be read now."""
        try:
            if self._pages is not None:
                deadline = deadline or Deadline(self.settings.limits.call_timeout_ms)
                return decoded(self._pages.read(source, deadline)[0])
            read = self.read(source)
            return decoded(read[0]) if read else ""
        except (OSError, ValueError):
            return ""

    def headings(
        self, files: Sequence[SourceFile], deadline: Deadline, anchor: str = ""
    ) -> ReadText:
        """Reads the headings of files, among others; with an id of those that have it at least."""
        return self.text if self._pages is None else self._pages.headings(files, deadline, anchor)

    def problems(self, listings: Iterable[Listing], deadline: Deadline) -> list[Problem]:
        """Everything that is wrong with the listed files, the unreadable ones included."""
        found: list[Problem] = []
        for listing in listings:
            found += listing.problems
            for source in listing.files:
                deadline.check()
                loaded = self.look_up(source, deadline)
                found += loaded.document.problems if loaded.document else ()
                found += [loaded.problem] if loaded.problem else []
        return found

    def known_problems(
        self,
        listings: Iterable[Listing],
        indexed: Mapping[str, tuple[Stamp, Sequence[str]]],
        deadline: Deadline,
    ) -> tuple[list[Problem], int]:
        """What is wrong as far as the deadline allows to know, and how many pages are unread.

        Args:
            indexed: what was wrong with a page when it had that stamp.
        """
        found: list[Problem] = []
        unread = 0
        if self._pages is not None:
            return found, unread  # whoever put them there was told
        for listing in listings:
            found += listing.problems
            for source in listing.files:
                stamp, problems = indexed.get(source.path, (None, ()))
                if stamp == source.stamp:
                    found += (problem_on(source.path, problem) for problem in problems)
                    continue
                loaded = self._known(source)
                if loaded is None and not deadline.expired:
                    loaded = self._look_up_by(source, deadline)
                if loaded is None:
                    unread += 1
                    continue
                found += loaded.document.problems if loaded.document else ()
                found += [loaded.problem] if loaded.problem else []
        return found, unread

    def unserved(self, problems: Iterable[Problem], deadline: Deadline) -> list[Unserved]:
        """What lies in the knowledge folder and is not served, by folder and reason.

        Whoever may see only some layers is told nothing: the others would be among it.
        """
        own = self._sources.get(OWN)
        if self.settings.is_narrowed or own is None or self._pages is not None:
            return []
        folders = [place.folder for layer in own.source.layers for place in own.places.of(layer)]
        served = [one.split("/")[1] for one in folders if one.startswith(f"{KNOWLEDGE_DIR}/")]
        return left_out(own.source.root, served, own.rules.ignores, problems, deadline)

    def read(self, source: SourceFile) -> tuple[bytes, Stamp] | None:
        """The bytes of a listed file and their stamp; None when it is being written.

        Raises:
            OSError: it cannot be opened, or lies outside of its source.
        """
        limit = self.settings.limits.max_file_bytes
        return self._sources[source.source].read(source.path, limit)

    def _open(self, source: SourceFile) -> int:
        if self._pages is not None:
            raise FileNotFoundError(source.path)  # its names are known, or it is there no longer
        return self._sources[source.source].open(source.path)

    def _look_up_by(self, source: SourceFile, deadline: Deadline) -> Loaded | None:
        try:
            return self.look_up(source, deadline)
        except TimeoutExceeded:
            return None

    def _known(self, source: SourceFile) -> Loaded | None:
        known = self._trusted.peek(source.path)
        return known if known is not None and known.stamp == source.stamp else None

    def _read(self, source: SourceFile, deadline: Deadline) -> Loaded:
        """Read a file that is new or changed, waiting for a writer to finish."""
        for _ in range(_TRIES):
            try:
                read = self._read_once(source, deadline)
            except OSError as error:
                return self._unreadable(source, error)
            if read is not None and self._is_settled(source, read[1]):
                return self._accept(source, *read)
            if deadline.expired:
                break
            self._clocks.sleep(QUIET_SECONDS)
        return self._unsettled(source)

    def _read_once(self, source: SourceFile, deadline: Deadline) -> tuple[bytes, Stamp] | None:
        if self._pages is not None:
            return self._pages.read(source, deadline)
        return self.read(source)

    def _is_settled(self, source: SourceFile, stamp: Stamp) -> bool:
        before = self._last_good.get(source.path)
        if before is not None and not stamp.size and before.stamp.ctime_ns == stamp.ctime_ns:
            # ext4 empties a file before it touches its times: it is being truncated.
            return not before.stamp.size
        return self._is_quiet(stamp)

    def _is_quiet(self, stamp: Stamp) -> bool:
        age = self._clocks.now() - stamp.ctime_ns / 1e9
        wanted = QUIET_SECONDS if stamp.size else EMPTY_SECONDS
        # A ctime far ahead of our clock (a network drive's) says nothing about the last write.
        return age >= wanted or age < -wanted

    def _accept(self, source: SourceFile, data: bytes, stamp: Stamp) -> Loaded:
        digest = hashlib.blake2b(data, digest_size=16).digest()
        before = self._last_good.get(source.path)
        if before is not None and before.digest == digest:
            loaded = Loaded(stamp, digest, before.document, before.problem)
        else:
            loaded = parsed(source, data, stamp, digest)
        with self._lock:
            self._forget(source.path)
            self._last_good[source.path] = loaded
            self._last_good_bytes += _kept_bytes(loaded)
            while self._last_good_bytes > MAX_KEPT_BYTES:
                self._forget(next(iter(self._last_good)))
        self._trusted.put(source.path, loaded)
        if loaded.document is not None:
            self.titles.learn(loaded.document, stamp)
        return loaded

    def _forget_gone(self, paths: Iterable[str]) -> None:
        with self._lock:
            for path in paths:
                self._forget(path)

    def _forget(self, path: str) -> None:
        known = self._last_good.pop(path, None)
        self._last_good_bytes -= _kept_bytes(known) if known else 0

    def _unsettled(self, source: SourceFile) -> Loaded:
        """Serve the last good copy; the listing goes stale so that the next call tries again."""
        self._listings.distrust(source.layer)
        before = self._last_good.get(source.path)
        if before is not None:
            return before
        problem = Problem(source.path, "being-written", "is being written; ask again in a moment")
        return Loaded(source.stamp, b"", None, problem, passing=True)

    def _unreadable(self, source: SourceFile, error: OSError) -> Loaded:
        if not isinstance(error, Escape):
            self._listings.distrust(source.layer)  # it may be over by the next call
        if isinstance(error, FileNotFoundError):
            return Loaded(source.stamp, b"", None)  # deleted after the scan: no longer there
        reason = error.strerror or str(error)
        problem = Problem(source.path, "unreadable", f"cannot be read: {reason}")
        return Loaded(source.stamp, b"", None, problem, may_pass(error))


def _kept_bytes(loaded: Loaded) -> int:
    """Roughly what a document takes in memory: its text, its sections and their counts."""
    document = loaded.document
    return 2_000 + (2 * len(document.body) + 1_500 * len(document.sections) if document else 0)


def parsed(source: SourceFile, data: bytes, stamp: Stamp, digest: bytes) -> Loaded:
    """The document in the bytes of a page, or the problem in its place."""
    text = _page_text(source, data)
    if isinstance(text, Problem):
        return Loaded(stamp, digest, None, text)
    document = parse_document(text, source.path, source.layer, source.topic, source.source)
    return Loaded(stamp, digest, document)


def body_in(source: SourceFile, data: bytes) -> tuple[str | None, Sequence[Problem]]:
    """The body of the document in the bytes of a page, None when there is none, and what is wrong.

    That of `parsed` without its sections: nothing below the front matter is taken apart.
    """
    text = _page_text(source, data)
    return (None, (text,)) if isinstance(text, Problem) else body_of(text, source.path)


def _page_text(source: SourceFile, data: bytes) -> str | Problem:
    if is_exported(data):
        return Problem(source.path, *EXPORTED, level="note")
    try:
        return without_export(decoded(data))
    except ValueError as error:
        return Problem(source.path, "not-text", f"left out: {error}")


def decoded(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 that says so.

    Raises:
        ValueError: with the reason and how to fix it.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data:
        raise ValueError("it holds NUL bytes, so it is not text")
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"byte {error.start} is not {encoding.upper()}; save the file as UTF-8"
        ) from error
    if "\0" in text:  # UTF-32 begins with the mark of UTF-16
        raise ValueError("it holds NUL characters; save the file as UTF-8")
    return text
