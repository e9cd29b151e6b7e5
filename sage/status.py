"""What `sage_info` answers: what is served, and whether anything is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sage import __version__
from sage.answers import (
    CacheInfo,
    IndexInfo,
    InfoAnswer,
    KnowledgeBaseInfo,
    LayerInfo,
    MeaningInfo,
    ProblemInfo,
    ProblemsInfo,
    SourceInfo,
    UnservedInfo,
)
from sage.deadline import Deadline
from sage.documents.files import SourceFile
from sage.documents.library import Library
from sage.documents.problems import Problem
from sage.documents.source_roots import Listing
from sage.documents.unserved import Unserved
from sage.errors import ConfigError, TimeoutExceeded, Unavailable, counted
from sage.paths import KNOWLEDGE_DIR
from sage.settings import DEFAULT_LAYERS, Settings
from sage.sources import Source
from sage.token_counter import TokenCounter

if TYPE_CHECKING:
    from sage.search.catalog import DocumentEntry
    from sage.search.engine import IndexState
    from sage.semantic.meaning import MeaningState

# A state is told within a second: so long for the names, so long for each look into pages.
LISTING_MS = 500
READING_MS = 200
PATIENT_MS = 5_000
"""For whoever sets no limit: a person at a terminal."""
SHOWN_PROBLEMS = 5
SHOWN_UNSERVED = 20
SLOW = "the file system does not answer in time; what is shown may lack something"


@dataclass(frozen=True, slots=True)
class Size:
    """How much a layer holds."""

    sections: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The measurements from which the answer is made."""

    layers: Sequence[str]
    listings: Mapping[str, Listing]
    """Those that could be made in time."""
    problems: Sequence[Problem]
    """What is not served as written; what was left out on purpose is not in it."""
    unread: int
    """Pages that were not looked at for problems yet."""
    sizes: Mapping[str, Size]
    """Of the layers for which they are known."""
    unserved: Sequence[Unserved]
    missing: Sequence[str]
    """Layers that somebody named and that have no folder."""
    index: IndexInfo
    folder_exists: bool
    encoding: str
    sources: Sequence[tuple[Source, str]] = ()
    """Each with its fault, nearest first; none when there is only the repository."""
    settings_fault: str = ""
    """Why no server would start with the settings; empty when one would."""

    def answer(self, cache: CacheInfo, uptime_seconds: float) -> InfoAnswer:
        """The object that the tool and the command show."""
        reasons = self._reasons()
        unhealthy = not self.folder_exists
        answer = InfoAnswer(
            version=__version__,
            status="unhealthy" if unhealthy else "degraded" if reasons else "healthy",
            knowledge_base=self._knowledge_base(),
            cache=cache,
            uptime_seconds=uptime_seconds,
            reasons=reasons,
            index=self.index,
            problems=problems_info(self.problems),
            encoding=self.encoding,
        )
        if self.unread:
            answer["problems"]["unread"] = self.unread
        if self.unserved:
            answer["unserved"] = [
                UnservedInfo(folder=one.folder, reason=one.reason, files=one.files)
                for one in self.unserved[:SHOWN_UNSERVED]
            ]
        return answer

    @property
    def _is_listed(self) -> bool:
        return all(layer in self.listings for layer in self.layers)

    def _knowledge_base(self) -> KnowledgeBaseInfo:
        base = KnowledgeBaseInfo(layers=[self._layer(layer) for layer in self.layers])
        if self._is_listed:
            files = [source for one in self.listings.values() for source in one.files]
            base["content_files"] = len(files)
            base["total_size_kb"] = round(sum(source.stamp.size for source in files) / 1024, 1)
        if self.sources:
            base["sources"] = [self._source(*one) for one in self.sources]
        return base

    def _source(self, source: Source, fault: str) -> SourceInfo:
        info = SourceInfo(name=source.name, layers=list(source.layers))
        if fault:
            info["fault"] = fault
        elif self._is_listed:
            files = [one for listing in self.listings.values() for one in listing.files]
            info["files"] = sum(one.source == source.name for one in files)
            if hidden := sum(source.name in one.overrides for one in files):
                info["overridden"] = hidden
        return info

    def _layer(self, layer: str) -> LayerInfo:
        info = LayerInfo(name=layer)
        if layer in self.listings:
            info["files"] = len(self.listings[layer].files)
        if layer in self.sizes:
            info["sections"] = self.sizes[layer].sections
            info["tokens"] = self.sizes[layer].tokens
        return info

    def _reasons(self) -> list[str]:
        if not self.folder_exists:
            return [f"the {KNOWLEDGE_DIR} folder is gone: restore it, or serve another root"]
        reasons = [self.settings_fault] if self.settings_fault else []
        if not self._is_listed:
            reasons.append(SLOW)
        elif not any(listing.files for listing in self.listings.values()):
            layers = ", ".join(self.layers)
            reasons.append(f"no documents yet: put markdown files under {KNOWLEDGE_DIR} ({layers})")
        if self.problems:
            more = f" and {len(self.problems) - 1} more" if len(self.problems) > 1 else ""
            reasons.append(f"not served as written: {self.problems[0]}{more}")
        if self.missing:
            reasons.append(f"layers without a folder: {', '.join(self.missing)}")
        reasons += map(_sentence, self._worth_a_reason())
        return reasons

    def _worth_a_reason(self) -> list[Unserved]:
        """What the problems above do not say already."""
        return [
            one for one in self.unserved if one.reason.startswith(("not a layer", "in no", "."))
        ]


def take_status(
    library: Library,
    counter: TokenCounter,
    indexed: Mapping[str, "DocumentEntry"],
    index: IndexInfo,
    deadline: Deadline,
) -> Status:
    """Measure what can be measured by the deadline; the rest is left out.

    Args:
        indexed: what the index knows of each file.
    """
    settings = library.settings
    listings = _listings_by(
        library, deadline if deadline.remaining_seconds is None else deadline.earlier(LISTING_MS)
    )
    reading_ms = PATIENT_MS if deadline.remaining_seconds is None else READING_MS
    described = {path: (entry.stamp, entry.problems) for path, entry in indexed.items()}
    reading = deadline.earlier(reading_ms)
    found, unread = library.known_problems(listings.values(), described, reading)
    sizes = (
        (layer, _size(library, counter, listing.files, indexed, deadline.earlier(reading_ms)))
        for layer, listing in listings.items()
    )
    return Status(
        layers=settings.layers,
        listings=listings,
        problems=[problem for problem in found if problem.level != "note"],
        unread=unread,
        sizes={layer: size for layer, size in sizes if size is not None},
        unserved=library.unserved(found, deadline.earlier(LISTING_MS)),
        missing=_missing_layers(settings.repository_layers, found),
        index=index,
        folder_exists=library.has_place,
        encoding=counter.encoding,
        sources=_sources(library, listings),
        settings_fault=_fault_of(settings),
    )


def problems_info(problems: Sequence[Problem]) -> ProblemsInfo:
    """How many problems there are, and the first of them."""
    first = [ProblemInfo(path=one.path, what=one.message) for one in problems[:SHOWN_PROBLEMS]]
    return ProblemsInfo(count=len(problems), first=first)


def index_info(state: "IndexState", progress: tuple[int, int]) -> IndexInfo:
    """The state of the index; a number that is not known yet is left out.

    Args:
        progress: how much of the last update was done, and of how much.
    """
    info = IndexInfo(state=state.state)
    done, total = progress
    if state.state != "ready" and total:
        info["progress"] = round(done / total, 3)
    if state.where:
        info["where"] = state.where
        info["documents"] = state.documents
        info["sections"] = state.sections
        if state.size_bytes:
            info["size_kb"] = round(state.size_bytes / 1024, 1)
    if state.message:
        info["message"] = state.message
    return info


def meaning_info(state: "MeaningState", sections: int) -> MeaningInfo:
    """How many of the sections of a base have vectors."""
    info = MeaningInfo(
        model=state.model,
        state=state.state,
        sections=state.sections,
        of=sections,
        size_kb=round(state.size_bytes / 1024, 1),
    )
    if state.message:
        info["message"] = state.message
    return info


def _fault_of(settings: Settings) -> str:
    """Why no server would start with the settings; empty when one would."""
    from sage.context.recipes import load_recipes  # a server has it; `sage info` alone pays for it

    try:
        load_recipes(settings)
    except ConfigError as error:
        return str(error)
    return ""


def _listings_by(library: Library, deadline: Deadline) -> dict[str, Listing]:
    """What each layer holds, of those that can be listed in time."""
    listings: dict[str, Listing] = {}
    for layer in library.layers:
        try:
            listing = library.refresh((layer,), deadline)[0]
        except (TimeoutExceeded, Unavailable):
            continue
        if not (listing.unseen and deadline.expired):
            listings[layer] = listing
    return listings


def _sources(library: Library, listings: Mapping[str, Listing]) -> list[tuple[Source, str]]:
    """The sources, each with its fault, where there is more than the repository.

    Whoever may see a part only is told of those that have a page in it.
    """
    sources = library.sources()
    if library.settings.is_narrowed:
        files = [one for listing in listings.values() for one in listing.files]
        seen = {one.source for one in files}.union(*(one.overrides for one in files))
        sources = [one for one in sources if one[0].name in seen]
    return sources if len(library.settings.served) > 1 else []


def _missing_layers(layers: Sequence[str], problems: Sequence[Problem]) -> list[str]:
    """The layers that somebody named in the settings and that have no folder."""
    if tuple(layers) == DEFAULT_LAYERS:
        return []
    gone = {problem.path for problem in problems if problem.rule == "no-folder"}
    return [one for one in layers if f"{KNOWLEDGE_DIR}/{one}" in gone]


def _size(
    library: Library,
    counter: TokenCounter,
    files: Sequence[SourceFile],
    indexed: Mapping[str, "DocumentEntry"],
    deadline: Deadline,
) -> Size | None:
    """Sections and tokens of files as they are now; None when those of one are not known."""
    sections = tokens = 0
    for source in files:
        known = indexed.get(source.path)
        if known is not None and known.stamp == source.stamp:
            sections += known.section_total
            tokens += known.tokens
            continue
        if deadline.expired or not counter.loaded:
            return None
        document = library.load(source, deadline)
        if document is not None:
            sections += len(document.sections)
            tokens += sum(
                counter.count_slice(document, section.start, section.end)
                for section in document.sections
            )
    return Size(sections, tokens)


def _sentence(one: Unserved) -> str:
    return f"not served: {counted(one.files, 'page')} in {one.folder} ({one.reason})"
