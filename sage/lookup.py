"""From a topic to the parts of documents it names, loading no more files than it must."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sage.deadline import Deadline
from sage.documents import Document
from sage.errors import NotFound, TimeoutExceeded
from sage.files import SourceFile
from sage.library import Library
from sage.reading import Part, under_heading, whole
from sage.topics import (
    documents_titled,
    files_named,
    nearest_headings,
    nearest_topics,
    sections_named,
    spellings,
)


@dataclass(frozen=True, slots=True)
class Loading:
    """The documents that were loaded in time, in reading order, and the files not reached."""

    documents: list[Document]
    unread: list[SourceFile]
    failed: list[SourceFile] = field(default_factory=list)
    """Those that the system would not let us read, this time."""


def load_all(library: Library, files: Sequence[SourceFile], deadline: Deadline) -> Loading:
    """Load files until the deadline passes."""
    documents: list[Document] = []
    unread: list[SourceFile] = []
    failed: list[SourceFile] = []
    for position, source in enumerate(files):
        if deadline.expired:
            unread = list(files[position:])
            break
        try:
            loaded = library.look_up(source, deadline)
        except TimeoutExceeded:  # another caller was still reading it
            unread = list(files[position:])
            break
        if loaded.document is not None:
            documents.append(loaded.document)
        elif loaded.passing:
            failed.append(source)
    rank = {layer: position for position, layer in enumerate(library.layers)}
    documents.sort(key=lambda document: (rank[document.layer], document.reading_order))
    return Loading(documents, unread, failed)


def find_parts(
    library: Library, files: Sequence[SourceFile], topic: str, deadline: Deadline
) -> tuple[Loading, list[Part]]:
    """The parts that a topic names among these files.

    Raises:
        NotFound: none; the message names the nearest topics or headings.
        TimeoutExceeded: the deadline passed before that could be known.
    """
    for load_named in (_load_by_path, _load_by_title):
        for wanted, below in spellings(topic):
            loading = load_named(library, files, wanted, deadline)
            parts = _parts(loading.documents, below)
            if parts or loading.unread or loading.failed:
                return loading, parts
            if below and loading.documents:
                raise NotFound(_unknown_heading(loading.documents[0], below))
    loading = load_all(library, files, deadline)
    if loading.failed:  # one of them may have that title
        return loading, []
    raise NotFound(_unknown_topic(loading.documents, topic))


def files_meant(files: Sequence[SourceFile], topic: str) -> list[SourceFile]:
    """The files that a topic may name, as far as that is known before any is read."""
    ways = (files_named(files, name) for name, _ in spellings(topic))
    return next(filter(None, ways), list(files))


def _load_by_path(
    library: Library, files: Sequence[SourceFile], name: str, deadline: Deadline
) -> Loading:
    return load_all(library, files_named(files, name), deadline)


def _load_by_title(
    library: Library, files: Sequence[SourceFile], name: str, deadline: Deadline
) -> Loading:
    # Titles and aliases are known only once every document has been read.
    loading = load_all(library, files, deadline)
    if loading.unread:
        raise TimeoutExceeded(deadline.message)
    return Loading(documents_titled(loading.documents, name), [])


def _parts(documents: Sequence[Document], heading: str) -> list[Part]:
    if not heading:
        return [whole(document) for document in documents]
    return [
        under_heading(document, position)
        for document in documents
        for position in sections_named(document, heading)
    ]


def _unknown_heading(document: Document, heading: str) -> str:
    near = ", ".join(nearest_headings(document, heading)) or "none"
    return f"{document.topic} has no heading {heading!r}; its headings: {near}"


def _unknown_topic(documents: Sequence[Document], topic: str) -> str:
    near = nearest_topics(documents, topic)
    if near:
        return f"nothing is called {topic!r}; nearest: {', '.join(near)}"
    return f'nothing is called {topic!r}; find it with sage_search(query="{topic}")'
