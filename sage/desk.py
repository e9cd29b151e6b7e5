"""Where a request becomes a call on the knowledge base, in threads that it cannot block.

Knows nothing of MCP: plain arguments come in, clean answers leave, errors are raised.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sage import __version__
from sage.addresses import Address
from sage.answers import (
    CacheInfo,
    IndexInfo,
    InfoAnswer,
    KnowledgeBaseInfo,
    ProblemsInfo,
)
from sage.arguments import check_arguments
from sage.bounds import ALL_LAYERS
from sage.calls import Lane
from sage.deadline import Deadline
from sage.documents import Document, topic_of
from sage.errors import InvalidInput, NotFound, SageError, TimeoutExceeded
from sage.files import SourceFile
from sage.knowledge import KnowledgeBase
from sage.library import Listing, files_of
from sage.lookup import load_all
from sage.prompts import prompt_arguments, task_prompt
from sage.scrub import clean, clean_value
from sage.tools import INFO, all_tools

T = TypeVar("T")
logger = logging.getLogger("sage.server")

CALL_THREADS = 8
QUICK_THREADS = 2
# The state is told, or that it cannot be, within this time; a greeting waits even less.
QUICK_MS = 1_000
COUNT_MS = 300
# A document read as a resource comes whole; a layer keeps the limit of the tool.
DOCUMENT_TOKENS = 50_000
LAYER_TOKENS = 8_000


class Desk:
    """The calls of one server."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self.layers = knowledge.settings.layers
        self.task_types = knowledge.task_types
        self.tools = {tool.name: tool for tool in all_tools(self.layers, self.task_types)}
        self._knowledge = knowledge
        self._limit_ms = knowledge.settings.limits.call_timeout_ms
        self._calls = Lane("sage-call", CALL_THREADS)
        self._quick = Lane("sage-quick", QUICK_THREADS)
        self._watching = Lane("sage-watch", 1)
        self._preparing = Lane("sage-prepare", 1)
        self._last_info: InfoAnswer | None = None

    async def call(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a tool."""
        tool = self.tools.get(name)
        if tool is None:
            raise NotFound(f"there is no such tool; the tools are {', '.join(self.tools)}")
        arguments = check_arguments(tool.arguments, given)
        if name == INFO:
            return _clean(await self._info())
        limit_ms = min(arguments.get("timeout_ms", self._limit_ms), self._limit_ms)
        return _clean(
            await self._calls.run(
                lambda deadline: tool.call(self._knowledge, arguments, deadline), limit_ms
            )
        )

    async def read(self, address: Address) -> str:
        """The content behind the address of a resource."""
        limit = LAYER_TOKENS if address.topic is None else DOCUMENT_TOKENS
        answer = await self._run(
            lambda deadline: self._knowledge.get(
                address.layer, address.topic, max_tokens=limit, deadline=deadline
            )
        )
        return answer["content"]

    async def documents(self) -> tuple[Document, ...]:
        """Every document in reading order."""
        return await self._run(lambda deadline: self._knowledge.documents(ALL_LAYERS, deadline))

    async def page(self, start: int, size: int) -> tuple[list[Document], bool]:
        """So many documents from a position on, loading no others; and whether more follow."""

        def load(deadline: Deadline) -> tuple[list[Document], bool]:
            files = files_of(self._listings(deadline))
            loading = load_all(self._knowledge.library, files[start : start + size], deadline)
            if loading.unread:
                raise TimeoutExceeded(deadline.message)
            return loading.documents, start + size < len(files)

        return await self._run(load)

    async def prompt(self, given: Mapping[str, Any]) -> str:
        """The prompt that starts a task."""
        arguments = check_arguments(prompt_arguments(self.task_types), given)
        answer = await self._run(
            lambda deadline: self._knowledge.context(
                arguments["task_type"],
                language=arguments["language"],
                task=arguments["context"],
                deadline=deadline,
            )
        )
        return task_prompt(arguments["task_type"], arguments["context"], answer)

    async def suggestions(self, argument: str, layer: str) -> list[str]:
        """Every value that an argument of the prompt or of an address could take."""
        if argument == "layer":
            return [*self.layers, ALL_LAYERS]
        if argument == "task_type":
            return list(self.task_types)
        if argument == "language":
            documents = await self.documents()
            return sorted({name for one in documents for name in one.meta.languages})
        if argument == "topic":
            files = files_of(await self._run(self._listings))
            return [
                _topic(source, layer) for source in files if layer in (source.layer, ALL_LAYERS)
            ]
        return []

    async def files(self) -> tuple[SourceFile, ...] | None:
        """Every file that is served; None when the file system does not answer."""
        try:
            listings = await self._watching.run(self._listings, self._limit_ms)
        except TimeoutExceeded:
            return None
        return tuple(files_of(listings))

    async def counts(self) -> Mapping[str, int] | None:
        """Documents per layer; None when the file system does not answer at once."""
        try:
            listings = await self._quick.run(self._listings, COUNT_MS)
        except TimeoutExceeded:
            return None
        return {listing.layer: len(listing.files) for listing in listings}

    async def warm(self) -> None:
        """Make ready what the first calls will need."""
        await self._preparing.run(self._knowledge.warm)

    def close(self) -> None:
        """Let the threads go that are not busy."""
        for lane in (self._calls, self._quick, self._watching, self._preparing):
            lane.close()

    def _listings(self, deadline: Deadline) -> tuple[Listing, ...]:
        return self._knowledge.library.refresh(self.layers, deadline)

    async def _run(self, work: Callable[[Deadline], T]) -> T:
        return await self._calls.run(work, self._limit_ms)

    async def _info(self) -> InfoAnswer:
        """The state now; when the file system is stuck, the last known state and that it is."""
        try:
            info = await self._quick.run(self._knowledge.info, QUICK_MS)
        except TimeoutExceeded:
            return _stuck(self._last_info, self._knowledge.counter.encoding)
        self._last_info = info
        return info


def matching(values: Iterable[str], typed: str) -> list[str]:
    """The values that contain what was typed, first those that begin with it."""
    wanted = typed.casefold()
    found = [value for value in values if wanted in value.casefold()]
    return sorted(found, key=lambda value: not value.casefold().startswith(wanted))


def error_line(error: Exception, tool: str = "") -> str:
    """The one line that a caller reads: a code, what was wrong, what to do."""
    if not isinstance(error, SageError):
        logger.error("unexpected %s in a call", type(error).__name__, exc_info=error)
        return (
            "INTERNAL: the call failed inside the server, whose log on stderr says why; "
            "call sage_info to see whether the knowledge base is healthy"
        )
    again = f"; mend it and call {tool} again" if tool and isinstance(error, InvalidInput) else ""
    return clean(" ".join(f"{error.code}: {error}{again}".split()))


def _topic(source: SourceFile, layer: str) -> str:
    topic = topic_of(source.path)
    return topic if layer == ALL_LAYERS else topic.partition("/")[2]


def _clean(answer: Mapping[str, Any]) -> dict[str, Any]:
    cleaned: dict[str, Any] = clean_value(answer)
    return cleaned


def _stuck(last: InfoAnswer | None, encoding: str) -> InfoAnswer:
    nothing = InfoAnswer(
        version=__version__,
        status="unhealthy",
        knowledge_base=KnowledgeBaseInfo(content_files=0, total_size_kb=0.0, layers=[]),
        cache=CacheInfo(enabled=True, hit_rate=0.0),
        uptime_seconds=0.0,
        reasons=[],
        index=IndexInfo(
            state="unknown", where="", documents=0, sections=0, size_kb=0.0, message=""
        ),
        problems=ProblemsInfo(count=0, first=[]),
        encoding=encoding,
    )
    reason = f"the file system did not answer within {QUICK_MS} ms; what is shown is the last known"
    return {**(last or nothing), "status": "unhealthy", "reasons": [reason]}
