"""What an agent pays until it holds the page it needs, against grep, in one run.

    python -m benchmarks.episodes [--sets k8s,own] [--questions 100] [--max-tokens 1000]

A mechanical reader asks once. When the answer holds a whole section of a relevant page, the episode
is settled by one call; otherwise it reads the results in their order, five at most, until one is of
a relevant page. Tokens are those of each answer as compact JSON, which is what hosts hand to a
model. The other reader greps for the words of the question, sees for each of the ten files with
most of them the first lines that match, and reads the files in that order, five at most.
"""

import argparse
import json
import re
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines import content
from benchmarks.retrieval_sets import Query, RetrievalSet, load_set, opened, set_names
from sage.documents.document import parse_document
from sage.documents.plain_text import as_shown
from sage.knowledge import KnowledgeBase
from sage.token_counter import TokenCounter
from sage.values import DEFAULT_ANSWER

READ_AT_MOST = 5
GREP_FILES, GREP_LINES, GREP_WIDTH = 10, 3, 200
LEAST_WORDS = 8
"""A section of fewer words settles nothing, unless the page has no longer one."""
BARS = {"tokens": 1_100, "settled": 0.5, "reached": 0.85}


@dataclass(frozen=True)
class Episode:
    """How one question went."""

    reached: bool
    settled: bool
    calls: int
    tokens: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 when a bar is missed over all sets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default=",".join(set_names()))
    parser.add_argument("--questions", type=int, default=100, help="of each set at most")
    parser.add_argument("--max-tokens", type=int, default=DEFAULT_ANSWER)
    options = parser.parse_args(arguments)
    print(
        f"{'':<10}{'questions':>10} {'':>6} {'reached':>8}{'settled':>9}{'calls':>7}{'tokens':>8}"
    )
    ours: list[Episode] = []
    greps: list[Episode] = []
    counter = TokenCounter()
    for name in options.sets.split(","):
        questions = load_set(name, options.questions)
        with tempfile.TemporaryDirectory() as folder:
            reader = SageReader(
                opened(questions, Path(folder)), questions, counter, options.max_tokens
            )
            mine = [reader.episode(query) for query in questions.queries]
        grep = GrepReader(questions, counter)
        others = [grep.episode(query) for query in questions.queries]
        print(_row(name, "sage", mine), flush=True)
        print(_row("", "grep", others), flush=True)
        ours += mine
        greps += others
    print(_row("all", "sage", ours))
    print(_row("", "grep", greps))
    missed = _missed(ours)
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


class SageReader:
    """Asks `sage_search`, then reads with `sage_get_knowledge`."""

    def __init__(
        self,
        knowledge: KnowledgeBase,
        questions: RetrievalSet,
        counter: TokenCounter,
        max_tokens: int = DEFAULT_ANSWER,
    ) -> None:
        self._knowledge = knowledge
        self._pages = questions.pages
        self._counter = counter
        self._max_tokens = max_tokens
        self._sections: dict[str, list[str]] = {}

    def episode(self, query: Query) -> Episode:
        """Ask, and read until a relevant page is held."""
        answer = self._knowledge.search(query.text, max_tokens=self._max_tokens)
        tokens = self._count(answer)
        if any(self._holds(result, query.grades) for result in answer["results"]):
            return Episode(True, True, 1, tokens)
        calls = 1
        for result in answer["results"][:READ_AT_MOST]:
            tokens += self._count(self._knowledge.get("all", result["topic"]))
            calls += 1
            if query.grades.get(_page(result), 0) > 0:
                return Episode(True, False, calls, tokens)
        return Episode(False, False, calls, tokens)

    def _holds(self, result: Mapping[str, Any], grades: Mapping[str, float]) -> bool:
        page = _page(result)
        if not grades.get(page, 0) > 0:
            return False
        shown = _words(result["snippet"])
        return any(section in shown for section in self._sections_of(page))

    def _sections_of(self, page: str) -> list[str]:
        """The words that a reader sees below each heading of a page, as one line each."""
        known = self._sections.get(page)
        if known is None:
            document = parse_document(self._pages[page], f".knowledge/{page}", "")
            seen = (as_shown(document.text(one)) for one in document.sections)
            texts = [text.split("\n", 1) for text in seen]
            below = [
                _words(text[-1] if one.level else "\n".join(text))
                for one, text in zip(document.sections, texts, strict=True)
            ]
            long = [text for text in below if text.count(" ") > LEAST_WORDS]
            known = self._sections[page] = long or [max(below, key=len, default="")]
        return [text for text in known if text]

    def _count(self, answer: object) -> int:
        return self._counter.count(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


class GrepReader:
    """Looks for the words of the question in every file, then reads whole files."""

    def __init__(self, questions: RetrievalSet, counter: TokenCounter) -> None:
        self._pages = {path: text.lower() for path, text in questions.pages.items()}
        self._texts = questions.pages
        self._counter = counter

    def episode(self, query: Query) -> Episode:
        """Grep, and read until a relevant page is held."""
        words = content(query.text)
        held = {path: sum(word in text for word in words) for path, text in self._pages.items()}
        best = sorted((path for path in held if held[path]), key=lambda path: (-held[path], path))
        best = best[:GREP_FILES]
        tokens = self._counter.count("\n".join(self._lines(path, words) for path in best))
        calls = 1
        for path in best[:READ_AT_MOST]:
            tokens += self._counter.count(self._texts[path])
            calls += 1
            if query.grades.get(path, 0) > 0:
                return Episode(True, False, calls, tokens)
        return Episode(False, False, calls, tokens)

    def _lines(self, path: str, words: Sequence[str]) -> str:
        lines = enumerate(self._texts[path].splitlines(), 1)
        matching = [
            f"{path}:{number}:{line[:GREP_WIDTH]}"
            for number, line in lines
            if any(word in line.lower() for word in words)
        ]
        return "\n".join(matching[:GREP_LINES])


def _page(result: Mapping[str, Any]) -> str:
    return str(result["path"]).removeprefix(".knowledge/")


def _words(text: str) -> str:
    """The words of a text with one blank around each: marks and line ends do not matter."""
    words = re.findall(r"[^\W_]+", text)
    return f" {' '.join(words)} " if words else ""


def _row(name: str, reader: str, episodes: Sequence[Episode]) -> str:
    reached, settled = _reached(episodes), _settled(episodes)
    calls = statistics.median(one.calls for one in episodes)
    tokens = statistics.median(one.tokens for one in episodes)
    count = str(len(episodes)) if reader == "sage" else ""
    figures = f"{reached:>8.0%}{settled:>9.0%}{calls:>7.1f}{tokens:>8.0f}"
    return f"{name:<10}{count:>10} {reader:>6} {figures}"


def _missed(episodes: Sequence[Episode]) -> list[str]:
    tokens = statistics.median(one.tokens for one in episodes)
    settled, reached = _settled(episodes), _reached(episodes)
    met = {
        f"at most {BARS['tokens']:,} tokens at the median": tokens <= BARS["tokens"],
        f"at least {BARS['settled']:.0%} settled by one call": settled >= BARS["settled"],
        f"at least {BARS['reached']:.0%} of pages reached": reached >= BARS["reached"],
    }
    return [bar for bar, is_met in met.items() if not is_met]


def _reached(episodes: Sequence[Episode]) -> float:
    return sum(one.reached for one in episodes) / max(len(episodes), 1)


def _settled(episodes: Sequence[Episode]) -> float:
    return sum(one.settled for one in episodes) / max(len(episodes), 1)


if __name__ == "__main__":
    raise SystemExit(main())
