"""The answers of the tools: plain objects, ready to be written as JSON.

The command line's `--json` and the protocol's structured content are these very objects.
"""

from typing import Literal, NotRequired, TypedDict


class Omitted(TypedDict):
    """Something that did not fit or was not reached."""

    topic: str
    title: str
    tokens: int | None
    """None when time ran out before the document was read."""


class KnowledgeMetadata(TypedDict):
    """How an answer of `sage_get_knowledge` came about."""

    layer: str
    topic: str | None
    files_loaded: int
    load_time_ms: float
    from_cache: bool
    token_count: int
    complete: bool
    omitted: list[Omitted]
    overrides: NotRequired[list[str]]
    """The pages read in whose place another source has one too: `core/principles: company`."""


class KnowledgeAnswer(TypedDict):
    """The answer of `sage_get_knowledge`."""

    content: str
    metadata: KnowledgeMetadata


class SearchResult(TypedDict):
    """A document and a section of it that answers."""

    path: str
    title: str
    snippet: str
    """The section, its best sentences, or nothing when the budget is spent."""
    score: float
    topic: str
    tokens: int
    """What reading the topic costs."""
    lines: list[int]
    whole: NotRequired[bool]
    """Present when the snippet is the whole section."""
    id: NotRequired[str]
    """The page's own, which stays when the page moves; a topic as good as any."""
    status: NotRequired[str]
    superseded_by: NotRequired[str]
    last_updated: NotRequired[str]
    """Present when that is long ago."""
    type: NotRequired[str]
    copies: NotRequired[int]
    """How many other pages say the same."""
    source: NotRequired[str]
    """Where the page comes from, when there are several sources; `own` is the repository."""
    overrides: NotRequired[list[str]]
    """The sources that have a page of this topic too, which is not served."""
    by: NotRequired[str]
    """`meaning` when no word of the query led to it."""


class SearchAnswer(TypedDict):
    """The answer of `sage_search`."""

    results: list[SearchResult]
    total: int
    query_time_ms: float
    found: Literal["yes", "partly", "no"]
    missing: NotRequired[list[str]]
    """What was asked for and no document holds."""
    complete: NotRequired[bool]
    """Present, and false, when not every document could be searched."""
    note: NotRequired[str]
    next_offset: NotRequired[int]
    """Where a list goes on."""


class ContextSource(TypedDict):
    """What a context holds of one document, and why."""

    topic: str
    lines: str
    """`12-20,33-40`"""
    why: str
    id: NotRequired[str]
    source: NotRequired[str]
    overrides: NotRequired[list[str]]
    """Both as in a search result."""


class ContextAnswer(TypedDict):
    """The answer of `sage_get_context`."""

    context: str
    sections: list[str]
    token_count: int
    load_time_ms: float
    sources: list[ContextSource]
    omitted: NotRequired[list[str]]
    """The topics that would have served too and did not fit."""
    note: NotRequired[str]
    """What the reader should know: that nothing is about the task, which pages were left out."""
    complete: NotRequired[bool]
    """False when something was left out or cut, or could not be read."""


class ScopedPage(TypedDict):
    """A page that belongs to a file."""

    topic: str
    title: str
    glob: str
    """The glob of its front matter that holds the file."""
    status: NotRequired[str]
    """Only when it is not in force."""


class ScopeAnswer(TypedDict):
    """The answer of `sage scope`."""

    file: str
    pages: list[ScopedPage]


class LayerInfo(TypedDict):
    """What one layer holds."""

    name: str
    files: NotRequired[int]
    sections: NotRequired[int]
    tokens: NotRequired[int]
    """Each is absent until it is known."""


class SourceInfo(TypedDict):
    """What is served of one source."""

    name: str
    layers: list[str]
    files: NotRequired[int]
    """Absent while they cannot be listed."""
    overridden: NotRequired[int]
    """Its pages in whose place a nearer source's are served."""
    fault: NotRequired[str]
    """Why nothing of it is served."""


class KnowledgeBaseInfo(TypedDict):
    """The size of the knowledge base."""

    content_files: NotRequired[int]
    total_size_kb: NotRequired[float]
    """Both are absent while the files cannot be listed."""
    layers: list[LayerInfo]
    sources: NotRequired[list[SourceInfo]]
    """Nearest first; absent when there is only the repository."""


class CacheInfo(TypedDict):
    """How often an answer was ready."""

    enabled: bool
    hit_rate: float


class IndexInfo(TypedDict):
    """The state of the search index."""

    state: str
    """opening, empty, building, partial or ready."""
    progress: NotRequired[float]
    """The share that is done while it is being built, from 0 to 1."""
    where: NotRequired[str]
    documents: NotRequired[int]
    sections: NotRequired[int]
    size_kb: NotRequired[float]
    """Not of an index that lies in a cluster."""
    message: NotRequired[str]


class MeaningInfo(TypedDict):
    """How far the base can be searched by meaning."""

    model: str
    state: str
    """waiting, loading, embedding, ready or unavailable."""
    sections: int
    """Those that have a vector."""
    of: int
    """Those that can have one."""
    size_kb: float
    message: NotRequired[str]


class ProblemInfo(TypedDict):
    """One problem, in short."""

    path: str
    what: str


class ProblemsInfo(TypedDict):
    """How many problems there are, and the first of them."""

    count: int
    first: list[ProblemInfo]
    unread: NotRequired[int]
    """Pages that were not looked at yet: they may have more."""


class UnservedInfo(TypedDict):
    """Files of one folder that are not served for one reason."""

    folder: str
    reason: str
    files: int


class PublishedInfo(TypedDict):
    """What a replica serves of one source."""

    source: str
    commit: NotRequired[str]
    """Empty when it was published from no repository. It and what follows are left out for whoever
    does not see every layer of the source: they change with pages that may not be seen."""
    generation: NotRequired[str]
    since: NotRequired[str]


class InfoAnswer(TypedDict):
    """The answer of `sage_info`."""

    version: str
    status: str
    knowledge_base: KnowledgeBaseInfo
    cache: CacheInfo
    uptime_seconds: float
    reasons: list[str]
    """Why the status is not healthy."""
    index: IndexInfo
    meaning: NotRequired[MeaningInfo]
    """Only where meaning is searched."""
    problems: ProblemsInfo
    unserved: NotRequired[list[UnservedInfo]]
    """What lies in the knowledge folder and is not served."""
    encoding: str


class ReplicaInfo(InfoAnswer):
    """The same from a replica, which has more to say."""

    published: NotRequired[list[PublishedInfo]]
    """Which commit of which source is served."""
    behind_seconds: NotRequired[float]
    """How long ago that was last known to be what the alias names."""


class KnownPage(TypedDict):
    """Something that the base says already on a note."""

    why: str
    """alike, near in meaning, same files, or may disagree."""
    topic: str
    title: str
    likeness: float
    sentence: NotRequired[str]


class DraftAnswer(TypedDict):
    """The answer of `sage_draft_note`: a page that is not written."""

    id: str
    path: str
    """Where it belongs, from the root."""
    topic: str
    page: str
    known: list[KnownPage]
    next: str
