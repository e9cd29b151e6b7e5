"""The slowest answer to hostile queries and hostile files, on a base of 5,000 sections.

    python -m benchmarks.hostile [--sections 5000]

Times are CPU seconds of the thread that answers, so that a busy machine changes nothing. The bar:
any query and any file is answered, or refused with a code, within one second.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from benchmarks.search import synthetic
from sage.documents.markdown import MAX_LINES
from sage.errors import SageError
from sage.knowledge import KnowledgeBase
from sage.settings import load_settings

LIMIT_SECONDS = 1.0
MEGABYTE = 1_000_000
SHOWN = 8

Timed = tuple[float, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the slowest; the exit code is 1 when one passes the bar."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sections", type=int, default=5_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        pages = synthetic(options.sections)
        knowledge = _base(Path(folder), pages)
        common = _common_words(pages)
        queries = list(hostile_queries(common))
        missed = [
            _report("search", (_timed(knowledge.search, query) for query in queries)),
            _report("context", (_timed(_context(knowledge), query) for query in queries)),
            _report("get", (_timed(_get(knowledge), query) for query in queries)),
            _report("files", _files(knowledge)),
        ]
        knowledge.close()
    return max(missed)


def hostile_queries(common: Sequence[str]) -> Iterator[str]:
    """Queries that are known to break search engines, and the heaviest that ours can be asked."""
    yield from ("*", "*a*", "a*", "?", "[a TO z]", "abcde~3", "ba*~2", "{a TO *}", "title:*", "^4")
    yield from ("*" * 5_000, "a* " * 300, "(" * 5_000, "(" * 250 + ")" * 250, "NOT " * 100 + "x")
    yield from ("a" * MEGABYTE, "a " * 500_000, '"' * 1_000, '"a ' * 400, "-a " * 300, "- " * 400)
    yield from (
        "日" * 512,
        "日本語データベース" * 60,
        "\u0301" * 512,
        "é" * 512,
        "🎉" * 512,
        "\0" * 512,
    )
    yield from (" ".join(f"t{number}" for number in range(10_000)), "1 " * 256, "1.1" * 170)
    yield from ("layer:practices " * 30, "tag:x " * 80, "lang:python", "layer:practices -ba")
    yield from (
        "x" * 64 + " " + "y" * 64,
        "ab" * 256,
        "A" * 512,
        "aB" * 256,
        "a_b" * 170,
        "a.b" * 170,
    )
    words = list(common)
    for count in (1, 2, 4, 8, 16, 32, 64, 128, 512):
        yield " ".join(words[:count])
        yield '"' + " ".join(words[:count]) + '"'
        yield " ".join(f'"{a} {b}"' for a, b in pairwise(words[:count]))
        yield " ".join(f"-{word}" for word in words[:count])
        yield " ".join(word[:-1] for word in words[:count])
        yield " ".join(word + "q" for word in words[:count])
        yield "".join(word.title() for word in words[:count])
        yield "_".join(words[:count])
    chance = random.Random(3)
    for _ in range(60):
        parts = chance.choices(
            [*words[:40], "*", '"', "-", "(", "layer:practices", "日本", "~2"], k=40
        )
        yield chance.choice((" ", "")).join(parts)


def hostile_files() -> Iterator[tuple[str, str]]:
    """Pages as large as one may be, each the worst for some part of a parser or an index."""
    shapes = {
        "open brackets": "[",
        "brackets": "[a](",
        "images": "![",
        "stars": "*a_",
        "backticks": "`a",
        "fences": "```\n",
        "headings": "# a\n",
        "all headings the same": "## Same\n\n",
        "setext": "a\n===\n",
        "deep headings": "###### a\n",
        "quotes": ">",
        "quoted lines": "> > > a\n",
        "lists": "- a\n",
        "nested lists": "- - - a\n",
        "numbers": "1. a\n",
        "tables": "|a|b|\n|-|-|\n",
        "pipes": "|",
        "html": "<a>",
        "comments": "<!-- a\n",
        "definitions": "[a]: b\n",
        "entities": "&amp;",
        "backslashes": "\\",
        "blank lines": "\n",
        "blanks": " ",
        "tabs": "\t",
        "carriage returns": "\r",
        "rules": "---\n",
        "one word": "a",
        "short words": "a ",
        "CJK": "日本語",
        "accents": "e\u0301",
        "emoji": "🎉",
        "invisible": "\u200b",
        "camels": "aB",
        "snakes": "a_",
        "flags": "--a-b ",
        "numbers with dots": "1.",
        "links": "[a](b.md) ",
        "paths": "`core/a.md` ",
        "NUL": "a\0",
    }
    for name, shape in shapes.items():
        yield name, shape * (900_000 // len(shape.encode()))
        if "\n" in shape:
            yield f"{name}, as many as are parsed", shape * (MAX_LINES // shape.count("\n") - 2)
    yield "different words", " ".join(f"w{number:x}" for number in range(120_000))
    yield "different headings", "".join(f"# h{number}\n" for number in range(90_000))
    yield "nested quotes", "".join(">" * depth + " a\n" for depth in range(1_200))
    yield "nested items", "".join("  " * depth + "- a\n" for depth in range(900))
    yield "front matter", "---\n" + "a: [" * 4_000 + "\n---\n# a\n"
    yield "many keys", "---\n" + "".join(f"k{n}: v\n" for n in range(1_500)) + "---\n# a\n"


def _base(folder: Path, pages: dict[str, str]) -> KnowledgeBase:
    for name, text in pages.items():
        path = folder / "repo" / ".knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    environment = {"SAGE_CACHE_DIR": str(folder / "cache")}
    knowledge = KnowledgeBase(load_settings({"root": folder / "repo"}, environment))
    knowledge.warm()
    knowledge.context("coding")
    return knowledge


def _common_words(pages: dict[str, str]) -> list[str]:
    counts: dict[str, int] = {}
    for text in pages.values():
        for word in text.split():
            if word.isalpha():
                counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: -counts[word])[:600]


def _context(knowledge: KnowledgeBase) -> Callable[[str], object]:
    return lambda query: knowledge.context("debugging", task=query, current_files=[query[:200]])


def _get(knowledge: KnowledgeBase) -> Callable[[str], object]:
    return lambda query: knowledge.get("all", query)


def _timed(ask: Callable[[str], object], query: str) -> Timed:
    started = time.thread_time()
    with suppress(SageError):  # refused with a code
        ask(query)
    shown = query if len(query) <= 40 else f"{query[:30]}… ({len(query):,} characters)"
    return time.thread_time() - started, repr(shown)


def _files(knowledge: KnowledgeBase) -> Iterator[Timed]:
    """Save each as a page: the first search reads and indexes it, a call reads it."""
    page = knowledge.settings.knowledge_dir / "practices" / "hostile.md"
    for name, text in hostile_files():
        page.write_text(text, "utf-8")
        time.sleep(0.06)  # a file just written is not yet trusted to be whole
        for what, ask in {
            "search": lambda _: knowledge.search("bada hostile"),
            "get": lambda _: knowledge.get("practices", "hostile"),
            "context": lambda _: knowledge.context("coding", task="hostile"),
        }.items():
            seconds, _ = _timed(ask, "")
            yield seconds, f"{name}, {what}"
        page.unlink()
        knowledge.search("bada")


def _report(name: str, times: Iterable[Timed]) -> int:
    ordered = sorted(times, reverse=True)
    late = [one for one in ordered if one[0] > LIMIT_SECONDS]
    bar = f"{len(late)} above {LIMIT_SECONDS:.0f} CPU s"
    print(f"\n{name}: {len(ordered)} calls, {bar}; the slowest:", flush=True)
    for seconds, what in ordered[: max(SHOWN, len(late))]:
        print(f"  {seconds:7.3f} s  {what}")
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
