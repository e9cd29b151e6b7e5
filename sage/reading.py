"""What `sage_get_knowledge` reads: the documents that a topic names, in reading order, loaded
until the deadline passes. Fitting them into a token limit is the business of `fitting`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from sage.answers import KnowledgeAnswer, KnowledgeMetadata, Omitted
from sage.deadline import Deadline
from sage.documents.document import Document, Slice, reading_order, slug, under_heading, whole
from sage.documents.files import SourceFile
from sage.documents.library import Library
from sage.documents.problems import Problem
from sage.documents.source_roots import Listing, are_complete, files_of
from sage.documents.titles import Entry, Titled, files_with_heading, headings_of
from sage.documents.topics import (
    AskedTopic,
    anchor_asked,
    documents_titled,
    file_replacing,
    files_asked,
    nearest_headings,
    nearest_topics,
    sections_asked,
    ways_to_read,
)
from sage.errors import NotFound, SageError, TimeoutExceeded, counted
from sage.fitting import MAX_OMITTED_TOKENS, Reading, fit, most_counted
from sage.sanitize import status_notice
from sage.token_counter import TokenCounter

# Titles are read for so long and no longer: whoever mistypes a name must not wait for a timeout.
TITLE_MS = 1_000
# Headings only help to name the nearest: in a large base those of some pages.
HEADINGS_MS = 300
_MAX_STEPS = 8
# More pages than can be named among what was left out, each with eight tokens at least.
_NAMED = MAX_OMITTED_TOKENS // 8
# What is loaded has to be counted and put together as well, within the same deadline.
_LOAD_SHARE = 0.8


class PageEntry(Entry, Protocol):
    """A page as an index keeps it."""

    @property
    def is_index(self) -> bool: ...
    @property
    def order(self) -> float | None: ...
    @property
    def tokens(self) -> int: ...


class Room(NamedTuple):
    """How much may be read, and what is known of the pages before any is loaded."""

    tokens: int
    entries: Mapping[str, PageEntry] = {}


@dataclass(frozen=True, slots=True)
class TopicReading:
    """What a topic names, as far as it fits."""

    reading: Reading
    files_loaded: int
    overrides: tuple[str, ...]
    """The pages of it that other sources have, too, and which."""
    may_keep: bool

    def answer(
        self, layer: str, topic: str | None, load_time_ms: float, from_cache: bool
    ) -> KnowledgeAnswer:
        """The object that the tool and the command show."""
        reading = self.reading
        metadata = KnowledgeMetadata(
            layer=layer,
            topic=topic,
            files_loaded=self.files_loaded,
            load_time_ms=load_time_ms,
            from_cache=from_cache,
            token_count=reading.token_count,
            complete=reading.complete,
            omitted=[omitted.copy() for omitted in reading.omitted],
        )
        if self.overrides:
            metadata["overrides"] = list(self.overrides)
        return KnowledgeAnswer(content=reading.content, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Loading:
    """The documents that were loaded in time, in reading order, and the files not reached."""

    documents: list[Document]
    unread: list[SourceFile]
    failed: list[SourceFile] = field(default_factory=list)
    """Those that the system would not let us read, this time."""
    beyond: list[SourceFile] = field(default_factory=list)
    """Those for which there is no room, nor for their names among what is left out."""
    left_out: list[Problem] = field(default_factory=list)
    """Why others are not served."""


def read_topic(
    library: Library,
    listings: Sequence[Listing],
    topic: str | None,
    room: Room,
    counter: TokenCounter,
    deadline: Deadline,
) -> TopicReading:
    """What a topic names, or all of it.

    Raises:
        NotFound: nothing has that name; the message names the nearest.
        TimeoutExceeded: the deadline passed before that could be known.
    """
    library.titles.consult(room.entries)
    files = files_of(listings)
    slices: list[Slice] = []
    if not counter.ready_by(deadline):
        loading = Loading([], files_meant(files, topic) if topic else files)
    elif topic is None:
        loading = load_in_room(library, files, room, deadline)
        slices = [whole(document) for document in loading.documents]
    else:
        loading, slices = _find(library, listings, topic, room, deadline)
    slices = [replace(one, notice=notice(library, files, one.document, deadline)) for one in slices]
    missed = (*loading.failed, *loading.unread)
    unread = [_unread(source) for source in (*missed, *loading.beyond)]
    reading = fit(slices, unread, room.tokens, counter)
    if not are_complete(listings):
        reading = replace(reading, complete=False)
    loaded = {document.path for document in loading.documents}
    overriding = [one for one in files if one.overrides and one.path in loaded]
    overrides = tuple(f"{one.topic}: {', '.join(one.overrides)}" for one in overriding)
    may_keep = not missed and are_complete(listings)
    return TopicReading(reading, len(loading.documents), overrides, may_keep)


def load_in_room(
    library: Library, files: Sequence[SourceFile], room: Room, deadline: Deadline
) -> Loading:
    """Load files in reading order while there is room for them, or for their names."""
    wanted, beyond = _in_room(library, files, room)
    return replace(load_all(library, wanted, deadline.part(_LOAD_SHARE)), beyond=beyond)


def _in_room(
    library: Library, files: Sequence[SourceFile], room: Room
) -> tuple[Sequence[SourceFile], list[SourceFile]]:
    """The files to load, all of which nothing is known among them, and the others."""
    if len(files) <= _NAMED:
        return files, []
    rank = {layer: position for position, layer in enumerate(library.layers)}
    known: list[tuple[tuple[object, ...], SourceFile, int]] = []
    for source in files:
        entry = room.entries.get(source.path)
        if entry is not None and entry.stamp == source.stamp:
            order = rank[source.layer], reading_order(source.path, entry.is_index, entry.order)
            known.append((order, source, entry.tokens))
    known.sort(key=lambda one: one[0])
    left, fitting = most_counted(room.tokens), 0
    while fitting < len(known) and left >= 0:
        left -= known[fitting][2]
        fitting += 1
    beyond = [source for _, source, _ in known[fitting + _NAMED :]]
    paths = {source.path for source in beyond}
    return [source for source in files if source.path not in paths], beyond


def load_all(library: Library, files: Sequence[SourceFile], deadline: Deadline) -> Loading:
    """Load files until the deadline passes.

    Raises:
        TimeoutExceeded: the first of them did not come in time; whoever kept it is named.
    """
    documents: list[Document] = []
    unread: list[SourceFile] = []
    failed: list[SourceFile] = []
    left_out: list[Problem] = []
    for position, source in enumerate(files):
        try:
            deadline.check()
            loaded = library.look_up(source, deadline)
        except TimeoutExceeded:  # a cluster may be silent, or another caller was still reading it
            if not documents and not failed:
                raise  # to be told to read on would not help
            unread = list(files[position:])
            break
        if loaded.document is not None:
            documents.append(loaded.document)
        elif loaded.passing:
            failed.append(source)
        elif loaded.problem is not None:
            left_out.append(loaded.problem)
    rank = {layer: position for position, layer in enumerate(library.layers)}
    documents.sort(key=lambda document: (rank[document.layer], document.reading_order))
    return Loading(documents, unread, failed, left_out=left_out)


def load_in_time(
    library: Library, files: Sequence[SourceFile], deadline: Deadline
) -> tuple[Document, ...]:
    """All documents of some files.

    Raises:
        TimeoutExceeded: not all could be loaded by the deadline.
    """
    loading = load_all(library, files, deadline)
    if loading.unread:
        raise TimeoutExceeded(deadline.message)
    return tuple(loading.documents)


def find_slices(
    library: Library, files: Sequence[SourceFile], topic: str, room: Room, deadline: Deadline
) -> tuple[Loading, list[Slice]]:
    """The slices that a topic names among these files.

    Raises:
        NotFound: none; the message names the nearest topics or headings.
    """
    ways = ways_to_read(topic)
    left_out: list[Problem] = []
    for asked in ways:
        found = files_asked(files, asked)
        if asked.heading or asked.line:
            loading = load_all(library, found, deadline)
        else:
            loading = load_in_room(library, found, room, deadline)
        slices = list(_slices(loading.documents, asked))
        if slices or loading.unread or loading.failed:
            return loading, slices
        if loading.documents:
            raise NotFound(_unknown_heading(loading.documents, asked))
        left_out += loading.left_out
    anchored = _anchored(library, files, anchor_asked(topic), deadline)
    if anchored[1]:
        return anchored
    titled = Titled()
    for asked in ways[1:]:  # the first is the exact name of a file
        titled = library.titles.find(files, asked.name, deadline.earlier(TITLE_MS))
        loading = load_all(library, titled.files, deadline)
        documents = documents_titled(loading.documents, asked.name)
        slices = list(_slices(documents, asked))
        if slices or loading.unread or loading.failed:
            return Loading(documents, loading.unread, loading.failed), slices
        if documents:
            raise NotFound(_unknown_heading(documents, asked))
    if titled.failed:  # one of them may have that title
        return Loading([], [], titled.failed), []
    if left_out:
        raise NotFound(f"nothing is served as {topic!r}: {left_out[0]}")
    raise NotFound(_unknown_topic(library, files, topic, titled.unread, deadline))


def _anchored(
    library: Library, files: Sequence[SourceFile], anchor: str, deadline: Deadline
) -> tuple[Loading, list[Slice]]:
    """The sections of any page that have an id; none without one."""
    holding: list[SourceFile] = []
    if anchor:
        looking = deadline.earlier(TITLE_MS)
        read = library.headings(files, looking, anchor)
        holding = files_with_heading(files, anchor, read, looking)
    loading = load_all(library, holding, deadline)
    slices = [
        under_heading(document, position)
        for document in loading.documents
        for position, section in enumerate(document.sections)
        if section.anchor in (anchor, slug(anchor))
    ]
    meant = {one.document.path for one in slices}
    documents = [one for one in loading.documents if one.path in meant]
    return Loading(documents, loading.unread, loading.failed), slices


def files_meant(files: Sequence[SourceFile], topic: str) -> list[SourceFile]:
    """The files that a topic may name, as far as that is known before any is read."""
    ways = (files_asked(files, asked) for asked in ways_to_read(topic))
    return next(filter(None, ways), list(files))


def notice(
    library: Library, files: Sequence[SourceFile], document: Document, deadline: Deadline
) -> str:
    """What to know before relying on a page: nothing when it is in force."""
    replaced_by = document.meta.superseded_by
    if replaced_by:
        replaced_by = _in_force(library, files, document, deadline) or replaced_by
    return status_notice(document.meta.status, replaced_by)


def _in_force(
    library: Library, files: Sequence[SourceFile], document: Document, deadline: Deadline
) -> str:
    """The topic at the end of a chain of replacements; empty when it leads nowhere."""
    topic = ""
    current: Document | None = document
    for _ in range(_MAX_STEPS):
        if current is None or not current.meta.superseded_by:
            break
        source = file_replacing(files, current)
        if source is None or source.path == document.path:
            break
        topic = source.topic
        current = library.load(source, deadline)
    return topic


def _find(
    library: Library, listings: Sequence[Listing], topic: str, room: Room, deadline: Deadline
) -> tuple[Loading, list[Slice]]:
    try:
        return find_slices(library, files_of(listings), topic, room, deadline)
    except NotFound:
        if not are_complete(listings):
            deadline.check()  # what was not listed in time may have that name
        if any(listing.unseen for listing in listings):
            raise SageError("not every folder can be listed now; ask again") from None
        raise


def _unread(source: SourceFile) -> Omitted:
    topic = source.topic
    return Omitted(topic=topic, title=topic.rsplit("/", 1)[-1], tokens=None)


def _slices(documents: Sequence[Document], asked: AskedTopic) -> Iterator[Slice]:
    for document in documents:
        if asked.heading or asked.line:
            for position in sections_asked(document, asked):
                yield under_heading(document, position)
        else:
            yield whole(document)


def _unknown_heading(documents: Sequence[Document], asked: AskedTopic) -> str:
    heading = asked.heading or f"line {asked.line}"
    near = [topic for document in documents for topic in nearest_headings(document, heading)]
    named = documents[0].topic if len(documents) == 1 else f"none of the {len(documents)} pages"
    has = "has no" if len(documents) == 1 else "has a"
    return f"{named} {has} heading {heading!r}; nearest: {', '.join(near[:5]) or 'none'}"


def _unknown_topic(
    library: Library, files: Sequence[SourceFile], topic: str, unread: int, deadline: Deadline
) -> str:
    words = f"nothing is called {topic!r}"
    if unread:
        words += f" (the titles of {counted(unread, 'page')} are not read yet)"
    looking = deadline.earlier(HEADINGS_MS)
    headings = headings_of(files, library.headings(files, looking), looking)
    near = nearest_topics(files, library.titles.known(files), topic, headings)
    if near and not unread:
        return f"{words}; nearest: {', '.join(near)}"
    search = f'find it with sage_search(query="{topic}")'
    return f"{words}; nearest: {', '.join(near)}; or {search}" if near else f"{words}; {search}"
