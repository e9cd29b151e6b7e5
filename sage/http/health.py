"""Whether the server is ready, what it holds, and that it follows a checkout that changes.

A call sees a change by itself. Following the files here as well means that after a pull the
index is brought up to date at once, and no caller waits for it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sage.documents.files import SourceFile
from sage.errors import SageError
from sage.http.metrics import Histogram, family, gauge
from sage.knowledge import KnowledgeBase
from sage.server.async_knowledge import AsyncKnowledge
from sage.server.background import watch
from sage.server.tools import INFO

logger = logging.getLogger("sage.http")

# A flood of probes costs one look at the files in this time.
_FRESH_SECONDS = 1.0
_PREPARING = "the index is being prepared"

Info = dict[str, Any]


class Health:
    """Watches over one knowledge base."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        clock: Callable[[], float] = time.monotonic,
        on_warm: Callable[[], None] = lambda: None,
    ) -> None:
        """Args:
        on_warm: called once, when all is ready for the first time.
        """
        self._knowledge = AsyncKnowledge(knowledge)
        self._clock = clock
        self._on_warm = on_warm
        self._looking = asyncio.Lock()
        self._info: tuple[float, Info] | None = None
        self._warm = False
        self.reloads = Histogram("sage_reload_seconds", "Time to take in a changed checkout.")

    def watch_over(self, knowledge: KnowledgeBase) -> None:
        """Look at another base from now on: the same with other settings."""
        before, self._knowledge = self._knowledge, AsyncKnowledge(knowledge)
        self._info = None
        before.close()

    async def follow(self) -> None:
        """Make everything ready, then again whenever the files change, for ever."""
        await watch(self.take_in)

    async def take_in(self, before: tuple[SourceFile, ...] | None) -> tuple[SourceFile, ...] | None:
        """Make ready what changed since; the files as they are now."""
        files = await self._knowledge.files()
        if files is None or (self._warm and files == before):
            return before
        started = self._clock()
        try:
            await self._knowledge.warm()
        except SageError as error:
            logger.warning("not everything could be prepared: %s", error)
            return before
        seconds = self._clock() - started
        if not self._warm:
            self._on_warm()
        self._warm = True
        self.reloads.observe(seconds)
        changed = len(set(files).symmetric_difference(before or ()))
        fields = {"files": len(files), "changed": changed, "ms": round(seconds * 1000, 1)}
        logger.info("the changed files were read", extra={"fields": fields})
        return files

    async def trouble(self) -> str:
        """Why no call should be sent here yet; empty when all is ready."""
        return self._trouble_in(await self.info()) if self._warm else _PREPARING

    async def info(self) -> Info:
        """The state of the knowledge base, at most a moment old."""
        async with self._looking:
            if self._info is None or self._clock() - self._info[0] > _FRESH_SECONDS:
                self._info = (self._clock(), await self._knowledge.call(INFO, {}))
            return self._info[1]

    def _trouble_in(self, info: Info) -> str:
        if not self._warm:
            return _PREPARING
        return "; ".join(info["reasons"]) if info["status"] == "unhealthy" else ""

    async def families(self) -> list[Iterator[str]]:
        """What is held, as metrics."""
        info = await self.info()
        base, index, is_ready = info["knowledge_base"], info["index"], not self._trouble_in(info)
        layers: dict[tuple[str, ...], float] = {
            (layer["name"],): layer["files"] for layer in base["layers"] if "files" in layer
        }
        return [
            gauge("sage_ready", "Whether calls should be sent here.", float(is_ready)),
            gauge("sage_healthy", "Whether all is served.", float(info["status"] == "healthy")),
            family("sage_documents", "Documents served.", "gauge", ("layer",), layers),
            *_known("sage_knowledge_bytes", "Size of the documents.", base, "total_size_kb", 1024),
            *_known("sage_index_documents", "Documents in the index.", index, "documents"),
            *_known("sage_index_sections", "Sections in the index.", index, "sections"),
            *_known("sage_index_bytes", "Size of the index.", index, "size_kb", 1024),
            gauge("sage_problems", "Problems found in files.", info["problems"]["count"]),
            gauge("sage_cache_hit_ratio", "Answers that were ready.", info["cache"]["hit_rate"]),
            gauge("sage_uptime_seconds", "Time since the start.", info["uptime_seconds"]),
            *_published(info),
            self.reloads.lines(),
        ]

    def close(self) -> None:
        self._knowledge.close()


def _published(info: Info) -> Iterator[Iterator[str]]:
    """Of a replica which generations it serves, and how far they may be behind."""
    if "published" not in info:
        return
    labels = ("source", "generation", "commit")
    served = {tuple(str(one[name]) for name in labels): 1.0 for one in info["published"]}
    yield family("sage_generation", "What is served of each source.", "gauge", labels, served)
    words = "Time since what is served was known to be the last that was published."
    yield gauge("sage_behind_seconds", words, info["behind_seconds"])


def _known(
    name: str, words: str, values: Mapping[str, Any], key: str, unit: float = 1
) -> Iterator[Iterator[str]]:
    """A gauge of a number, once it is known."""
    if key in values:
        yield gauge(name, words, values[key] * unit)
