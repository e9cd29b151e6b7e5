"""What the page adds to the calls behind it, on 5,000 sections in one process.

    python -m benchmarks page

A key stroke is the part of the search page that the script asks for, against the search itself;
the preview of a context against the context.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.search import synthetic, synthetic_queries
from sage.knowledge import KnowledgeBase
from sage.page.site import PageRequest, Site
from sage.settings import load_settings

SECTIONS = 5_000
QUERIES = 60
BARS = {"a key stroke": 2.0, "a context preview": 1.5}


def main() -> int:
    """Print the table; the exit code is 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        knowledge = _knowledge(Path(folder))
        site = Site(knowledge)
        queries = synthetic_queries(2 * QUERIES)
        site.answer(PageRequest("/", {"q": [queries[0]], "part": ["1"]}))
        knowledge.context("coding", task=queries[0])
        # Each side is asked other questions: neither may profit from what the other left cached.
        rows = {
            "a key stroke": (
                _median(lambda query: knowledge.search(query, limit=20), queries[::2]),
                _median(
                    lambda query: site.answer(PageRequest("/", {"q": [query], "part": ["1"]})),
                    queries[1::2],
                ),
            ),
            "a context preview": (
                _median(lambda query: knowledge.context("coding", task=query), queries[::2]),
                _median(
                    lambda query: site.answer(
                        PageRequest(
                            "/context", {"task_type": ["coding"], "task": [query], "part": ["1"]}
                        )
                    ),
                    queries[1::2],
                ),
            ),
        }
        knowledge.close()
    print(f"{'':20} call ms  page ms  ratio  bar")
    for name, (call, page) in rows.items():
        print(f"{name:20} {call:7.2f}  {page:7.2f}  {page / call:5.2f}  {BARS[name]}")
    return int(any(page / call > BARS[name] for name, (call, page) in rows.items()))


def _knowledge(folder: Path) -> KnowledgeBase:
    for path, text in synthetic(SECTIONS).items():
        page = folder / "repo" / ".knowledge" / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
    environment = {"SAGE_CACHE_DIR": str(folder / "cache")}
    return KnowledgeBase(load_settings({"root": folder / "repo"}, environment, folder))


def _median(ask: Callable[[str], object], queries: list[str]) -> float:
    times = []
    for query in queries:
        started = time.perf_counter()
        ask(query)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    sys.exit(main())
