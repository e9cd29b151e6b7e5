"""Where a request becomes a call on the knowledge base, in a bounded number of threads.

Knows nothing of MCP: plain arguments come in, clean answers leave, errors are raised. A thread that
is stuck in the file system cannot be stopped. It is left behind and keeps its place until it
returns, so what is stuck never grows beyond the places there are, and because it is a daemon it
cannot hold up the end of the process either.
"""

import asyncio
import contextlib
import contextvars
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from sage import __version__
from sage.answers import (
    CacheInfo,
    IndexInfo,
    InfoAnswer,
    KnowledgeBaseInfo,
    ProblemsInfo,
)
from sage.deadline import Deadline, no_deadline
from sage.documents.files import SourceFile
from sage.documents.source_roots import Listing, files_of
from sage.errors import InvalidInput, NotFound, SageError, TimeoutExceeded
from sage.knowledge import KnowledgeBase
from sage.sanitize import clean, clean_value
from sage.server.process import give_back_memory
from sage.server.prompts import TASK_PROMPT, all_prompts, budget_of, gathered, task_prompt
from sage.server.resource_list import ListedPage, list_pages
from sage.server.resource_uris import ResourceUri
from sage.server.tools import DRAFT, INFO, Tool, all_tools, draft_tool
from sage.values import ALL_LAYERS, MAX_RESULTS, check_arguments

if TYPE_CHECKING:
    from sage.server.skills import PageSkill

T = TypeVar("T")

# Told in the loop how much processor time a thread used for the running request.
charge: contextvars.ContextVar[Callable[[float], None]] = contextvars.ContextVar(
    "sage_charge", default=lambda _: None
)

# Work that checks its deadline answers with what it has; only work that is stuck needs longer.
GRACE_SECONDS = 0.25


class WorkerThreads:
    """A number of threads for blocking work; work that finds none free waits its turn."""

    def __init__(self, name: str, places: int) -> None:
        self._name = name
        self._places = places
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    async def run(self, work: Callable[[Deadline], T], limit_ms: float | None = None) -> T:
        """The answer of the work; when the caller goes away, the work's deadline is cancelled.

        Raises:
            TimeoutExceeded: no thread was free, or no answer came, within the limit.
        """
        deadline = Deadline(limit_ms)
        job = _Job(work, deadline)
        self._submit(job)
        limit = None if limit_ms is None else limit_ms / 1000 + GRACE_SECONDS
        try:
            with anyio.move_on_after(limit):
                answer: T = await job.answer
                return answer
        finally:
            deadline.cancel()
        raise TimeoutExceeded(deadline.message)

    def close(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)

    def _submit(self, job: "_Job") -> None:
        self._jobs.put(job)
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._places:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while job := self._jobs.get():
            job.run()
            # Free before the answer is out: its receiver may ask again at once.
            self._idle.release()
            job.deliver()


class _Job:
    """One piece of work and the place where its answer is awaited."""

    def __init__(self, work: Callable[[Deadline], Any], deadline: Deadline) -> None:
        self._work = work
        self._deadline = deadline
        # What is logged or traced in the thread belongs to the request that asked.
        self._context = contextvars.copy_context()
        self._outcome: Any = None
        self._error: Exception | None = None
        self._charge = charge.get()
        self._cpu_seconds = 0.0
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self._loop.create_future()

    def run(self) -> None:
        """Do the work in this thread, unless nobody waits any more."""
        if self.answer.done():
            return
        started = time.thread_time()
        try:
            self._outcome = self._context.run(self._work, self._deadline)
        except Exception as error:  # raised again where the answer is awaited
            self._error = error
        except BaseException as error:  # answered as any bug of ours
            # A Rust panic or a SystemExit inside one call must not end the server.
            self._error = RuntimeError(f"{type(error).__name__} in a call: {error}")
        self._cpu_seconds = time.thread_time() - started

    def deliver(self) -> None:
        """Hand the outcome to whoever awaits it."""
        # The loop is closed when the server ended while this work was stuck.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        self._charge(self._cpu_seconds)
        if self.answer.done():
            return
        if self._error is None:
            self.answer.set_result(self._outcome)
        else:
            self.answer.set_exception(self._error)


logger = logging.getLogger("sage.server")

CALL_THREADS = 8
QUICK_THREADS = 2
# The state is told, or that it cannot be, within this time; a greeting waits even less.
QUICK_MS = 1_000
COUNT_MS = 300
# A document read as a resource comes whole; a layer keeps the limit of the tool.
DOCUMENT_TOKENS = 50_000
LAYER_TOKENS = 8_000


class AsyncKnowledge:
    """A knowledge base that is asked without blocking: the calls of one server."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self.layers = knowledge.settings.layers
        self.task_types = knowledge.task_types
        tools = all_tools(self.layers, self.task_types)
        if knowledge.settings.notes.draft_tool:
            tools = (*tools, draft_tool())
        self.tools = {tool.name: tool for tool in tools}
        self.prompts = {prompt.name: prompt for prompt in all_prompts(self.task_types)}
        self._knowledge = knowledge
        knowledge.library.expect_calls()
        self._limit_ms = knowledge.settings.limits.call_timeout_ms
        self._calls = WorkerThreads("sage-call", CALL_THREADS)
        self._quick = WorkerThreads("sage-quick", QUICK_THREADS)
        self._watching = WorkerThreads("sage-watch", 1)
        self._preparing = WorkerThreads("sage-prepare", 1)
        self._last_info: InfoAnswer | None = None

    async def call(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a tool."""
        return await self.call_and(name, given, lambda answer, _: answer)

    async def call_and(
        self, name: str, given: Mapping[str, Any], finish: Callable[[dict[str, Any], str], T]
    ) -> T:
        """What becomes of the answer of a tool and of the same answer as JSON.

        Cleaning and writing out megabytes would hold up everybody if it was done in the loop.

        Args:
            finish: called in the thread of the call.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise NotFound(f"there is no such tool; the tools are {', '.join(self.tools)}")
        arguments = check_arguments(tool.arguments, given)
        if name == INFO:
            return _finished(await self._info(), finish)
        limit_ms = min(arguments.pop("timeout_ms", self._limit_ms), self._limit_ms)
        # What was left out and has no default of its own has one there.
        given = {name: value for name, value in arguments.items() if value is not None}
        answer = self._method(tool)
        return await self._calls.run(
            lambda deadline: _finished(answer(**given, deadline=deadline), finish), limit_ms
        )

    async def read(self, uri: ResourceUri) -> str:
        """The content of a resource."""
        if uri.is_related:
            # What few calls need is imported by them: it would be a tenth of a start.
            from sage.server.related_pages import related_text

            topic = uri.topic if uri.layer == ALL_LAYERS else f"{uri.layer}/{uri.topic}"
            return await self._run(
                lambda deadline: related_text(self._knowledge, topic or "", deadline)
            )
        limit = LAYER_TOKENS if uri.topic is None else DOCUMENT_TOKENS
        answer = await self._run(
            lambda deadline: self._knowledge.get(
                uri.layer, uri.topic, max_tokens=limit, deadline=deadline
            )
        )
        return answer["content"]

    async def page(self, start: int, size: int) -> tuple[list[ListedPage], bool]:
        """So many pages from a position on; and whether more follow."""
        return await self._run(lambda deadline: list_pages(self._knowledge, start, size, deadline))

    async def skills(self, start: int, size: int) -> "tuple[list[PageSkill], bool]":
        """The skills among so many pages from a position on; and whether more pages follow."""
        from sage.server.skills import list_skills

        return await self._run(lambda deadline: list_skills(self._knowledge, start, size, deadline))

    async def skill(self, uri: str) -> "PageSkill":
        """The skill at an address."""
        from sage.server.skills import find_skill

        return await self._run(lambda deadline: find_skill(self._knowledge, uri, deadline))

    async def prompt(self, name: str, given: Mapping[str, Any]) -> str:
        """A prompt with the pages it is about, within its budget.

        Raises:
            NotFound: there is no such prompt.
        """
        prompt = self.prompts.get(name)
        if prompt is None:
            raise NotFound(f"there is no such prompt; the prompts are {', '.join(self.prompts)}")
        arguments = check_arguments(prompt.arguments, given)
        if name == TASK_PROMPT:
            return await self._task_prompt(arguments)
        about, budget = (arguments[prompt.about] or "").strip(), budget_of(arguments)
        if not about:
            return prompt.words(arguments)
        answer = await self._run(
            lambda deadline: self._knowledge.search(
                about, limit=MAX_RESULTS, max_tokens=budget, deadline=deadline
            )
        )
        return prompt.words(arguments) + gathered(answer)

    async def _task_prompt(self, arguments: Mapping[str, Any]) -> str:
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
        """Every value that an argument of the prompt or of a URI could take."""
        if argument == "layer":
            return [*self.layers, ALL_LAYERS]
        if argument == "task_type":
            return list(self.task_types)
        if argument == "language":
            snapshot = await self._run(self._knowledge.snapshot)
            return sorted(snapshot.searcher.catalog.languages)
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
            # The walk goes on for whoever asks next, also when nobody waits for it any more: in a
            # thread of which there is one, so that slow files keep no place of a quick answer.
            listings = await self._watching.run(lambda _: self._listings(no_deadline()), COUNT_MS)
        except TimeoutExceeded:
            return None
        return {listing.layer: len(listing.files) for listing in listings}

    async def warm(self) -> None:
        """Make ready what the first calls will need."""
        await self._preparing.run(self._prepare)

    def _prepare(self, deadline: Deadline) -> None:
        self._knowledge.warm(deadline)
        give_back_memory()
        if self._knowledge.meaning is not None:
            self._knowledge.meaning.start()

    def close(self) -> None:
        """Let the threads go that are not busy."""
        for threads in (self._calls, self._quick, self._watching, self._preparing):
            threads.close()

    def _method(self, tool: Tool) -> Callable[..., Mapping[str, Any]]:
        if tool.name == DRAFT:
            from sage.server.note_drafts import draft_note

            return partial(draft_note, self._knowledge)
        method: Callable[..., Mapping[str, Any]] = getattr(self._knowledge, tool.method)
        return method

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
    again = f"; fix it and call {tool} again" if tool and isinstance(error, InvalidInput) else ""
    return clean(" ".join(f"{error.code}: {error}{again}".split()))


def _topic(source: SourceFile, layer: str) -> str:
    topic = source.topic
    return topic if layer == ALL_LAYERS else topic.partition("/")[2]


def _finished(answer: Mapping[str, Any], finish: Callable[[dict[str, Any], str], T]) -> T:
    cleaned: dict[str, Any] = clean_value(answer)
    return finish(cleaned, json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")))


def _stuck(last: InfoAnswer | None, encoding: str) -> InfoAnswer:
    nothing = InfoAnswer(
        version=__version__,
        status="unhealthy",
        knowledge_base=KnowledgeBaseInfo(layers=[]),
        cache=CacheInfo(enabled=True, hit_rate=0.0),
        uptime_seconds=0.0,
        reasons=[],
        index=IndexInfo(state="unknown"),
        problems=ProblemsInfo(count=0, first=[]),
        encoding=encoding,
    )
    reason = f"the file system did not answer within {QUICK_MS} ms; what is shown is the last known"
    return {**(last or nothing), "status": "unhealthy", "reasons": [reason]}
