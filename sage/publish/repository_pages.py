"""What a repository publishes: its pages, named for their source, each with the hash of all that is
kept of it, and what replicas need of its settings.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sage.cluster.page_record import page_hash
from sage.cluster.source_settings import SourceSettings
from sage.context.repository import repository_language
from sage.deadline import Deadline
from sage.documents.boilerplate import Footers, ending_keys, find_footers
from sage.documents.files import SourceFile
from sage.documents.library import body_in
from sage.documents.problems import Problem
from sage.documents.source_roots import files_of
from sage.errors import ConfigError, SageError, counted
from sage.git import find_repository
from sage.knowledge import KnowledgeBase
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.publish.describing import PageToPublish
from sage.publish.references import SourceReferences, address_beside_others
from sage.settings import Settings
from sage.values import OWN

Progress = Callable[[int, int], None]

_DIRTY = "-dirty"


class _Read(NamedTuple):
    """A page as it was read."""

    source: SourceFile
    data: bytes
    endings: tuple[str, ...]
    """Keys of the lines that may be a footer."""


@dataclass(frozen=True, slots=True)
class RepositoryPages:
    """All that one publish brings to the cluster."""

    by_path: Mapping[str, PageToPublish]
    footers: Footers
    """Endings that many pages of a layer share, which are not what a page says."""
    settings: Mapping[str, Any]
    """What replicas need of the settings of the repository."""
    content: str
    """The hash of all of it."""
    problems: Sequence[Problem]
    """What is not published as it is written."""
    commit: str
    """The commit that is checked out, with `-dirty` where a page is not as it is there; empty
    where there is none, or none that holds any of the pages."""


def size_of_pages(knowledge: KnowledgeBase) -> int:
    """The bytes of all pages, none of them read."""
    listings = knowledge.library.refresh(knowledge.settings.layers, Deadline())
    return sum(source.stamp.size for source in files_of(listings))


def pages_of(
    knowledge: KnowledgeBase, name: str, model: str, progress: Progress = lambda _done, _total: None
) -> RepositoryPages:
    """Read what a repository publishes.

    Args:
        name: that of its source.
        model: what makes the vectors of pages; empty without any.
        progress: told how many of all files are read.

    Raises:
        SageError: a page could not be read.
    """
    listings = knowledge.library.refresh(knowledge.settings.layers, Deadline())
    elsewhere = tuple(one.prefix or f"{one.folder}/" for one in knowledge.settings.further)
    left_out = (one for listing in listings for one in listing.problems)
    problems = [one for one in left_out if not one.path.startswith(elsewhere)]
    found: list[_Read] = []
    in_files: dict[str, bytes] = {}
    # What other sources have is published from where it is kept.
    own = [source for source in files_of(listings) if source.source == OWN]
    for done, source in enumerate(own):
        progress(done, len(own))
        read = knowledge.library.read(source)
        if read is None:
            raise SageError(f"{source.path} is being written; publish again")
        in_files[source.path] = read[0]
        body, wrong = body_in(source, read[0])
        problems += wrong
        if body is not None:
            found.append(_Read(source, read[0], ending_keys(body)))
    progress(len(own), len(own))
    references = SourceReferences(knowledge.library, [one.source for one in found], name)
    footers = find_footers((name, one.source.layer, one.endings) for one in found)
    pages: dict[str, PageToPublish] = {}
    for source, data, endings in found:
        named = _named(source, name)
        try:
            said = references.in_page(source, data)
        except ConfigError as error:
            problems.append(_as_written(source, error))
            said = data
        shared = footers.get((named.source, named.layer), frozenset()).intersection(endings)
        hashed = page_hash(said, named.layer, named.topic, shared, model)
        pages[named.path] = PageToPublish(named, said, hashed)
    settings = _shared(knowledge.settings, references)
    commit = _commit(knowledge.settings, in_files)
    problems = [one for one in problems if one.level != "note"]
    content = _content(pages, settings)
    return RepositoryPages(pages, footers, settings, content, problems, commit)


def refuse_nothing(root: Path, source: str, documents: int | None) -> None:
    """Take no empty folder for the wish to serve nothing: a sparse checkout has one too.

    Args:
        documents: how many pages of the source are served; None where it is not published yet.

    Raises:
        ConfigError: some are, or it would be a source that no command takes out again.
    """
    if documents is None:
        raise ConfigError(
            f"{root} holds no pages, and the source {source} is not published yet; look whether "
            "the checkout is complete and --root and --source are right, or begin it without "
            "pages with --allow-empty"
        )
    if documents:
        raise ConfigError(
            f"{root} holds no pages, and {counted(documents, 'page')} of {source} would no longer "
            "be served; look whether the checkout is complete and --root is right, or take them "
            "all away with --allow-empty"
        )


def is_committed(commit: str) -> bool:
    """Whether a commit is known and all pages were as it has them."""
    return bool(commit) and not commit.endswith(_DIRTY)


def _commit(settings: Settings, files: Mapping[str, bytes]) -> str:
    """The commit that pages are of, and whether they are as it has them."""
    repository = find_repository(settings.root)
    if repository is None:
        return ""
    above = settings.root.relative_to(repository.top).as_posix()
    prefix = "" if above == "." else f"{above}/"
    folders = [KNOWLEDGE_DIR, *(one for paths in settings.layer_paths.values() for one in paths)]
    is_inside = all(path.startswith(f"{KNOWLEDGE_DIR}/") for path in files)
    place = f"{prefix}{KNOWLEDGE_DIR}" if is_inside and len(folders) == 1 else above
    committed = {path.removeprefix(prefix): blob for path, blob in repository.blobs(place).items()}
    if not committed:
        return ""
    is_clean = all(
        committed.get(path) in (repository.blob_of(data), repository.blob_of(_as_stored(data)))
        for path, data in files.items()
    )
    pages = (path for path in committed if path.endswith(MARKDOWN_SUFFIXES))
    below = tuple(f"{folder}/" for folder in folders)
    is_whole = all(
        path in files or not path.startswith(below) or os.path.lexists(settings.root / path)
        for path in pages
    )
    return repository.head if is_clean and is_whole else f"{repository.head}{_DIRTY}"


def _as_stored(data: bytes) -> bytes:
    """A file as git keeps it where it is asked to give out lines that end with CR and LF."""
    return data.replace(b"\r\n", b"\n")


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
    address = address_beside_others(source.topic, name)
    return source._replace(path=f"{name}/{source.path}", address=address, source=name)


def _as_written(source: SourceFile, error: ConfigError) -> Problem:
    """That the name of a page is published which may be another one beside other sources."""
    message = f"superseded_by is published as it is written, write the whole topic: {error}"
    return Problem(source.path, "front-matter", message)


def _shared(settings: Settings, references: SourceReferences) -> dict[str, Any]:
    """What replicas need to know of a repository's settings."""
    said = SourceSettings(
        layers=settings.repository_layers or settings.layers,
        synonyms=settings.synonyms,
        recipes=references.in_recipes(settings.recipes),
        language=settings.context.language or repository_language(settings.root),
        stale_months=settings.check.stale_months,
    )
    return said.to_json()
