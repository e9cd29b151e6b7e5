"""The answers of the four tools: plain objects, ready to be written as JSON.

The command line's `--json` and the protocol's structured content are these very objects.
"""

from typing import NotRequired, TypedDict


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


class KnowledgeAnswer(TypedDict):
    """The answer of `sage_get_knowledge`."""

    content: str
    metadata: KnowledgeMetadata


class SearchResult(TypedDict):
    """One document and its best section."""

    path: str
    title: str
    snippet: str
    score: float
    layer: str
    topic: str
    heading: str
    lines: list[int]
    tokens: int


class SearchAnswer(TypedDict):
    """The answer of `sage_search`."""

    results: list[SearchResult]
    total: int
    query_time_ms: float
    complete: bool
    note: NotRequired[str]


class ContextSource(TypedDict):
    """Where one part of a context comes from, and why it is in it."""

    topic: str
    path: str
    lines: list[int]
    tokens: int
    why: str


class ContextOmitted(TypedDict):
    """The next best that did not fit, and the call that fetches it."""

    topic: str
    title: str
    tokens: int
    why: str
    call: str


class ContextAnswer(TypedDict):
    """The answer of `sage_get_context`."""

    context: str
    sections: list[str]
    token_count: int
    load_time_ms: float
    sources: list[ContextSource]
    omitted: list[ContextOmitted]
    encoding: str
    complete: bool


class LayerInfo(TypedDict):
    """What one layer holds."""

    name: str
    files: int
    sections: int | None
    tokens: int | None
    """None until the index has counted them."""


class KnowledgeBaseInfo(TypedDict):
    """The size of the knowledge base."""

    content_files: int
    total_size_kb: float
    layers: list[LayerInfo]


class CacheInfo(TypedDict):
    """How often an answer was ready."""

    enabled: bool
    hit_rate: float


class IndexInfo(TypedDict):
    """The state of the search index."""

    state: str
    where: str
    documents: int
    sections: int
    size_kb: float
    message: str


class ProblemInfo(TypedDict):
    """One problem, in short."""

    path: str
    what: str


class ProblemsInfo(TypedDict):
    """How many problems there are, and the first of them."""

    count: int
    first: list[ProblemInfo]


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
    problems: ProblemsInfo
    encoding: str
