"""A server for every set of layers that somebody may see, opened when it is first asked for.

A token for some layers gets a whole server over a knowledge base of these layers and no others:
nothing in it, no tool, listing, count, suggestion or score, has to remember to leave something
out. The price is an index for each set of layers in use.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from sage.knowledge import KnowledgeBase, open_knowledge
from sage.refusals import out_of_scope

if TYPE_CHECKING:
    from starlette.types import ASGIApp

logger = logging.getLogger("sage.http")

# Beyond these, the one that has been idle for longest is closed.
MAX_OPEN = 16

Opener = Callable[[KnowledgeBase], AbstractAsyncContextManager["ASGIApp"]]


class Scopes:
    """The servers that are open."""

    def __init__(self, knowledge: KnowledgeBase, opener: Opener) -> None:
        self._all = knowledge
        self._opener = opener
        self._open: dict[tuple[str, ...], _Tenant] = {}

    @contextlib.asynccontextmanager
    async def endpoint(self, layers: Sequence[str] | None) -> AsyncIterator["ASGIApp"]:
        """The application for a set of layers; None means all.

        Raises:
            Refused: none of the layers is served.
        """
        tenant = self._tenant(self._narrowed(layers))
        tenant.guests += 1
        try:
            yield await asyncio.shield(tenant.ready)
        finally:
            tenant.guests -= 1

    async def close(self) -> None:
        """Close every server."""
        tenants = list(self._open.values())
        self._open.clear()
        for tenant in tenants:
            await tenant.close()

    @property
    def open(self) -> int:
        """How many servers are open."""
        return len(self._open)

    def _narrowed(self, layers: Sequence[str] | None) -> tuple[str, ...]:
        served = self._all.settings.layers
        if layers is None:
            return served
        narrowed = tuple(layer for layer in served if layer in layers)
        if not narrowed:
            raise out_of_scope("the token is for layers that this server does not serve")
        return narrowed

    def _tenant(self, layers: tuple[str, ...]) -> "_Tenant":
        tenant = self._open.pop(layers, None)
        if tenant is None or tenant.has_failed:
            tenant = _Tenant(self._knowledge(layers), self._opener)
        self._open[layers] = tenant  # behind those that were used before
        self._close_idle()
        return tenant

    def _knowledge(self, layers: tuple[str, ...]) -> KnowledgeBase:
        settings = self._all.settings
        if layers == settings.layers:
            return self._all
        # An index of its own: one that was shared would hold words of the other layers.
        own = settings.cache_dir / "layers" / "+".join(layers)
        return open_knowledge(replace(settings, layers=layers, cache_dir=own))

    def _close_idle(self) -> None:
        idle = [
            layers
            for layers, tenant in self._open.items()
            if not tenant.guests and layers != self._all.settings.layers
        ]
        for layers in idle[: max(0, len(self._open) - MAX_OPEN)]:
            self._open.pop(layers).leave()


class _Tenant:
    """One open server: entered and left in a task of its own, as its task group demands."""

    def __init__(self, knowledge: KnowledgeBase, opener: Opener) -> None:
        self.guests = 0
        self.ready: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._leaving = asyncio.Event()
        self._task = asyncio.create_task(self._live(knowledge, opener))

    @property
    def has_failed(self) -> bool:
        """Whether it could not be opened."""
        return self.ready.done() and self.ready.exception() is not None

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
