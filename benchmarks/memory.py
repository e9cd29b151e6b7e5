"""What a server's memory grows by under many different calls: `python -m benchmarks.memory`.

A base of 10 MB is asked 10,000 different questions by every tool, and 20,000 mixed ones. The bar:
at most 100 MB above the memory after the first call of each tool.
"""

import argparse
import random
import tempfile
from pathlib import Path

from sage.knowledge import KnowledgeBase
from sage.server.process import keep_one_arena
from sage.settings import load_settings

WORDS = [f"word{number}" for number in range(4_000)]


def write_base(root: Path, pages: int, page_bytes: int) -> None:
    """Pages of random words under headings, in every layer."""
    chance = random.Random(7)
    for number in range(pages):
        layer = ("core", "guidelines", "frameworks", "practices")[number % 4]
        parts, size = [f"# Page {number}\n"], 0
        while size < page_bytes:
            line = " ".join(chance.choices(WORDS, k=80))
            parts.append(f"\n## Part {len(parts)} {chance.choice(WORDS)}\n\n{line}.\n")
            size += len(parts[-1])
        path = root / ".knowledge" / layer / f"page-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(parts), "utf-8")


def resident_mb() -> float:
    """What the process holds now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def ask(knowledge: KnowledgeBase, number: int, chance: random.Random) -> None:
    """A call that was not made before."""
    words = " ".join(chance.choices(WORDS, k=3))
    match number % 4:
        case 0:
            knowledge.search(f"{words} {number}")
        case 1:
            knowledge.get("all", max_tokens=1_000 + number)
        case 2:
            knowledge.context(
                "coding", task=f"{words} {number}", token_budget=1_000 + number % 9_000
            )
        case _:
            knowledge.get("all", f"page-{number % 400}", max_tokens=500 + number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--page-bytes", type=int, default=10_000)
    given = parser.parse_args()
    keep_one_arena()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "base"
        write_base(root, given.pages, given.page_bytes)
        environment = {"SAGE_CACHE_DIR": str(Path(folder) / "cache")}
        knowledge = KnowledgeBase(load_settings({"root": root}, environment))
        chance = random.Random(1)
        for number in range(4):
            ask(knowledge, number, chance)
        start = resident_mb()
        print(f"after one call of each kind: {start:.0f} MB")
        most = 0.0
        for number in range(4, given.calls):
            ask(knowledge, number, chance)
            if number % max(1, given.calls // 10) == 0:
                most = max(most, resident_mb() - start)
                print(f"after {number} calls: {resident_mb() - start:+.0f} MB")
        most = max(most, resident_mb() - start)
        print(f"{given.calls} different calls: at most {most:+.0f} MB (bar 100)")


if __name__ == "__main__":
    main()
