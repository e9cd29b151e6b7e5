"""What a repository publishes: its pages, named for their source, each with the hash of all that is
kept of it, and what replicas need of its settings.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sage.cluster.describer import PageToPublish
from sage.cluster.page_record import page_hash
from sage.context.repository import repository_language
from sage.deadline import Deadline
from sage.documents.boilerplate import ending_keys, find_footers
from sage.documents.files import SourceFile
from sage.documents.library import body_in
from sage.documents.source_roots import files_of
from sage.errors import SageError
from sage.git import find_repository
from sage.knowledge import KnowledgeBase
from sage.settings import Settings
from sage.values import OWN

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RepositoryPages:
    """All that one publish brings to the cluster."""

    by_path: Mapping[str, PageToPublish]
    footers: frozenset[str]
    """Endings that many pages share, which are not what a page says."""
    settings: Mapping[str, Any]
    """What replicas need of the settings of the repository."""
    content: str
    """The hash of all of it."""
    commit: str
    """The commit that is checked out; empty outside of a repository."""


def pages_of(knowledge: KnowledgeBase, name: str, model: str) -> RepositoryPages:
    """Read what a repository publishes.

    Args:
        name: that of its source.
        model: what makes the vectors of pages; empty without any.

    Raises:
        SageError: a page could not be read.
    """
    listings = knowledge.library.refresh(knowledge.settings.layers, Deadline())
    found: list[tuple[SourceFile, bytes, tuple[str, ...]]] = []
    for source in files_of(listings):
        if source.source != OWN:
            continue  # it is published from where it is kept
        read = knowledge.library.read(source)
        if read is None:
            raise SageError(f"{source.path} is being written; publish again")
        named = _named(source, name)
        body = body_in(named, read[0])
        if body is not None:
            found.append((named, read[0], ending_keys(body)))
    footers = find_footers(endings for _, _, endings in found)
    pages: dict[str, PageToPublish] = {}
    for named, data, endings in found:
        shared = footers.intersection(endings)
        hashed = page_hash(data, named.layer, named.topic, shared, model)
        pages[named.path] = PageToPublish(named, data, hashed)
    settings = _shared(knowledge.settings)
    repository = find_repository(knowledge.settings.root)
    commit = repository.head if repository else ""
    return RepositoryPages(pages, footers, settings, _content(pages, settings), commit)


def _content(pages: Mapping[str, PageToPublish], settings: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(pages):
        digest.update(f"{path}\0{pages[path].hashed}\0".encode())
    digest.update(repr(sorted(settings.items())).encode())
    return digest.hexdigest()


def _named(source: SourceFile, name: str) -> SourceFile:
    """A file as it is called beside those of other sources."""
    if name == OWN:
        return source
    layer, _, rest = source.topic.partition("/")
    address = f"{layer}/{name}/{rest}"
    return source._replace(path=f"{name}/{source.path}", address=address, source=name)


def _shared(settings: Settings) -> dict[str, Any]:
    """What replicas need to know of a repository's settings."""
    return {
        "layers": list(settings.repository_layers or settings.layers),
        "synonyms": {word: list(others) for word, others in settings.synonyms.items()},
        "recipes": settings.recipes,
        "language": settings.context.language or repository_language(settings.root),
        "stale_months": settings.check.stale_months,
    }
