"""Every page at one moment: found by its topic or path, and what follows from all of them.

One page is read by itself; what needs every page (links to a page, choices of a filter) is made
when somebody first asks for it. Both are kept until a file changes.
"""

import hashlib
import posixpath
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from urllib.parse import unquote

from sage.documents.document import Document
from sage.documents.files import SourceFile
from sage.documents.nearest import Named, nearest_named
from sage.documents.source_roots import Listing, files_of
from sage.knowledge import KnowledgeBase
from sage.notes.related import Relations
from sage.page.patience import deadline_of

_MARKDOWN = (".md", ".mdx", ".markdown", ".mdc")
_MAX_TARGET = 1_000


class ShownPages:
    """The pages of a knowledge base at one moment."""

    def __init__(self, knowledge: KnowledgeBase, listings: Sequence[Listing]) -> None:
        self._knowledge = knowledge
        self.listings = listings

    @cached_property
    def sources(self) -> Mapping[str, SourceFile]:
        """The file of each topic, in reading order of the layers."""
        return {source.topic: source for source in files_of(self.listings)}

    @cached_property
    def _topics(self) -> Mapping[str, str]:
        return {source.path: source.topic for source in self.sources.values()}

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """Every page in reading order, read; each has its own time."""
        found = [one for source in files_of(self.listings) if (one := self._read(source))]
        rank = {listing.layer: number for number, listing in enumerate(self.listings)}
        return tuple(sorted(found, key=lambda one: (rank[one.layer], one.reading_order)))

    @cached_property
    def overrides(self) -> Mapping[str, Sequence[str]]:
        """For the path of a page the sources that have one of its topic too."""
        return self._knowledge.overrides(self.listings) or {}

    @cached_property
    def by_topic(self) -> Mapping[str, Document]:
        return {document.topic: document for document in self.documents}

    def document(self, topic: str) -> Document | None:
        """One page; None when there is none or it cannot be read."""
        source = self.sources.get(topic)
        return self._read(source) if source else None

    def meant(self, text: str) -> Document | None:
        """The one page that somebody means by a topic, a path, a name or a title."""
        name = text.partition("#")[0].strip().strip("/")
        if not name:
            return None
        known = self.document(name) or self.document(self.topic_at(name) or "")
        if known is not None:
            return known
        wanted = name.casefold()
        called = [
            one
            for one in self.documents
            if wanted in (one.topic.casefold(), last_part(one.topic).casefold())
            or wanted == one.title.casefold()
        ]
        return called[0] if len(called) == 1 else None

    def near(self, text: str, most: int) -> list[str]:
        """The topics whose names or titles are closest to what somebody wrote."""
        names = [Named(last_part(one.topic), one.topic) for one in self.documents]
        titles = [Named(one.title, one.topic) for one in self.documents]
        return nearest_named([*names, *titles], last_part(text), most)

    def beside(self, topic: str, most: int) -> list[Document]:
        """The pages of the same folder, itself included."""
        folder = topic.rpartition("/")[0]
        near = [one for one in self.sources if one.rpartition("/")[0] == folder]
        found = [self.document(one) for one in near[:most]]
        return [one for one in found if one is not None]

    def topic_at(self, path: str) -> str | None:
        """The topic of the page that a link's path means, with or without its ending."""
        for place in (path, *(f"{path}{ending}" for ending in _MARKDOWN)):
            if place in self._topics:
                return self._topics[place]
        for name in ("index.md", "_index.md", "README.md"):
            if (inner := posixpath.join(path, name)) in self._topics:
                return self._topics[inner]
        return None

    @cached_property
    def links(self) -> Mapping[str, frozenset[str]]:
        """The topics that each page links to."""
        return {document.topic: self._links_of(document) for document in self.documents}

    @cached_property
    def linked_from(self) -> Mapping[str, Sequence[str]]:
        """The topics that link to each page."""
        found: dict[str, list[str]] = {}
        for topic, targets in self.links.items():
            for target in targets:
                found.setdefault(target, []).append(topic)
        return found

    @cached_property
    def relations(self) -> Relations:
        """What the pages have in common."""
        return Relations(self.documents)

    @cached_property
    def dated(self) -> Sequence[tuple[date, Document]]:
        """The pages that say when they were last updated, the oldest first."""
        dated = [(day, one) for one in self.documents if (day := _day(one.meta.last_updated))]
        return sorted(dated, key=lambda one: (one[0], one[1].topic))

    def choices(self, name: str) -> list[str]:
        """The values that a filter can take: types, tags, statuses or sources in use."""
        if name == "tag":
            values = {tag for document in self.documents for tag in document.meta.tags}
        elif name == "source":
            values = {document.source for document in self.documents}
        else:
            values = {str(getattr(document.meta, name)) for document in self.documents}
        return sorted(values - {""})

    def _read(self, source: SourceFile) -> Document | None:
        return self._knowledge.library.load(source, deadline_of(self._knowledge))

    def _links_of(self, document: Document) -> frozenset[str]:
        found = set()
        for raw in links_in(document.body):
            path = unquote(raw.partition("#")[0].partition("?")[0])
            if not path or ":" in path:
                continue
            folder = "" if path.startswith("/") else posixpath.dirname(document.path)
            topic = self.topic_at(posixpath.normpath(posixpath.join(folder, path.lstrip("/"))))
            if topic and topic != document.topic:
                found.add(topic)
        return frozenset(found)


class PageSource:
    """Gives the pages as they are now, loading again only when something changed."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._knowledge = knowledge
        self._lock = threading.Lock()
        self._seen: tuple[tuple[Listing, ...], str] = ((), "")
        self._made: tuple[str, ShownPages] | None = None

    def version(self) -> str:
        """What differs as soon as any file does."""
        knowledge = self._knowledge
        listings = knowledge.library.refresh(knowledge.settings.layers, deadline_of(knowledge))
        known, version = self._seen
        if known != listings:  # listings are equal only when they are the same objects
            version = _digest(listings)
            self._seen = (listings, version)
        return version

    def now(self) -> ShownPages:
        """The pages as they are now."""
        self.version()
        listings, version = self._seen
        with self._lock:
            if self._made is None or self._made[0] != version:
                self._made = (version, ShownPages(self._knowledge, listings))
            return self._made[1]


def _digest(listings: Sequence[Listing]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for listing in listings:
        for source in listing.files:
            line = f"{source.path}\0{source.stamp}{source.overrides}\n"
            digest.update(line.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def last_part(topic: str) -> str:
    """What a page is called in its folder."""
    return topic.rpartition("/")[2]


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def links_in(text: str) -> Iterator[str]:
    """The targets of inline links, found by one pass over the text."""
    at = text.find("](")
    while at >= 0:
        start = at + 2
        ends = (text.find(mark, start, start + _MAX_TARGET) for mark in (")", " ", "\n"))
        end = min((place for place in ends if place >= 0), default=-1)
        if end > start:
            yield text[start:end].strip("<>")
        at = text.find("](", start)
