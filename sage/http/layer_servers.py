"""A server for every set of layers and sources that somebody may see, opened when first asked for.

A token for some layers or sources gets a whole server over a knowledge base of these and no
others: nothing in it, no tool, listing, count, suggestion or score, has to remember to leave
something out. The price is an index for each such set in use.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.types import ASGIApp

from sage.access.refusals import out_of_scope
from sage.access.token_file import TokenScope
from sage.context.recipes import recipes_for_layers
from sage.deadline import Deadline
from sage.http.mcp_endpoint import CallTool, mcp_app, tool_result
from sage.http.metrics import UNKNOWN, Observation, Observer, observed_by, observed_call
from sage.knowledge import KnowledgeBase
from sage.server.async_knowledge import AsyncKnowledge, error_line
from sage.settings import DEFAULT_LAYERS, Settings

if TYPE_CHECKING:
    from sage.page.site import Site

logger = logging.getLogger("sage.http")

# Beyond these, the one that has been idle for longest is closed.
MAX_OPEN = 16
# What is published is looked at so often while nobody asks, and for no longer each time.
FOLLOW_SECONDS = 0.5
LOOK_MS = 2_000

Opener = Callable[[KnowledgeBase], AbstractAsyncContextManager[ASGIApp]]
SiteMaker = Callable[[KnowledgeBase], "Site"]


class LayerServers:
    """The servers that are open."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        opener: Opener,
        site_maker: SiteMaker | None = None,
        on_renewed: Callable[[KnowledgeBase], None] = lambda _: None,
    ) -> None:
        """Args:
        on_renewed: told the base that is served from now on, where other settings were published.
        """
        self._all = knowledge
        self._opener = opener
        self._site_maker = site_maker
        self._on_renewed = on_renewed
        self._open: dict[_Shown, _OpenServer] = {}
        self._replaced: set[_OpenServer] = set()
        """Those over earlier settings, until the last of their calls has ended."""
        self._everything = _shown(knowledge.settings, TokenScope())

    @contextlib.asynccontextmanager
    async def endpoint(self, scope: TokenScope) -> AsyncIterator[ASGIApp]:
        """The application for some layers and sources.

        Raises:
            Refused: none of them is served.
        """
        async with self._used(scope) as server:
            yield await asyncio.shield(server.ready)

    @contextlib.asynccontextmanager
    async def site(self, scope: TokenScope) -> AsyncIterator["Site"]:
        """The pages for some layers and sources.

        Raises:
            Refused: none of them is served.
        """
        async with self._used(scope) as server:
            yield server.site

    @contextlib.asynccontextmanager
    async def _used(self, scope: TokenScope) -> AsyncIterator["_OpenServer"]:
        self._renew()
        server = self._server(_shown(self._all.settings, scope))
        server.users += 1
        try:
            yield server
        finally:
            server.users -= 1
            server.leave_if_replaced()

    async def follow(self) -> None:
        """See what is published while nobody asks, for ever."""
        while self._all.library.is_published:
            await asyncio.sleep(FOLLOW_SECONDS)
            try:
                await asyncio.to_thread(self._all.library.follow, Deadline(LOOK_MS))
                self._renew()
            except Exception:  # a bug in one look must not end all of them
                logger.exception("what is published could not be looked at")

    def _renew(self) -> None:
        """Serve sources, layers and other settings that were published meanwhile."""
        settings = self._all.library.current_settings
        if settings is self._all.settings:
            return
        everything = _shown(settings, TokenScope())
        self._all, self._everything = self._all.narrowed(settings), everything
        replaced = list(self._open.values())
        self._open.clear()
        for server in replaced:
            self._replace(server)
        self._on_renewed(self._all)

    def _replace(self, server: "_OpenServer") -> None:
        """Close a server over earlier settings when the last of its calls has ended."""
        self._replaced.add(server)
        server.replace(self._replaced.discard)

    async def close(self) -> None:
        servers = [*self._open.values(), *self._replaced]
        self._open.clear()
        for server in servers:
            await server.close()

    @property
    def open(self) -> int:
        """How many servers are open."""
        return len(self._open)

    def _server(self, seen: "_Shown") -> "_OpenServer":
        server, settings = self._open.pop(seen, None), self._settings(seen)
        # Those of all may stay while what is said of some pages changes.
        if server is not None and server.settings != settings:
            self._replace(server)
            server = None
        if server is None or server.has_failed:
            is_all = settings is self._all.settings
            knowledge = self._all if is_all else self._all.narrowed(settings)
            server = _OpenServer(knowledge, self._opener, self._site_maker)
        self._open[seen] = server  # behind those that were used before
        self._close_idle()
        return server

    def _settings(self, seen: "_Shown") -> Settings:
        settings = self._all.settings
        if seen == self._everything:
            return settings
        # An index of its own: one that was shared would hold words of the others.
        name = "+".join(seen.layers)
        if seen.sources != self._everything.sources:
            name += "@" + "+".join(seen.sources)
        narrowed = replace(
            settings,
            is_narrowed=True,
            layers=seen.layers,
            own_layers=settings.repository.layers,
            seen_sources=seen.sources,
            cache_dir=settings.cache_dir / "layers" / name,
            recipes=recipes_for_layers(settings.recipes, seen.layers),
        )
        return self._all.library.narrowed_settings(narrowed)

    def _close_idle(self) -> None:
        idle = [
            seen
            for seen, server in self._open.items()
            if not server.users and seen != self._everything
        ]
        for seen in idle[: max(0, len(self._open) - MAX_OPEN)]:
            self._open.pop(seen).leave()


class _Shown(NamedTuple):
    """What one server shows."""

    layers: tuple[str, ...]
    sources: tuple[str, ...]


def _shown(settings: Settings, scope: TokenScope) -> _Shown:
    """What a token sees of all that is served.

    Raises:
        Refused: nothing.
    """
    served = [one for one in settings.served if _holds(scope.sources, one.name)]
    served = [one for one in served if one.layers or one.fault]
    if not served:
        raise out_of_scope("the token is for sources that this server does not serve")
    # In their order: that of all may be another one because of what is not seen.
    theirs = dict.fromkeys(layer for one in served for layer in one.layers)
    layers = [one for one in theirs if _holds(scope.layers, one)]
    if not layers and not all(one.layers for one in served):
        # Of one that cannot be loaded nobody knows the layers, and those of others tell nothing.
        layers = list(DEFAULT_LAYERS if scope.layers is None else scope.layers)
    if not layers:
        raise out_of_scope("the token is for layers that this server does not serve")
    # One that has none of these layers is not to be known of.
    named = [one.name for one in served if not one.layers or set(one.layers).intersection(layers)]
    return _Shown(tuple(layers), tuple(named))


def _holds(names: Sequence[str] | None, name: str) -> bool:
    return names is None or name in names


class _OpenServer:
    """One open server: entered and left in a task of its own, as its task group demands."""

    def __init__(
        self, knowledge: KnowledgeBase, opener: Opener, site_maker: SiteMaker | None
    ) -> None:
        self.users = 0
        self._is_replaced = False
        self._knowledge = knowledge
        self.settings = knowledge.settings
        self._site_maker = site_maker
        self.ready: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._leaving = asyncio.Event()
        self._task = asyncio.create_task(self._live(knowledge, opener))

    @cached_property
    def site(self) -> "Site":
        """The pages, made when somebody first looks at them."""
        if self._site_maker is None:
            raise out_of_scope("this server has no page; start it with --page")
        return self._site_maker(self._knowledge)

    @property
    def has_failed(self) -> bool:
        """Whether it could not be opened."""
        return self.ready.done() and self.ready.exception() is not None

    def replace(self, then: Callable[["_OpenServer"], None]) -> None:
        """Close as soon as nobody uses it; another one is used from now on."""
        self._is_replaced = True
        self._task.add_done_callback(lambda _: then(self))
        self.leave_if_replaced()

    def leave_if_replaced(self) -> None:
        """Begin to close where another one took its place and the last call has ended."""
        if self._is_replaced and not self.users:
            self.leave()

    def leave(self) -> None:
        """Begin to close."""
        self._leaving.set()

    async def close(self) -> None:
        """Close and wait until it is."""
        self.leave()
        await self._task

    async def _live(self, knowledge: KnowledgeBase, opener: Opener) -> None:
        try:
            async with opener(knowledge) as app:
                self.ready.set_result(app)
                await self._leaving.wait()
        except Exception as error:  # nobody awaits this task: it is told here, and to who waits
            logger.exception("a server over %s failed", ", ".join(knowledge.settings.layers))
            if not self.ready.done():
                self.ready.set_exception(error)


def _caller_of(async_knowledge: AsyncKnowledge, observe: Observer) -> CallTool:
    """Calls tools without the way through FastMCP, which takes longer than most searches."""

    async def call(name: str, arguments: Mapping[str, Any]) -> bytes:
        known = name if name in async_knowledge.tools else UNKNOWN
        with observed_call(observe, known, arguments) as call:
            try:
                call.answer, result = await async_knowledge.call_and(
                    name, arguments, lambda answer, text: (answer, tool_result(text, text))
                )
            except Exception as error:  # the edge: a bug becomes INTERNAL and a line in the log
                line = error_line(error, name)
                call.outcome = line.partition(":")[0]
                return tool_result(line)
            return result

    return call


def mcp_opener(observers: Sequence[Observer], is_traced: bool) -> Opener:
    """Opens MCP over a knowledge base, with observers of its calls."""

    def observe(seen: Observation) -> None:
        for observer in observers:
            observer(seen)

    @contextlib.asynccontextmanager
    async def opened(knowledge: KnowledgeBase) -> AsyncIterator[ASGIApp]:
        # FastMCP's import takes a second: it must not delay a wrong flag's message.
        from sage.server.mcp_server import create_server, lowlevel_of

        async_knowledge = AsyncKnowledge(knowledge)
        server = lowlevel_of(create_server(knowledge, async_knowledge))
        names = frozenset(async_knowledge.tools)
        server.middleware.insert(0, observed_by(observe, names))
        # The short way has no spans of FastMCP's to show.
        call_tool = None if is_traced else _caller_of(async_knowledge, observe)
        async with mcp_app(server, call_tool) as app:
            yield app
        await asyncio.to_thread(knowledge.close)

    return opened
