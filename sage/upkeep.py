"""What goes on while a server serves: the index is made ready, changes are told.

Neither is needed for a right answer: a call looks at the files by itself.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from sage.addresses import changed_addresses
from sage.desk import Desk
from sage.files import SourceFile
from sage.notifications import Audience

logger = logging.getLogger("sage.server")

WATCH_SECONDS = 2.0
MAX_WATCH_SECONDS = 60.0
# A scan of a huge base must not keep a core busy: it gets at most this share of the time.
WATCH_SHARE = 0.02
# The greeting goes out before the work that makes the first search quick takes its share.
PREPARE_SECONDS = 0.05


@contextlib.asynccontextmanager
async def upkeep(desk: Desk, audience: Audience, met: asyncio.Event) -> AsyncIterator[None]:
    """Keep the search index ready and clients informed for as long as the server serves."""
    tasks = [
        asyncio.create_task(_prepare(desk, met)),
        asyncio.create_task(_watch(desk, audience)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        desk.close()


async def _prepare(desk: Desk, met: asyncio.Event) -> None:
    """Build the index once a client is greeted: it never waits for that, only a search may."""
    await met.wait()
    await asyncio.sleep(PREPARE_SECONDS)
    try:
        await desk.warm()
    except Exception:  # only a preparation: the call that needs the index says what is wrong
        logger.exception("the index could not be made ready; the first search tries again")


async def _watch(desk: Desk, audience: Audience) -> None:
    """Tell the audience about changes; a call sees them by itself, without this."""
    before: tuple[SourceFile, ...] | None = None
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        after = await desk.files() if audience.present else None
        if before is not None and after is not None and before != after:
            await audience.tell(changed_addresses(before, after))
        before = before if after is None else after
        pause = max(WATCH_SECONDS, (loop.time() - started) / WATCH_SHARE)
        await asyncio.sleep(min(pause, MAX_WATCH_SECONDS))
