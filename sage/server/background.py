"""What goes on while a server serves: the index is made ready, changes are told.

Neither is needed for a right answer: a call looks at the files by itself.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from sage.documents.files import SourceFile
from sage.server.async_knowledge import AsyncKnowledge
from sage.server.resource_uris import changed_uris
from sage.server.subscriptions import Subscribers

logger = logging.getLogger("sage.server")

WATCH_SECONDS = 2.0
MAX_WATCH_SECONDS = 60.0
# A scan of a huge base must not keep a core busy: it gets at most this share of the time.
WATCH_SHARE = 0.02
# The greeting goes out before the work that makes the first search quick takes its share.
PREPARE_SECONDS = 0.05

Files = tuple[SourceFile, ...]


@contextlib.asynccontextmanager
async def background_tasks(
    async_knowledge: AsyncKnowledge, subscribers: Subscribers, greeted: asyncio.Event
) -> AsyncIterator[None]:
    """Keep the search index ready and clients informed for as long as the server serves."""

    async def tell(before: Files | None) -> Files | None:
        after = await async_knowledge.files() if subscribers.present else None
        if before is not None and after is not None and before != after:
            await subscribers.tell(changed_uris(before, after))
        return before if after is None else after

    tasks = [
        asyncio.create_task(_prepare(async_knowledge, greeted)),
        asyncio.create_task(watch(tell)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        async_knowledge.close()


async def watch(take_in: Callable[[Files | None], Awaitable[Files | None]]) -> None:
    """Look at the files again and again, for ever.

    Args:
        take_in: given the files that were taken in last, None at first; returns those now.
    """
    files: Files | None = None
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        files = await take_in(files)
        pause = max(WATCH_SECONDS, (loop.time() - started) / WATCH_SHARE)
        await asyncio.sleep(min(pause, MAX_WATCH_SECONDS))


async def _prepare(async_knowledge: AsyncKnowledge, greeted: asyncio.Event) -> None:
    """Build the index once a client is greeted: it never waits for that, only a search may."""
    await greeted.wait()
    await asyncio.sleep(PREPARE_SECONDS)
    try:
        await async_knowledge.warm()
    except Exception:  # only a preparation: the call that needs the index says what is wrong
        logger.exception("the index could not be made ready; the first search tries again")
