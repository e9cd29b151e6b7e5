"""A small knowledge base in two states, and what a healthy one answers in each."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sage.deadline import Clocks
from sage.knowledge import KnowledgeBase
from sage.settings import load_settings
from sage.token_counter import LightCounter
from tests.conftest import Clock, loaded_counter

LAYERS = ("core", "practices")
QUERIES = ("zebra", "added walrus")
BUDGET = 600

_STAYS: Mapping[str, str | bytes] = {
    "core/a.md": "# Alpha\n\nThe zebra is striped.\n\n## Second\n\nAnd a walrus beside it.\n",
    "core/deep/b.md": "---\ntitle: Beta\ntags: [animals]\n---\n# Beta\n\nNo zebra, a narwhal.\n",
    "practices/c.md": "# Gamma\n\nWalk the walrus, second to none.\n",
    "practices/bad.md": b"caf\xe9 is not UTF-8",
}
OLD: Mapping[str, str | bytes] = {
    **_STAYS,
    "practices/edited.md": "# Edited\n\nThe zebra before the edit.\n",
    "core/deep/gone.md": "# Gone\n\nA zebra that will leave.\n",
}
NEW: Mapping[str, str | bytes] = {
    **_STAYS,
    "practices/edited.md": "# Edited\n\nThe walrus after the edit, a second page.\n",
    "core/added.md": "# Added\n\nAn added page about a zebra.\n",
}


class World:
    """The files of a knowledge base and the cache folder of its user."""

    def __init__(self, folder: Path, pages: int = 0) -> None:
        """Args:
        pages: how many more there are, so that what is done takes longer.
        """
        self.root = (folder / "repo").resolve()
        self.cache = folder / "cache"
        self.counter = loaded_counter()
        self._elsewhere = folder / "fresh"
        self._healthy: dict[int, dict[str, Any]] = {}
        self._write(".knowledge/sage.yaml", "layers: [core, practices]\n")
        self._write("linked/d.md", "# Delta\n\nThe walrus in a linked folder.\n")
        for number in range(pages):
            text = f"# Page {number}\n\nA zebra has {number} stripes.\n\n## More\n\nAnd more.\n"
            self._write(f".knowledge/core/pages/{number}.md", text)
        self.to(OLD)
        (self.root / ".knowledge/practices/linked").symlink_to("../../linked")
        self._write("elsewhere/other.md", "# Epsilon\n\nA zebra behind a link.\n")
        (self.root / ".knowledge/practices/other.md").symlink_to("../../elsewhere/other.md")
        self.settings = load_settings({"root": self.root}, {"SAGE_CACHE_DIR": str(self.cache)})

    def to(self, state: Mapping[str, str | bytes]) -> None:
        """Write the files that differ and remove those that are too many."""
        for name in {*OLD, *NEW} - {*state}:
            (self.root / ".knowledge" / name).unlink(missing_ok=True)
        for name, text in state.items():
            self._write(f".knowledge/{name}", text)

    def open(self, counter: LightCounter | None = None) -> KnowledgeBase:
        """A start: nothing is loaded but the vocabulary, unless another is given."""
        clock = Clock()
        clocks = Clocks(monotonic=clock, now=clock, sleep=clock.tick)
        settings = replace(self.settings, cache_dir=self.cache)
        return KnowledgeBase(settings, clocks, counter=counter or self.counter)

    def forget(self) -> None:
        """An empty cache folder."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def healthy(self, state: Mapping[str, str | bytes]) -> dict[str, Any]:
        """What a base that never met a fault answers; the files must be in that state."""
        if id(state) not in self._healthy:
            kept, self.cache = self.cache, self._elsewhere
            self.forget()
            knowledge = self.open()
            self._healthy[id(state)] = {**answers(knowledge), "context": context(knowledge)}
            knowledge.close()
            self.forget()
            self.cache = kept
        return self._healthy[id(state)]

    def rest(self) -> list[str]:
        """What lies in the cache folder."""
        folder = self.cache / "index"
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def _write(self, name: str, text: str | bytes) -> None:
        path = self.root / name
        data = text if isinstance(text, bytes) else text.encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def answers(knowledge: KnowledgeBase) -> dict[str, Any]:
    """What a base answers, without what differs from call to call."""
    found = {query: search(knowledge, query) for query in QUERIES}
    return {**found, "get": get(knowledge), "info": info(knowledge)}


def search(knowledge: KnowledgeBase, query: str) -> dict[str, Any]:
    return _without(knowledge.search(query), "query_time_ms")


def get(knowledge: KnowledgeBase) -> dict[str, Any]:
    answer = knowledge.get("all")
    return {
        "content": answer["content"],
        **_without(answer["metadata"], "load_time_ms", "from_cache"),
    }


def context(knowledge: KnowledgeBase) -> dict[str, Any]:
    answer = knowledge.context("coding", token_budget=BUDGET, task="a zebra and a walrus")
    return _without(answer, "load_time_ms")


def info(knowledge: KnowledgeBase) -> dict[str, Any]:
    return _without(knowledge.info(), "cache", "uptime_seconds", "index")


def _without(answer: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in names}
