"""A cluster against the embedded engine: `python -m benchmarks.cluster agree|kill|size`.

    agree   quality, verdicts and contexts of both engines on every set, side by side
    kill    three nodes, one killed and a generation published while clients ask
    size    publishing, visibility and searches at a number of sections, or of the pages of a
            repository, against raw requests

The nodes are those of the tests: OpenSearch 2.5, Java and npm are needed, 1 GB for each node.
"""

import argparse
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import context
from benchmarks.both_engines import Both
from benchmarks.cluster_size import LIMIT, WORDS, size
from benchmarks.retrieval_sets import Query, load_set, opened, set_names
from sage.deadline import Deadline
from sage.errors import SageError
from sage.knowledge import KnowledgeBase
from sage.search.evaluation import discounted
from sage.settings import load_settings
from tests.cluster.nodes import Node, running

NDCG_BAR, VERDICT_BAR, PACK_BAR = 0.01, 0.98, 0.95
_CALL_MS = 20_000
_SECONDS = re.compile(r"[0-9]+ s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is named; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", default="agree", choices=("agree", "kill", "size"))
    parser.add_argument("--sets", default=",".join(set_names()))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--sections", type=int, default=5_000)
    parser.add_argument("--root", type=Path, help="a repository whose pages are measured")
    parser.add_argument("--rounds", type=int, default=3, help="of a publish, and of 60 searches")
    given = parser.parse_args(arguments)
    with running(3 if given.what == "kill" else 1) as nodes:
        if given.what == "agree":
            missed = agree(nodes[0], given.sets.split(","))
        elif given.what == "kill":
            missed = kill(nodes, given.clients, given.seconds)
        else:
            missed = size(nodes[0], given.sections, given.rounds, given.root)
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


def agree(node: Node, names: Sequence[str]) -> list[str]:
    """Both engines on the same questions and tasks; the bars that are missed."""
    missed: list[str] = []
    verdicts: Counter[bool] = Counter()
    print(f"{'set':<10}{'queries':>8}{'files':>8}{'cluster':>8}{'verdicts':>9}{'top 10':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            asked = load_set(name)
            both = Both(opened(asked, Path(folder, name)), [node.url], f"agree{len(name)}{name}")
            both.publish()
            row = Agreement()
            for query in asked.queries:
                row.ask(query, both)
            print(row.line(name), flush=True)
            verdicts.update(row.verdicts)
            if abs(row.ndcg(1) - row.ndcg(0)) > NDCG_BAR * row.ndcg(0):
                missed.append(f"nDCG@10 on {name}: {row.ndcg(0):.4f} and {row.ndcg(1):.4f}")
    share = verdicts[True] / max(1, verdicts.total())
    print(f"the same verdict on {share:.1%} of {verdicts.total()} queries")
    missed += [f"the same verdicts: {share:.1%}"] if share < VERDICT_BAR else []
    return missed + _packs(node)


@dataclass
class Agreement:
    """What both engines said to the queries of one set."""

    scores: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    verdicts: Counter[bool] = field(default_factory=Counter)
    lists: Counter[bool] = field(default_factory=Counter)

    def ask(self, query: Query, both: Both) -> None:
        """One query, by both."""
        answers = [one.search(query.text, limit=LIMIT) for one in (both.files, both.cluster)]
        paths = [
            [result["path"].removeprefix(".knowledge/") for result in answer["results"]]
            for answer in answers
        ]
        for scores, found in zip(self.scores, paths, strict=True):
            unique = list(dict.fromkeys(found))
            grades = [query.grades.get(path, 0.0) for path in unique]
            grades += [0.0] * (LIMIT - len(grades))
            scores.append(discounted(grades, list(query.grades.values())))
        self.verdicts[answers[0]["found"] == answers[1]["found"]] += 1
        self.lists[paths[0] == paths[1]] += 1

    def ndcg(self, which: int) -> float:
        """Of the files (0) or the cluster (1)."""
        return statistics.fmean(self.scores[which])

    def line(self, name: str) -> str:
        same, lists = (one[True] / one.total() for one in (self.verdicts, self.lists))
        count = len(self.scores[0])
        figures = f"{self.ndcg(0):>8.4f}{self.ndcg(1):>8.4f}{same:>9.1%}{lists:>8.1%}"
        return f"{name:<10}{count:>8}{figures}"


def _packs(node: Node) -> list[str]:
    """The contexts of the tasks of every base, by both engines."""
    same: Counter[bool] = Counter()
    for name, tasks in context.read_tasks(context.TASKS).items():
        root = context.BASES[name]
        if not root.is_dir():
            continue
        with tempfile.TemporaryDirectory() as cache:
            settings = load_settings({"root": root}, {"SAGE_CACHE_DIR": cache}, root)
            both = Both(KnowledgeBase(settings), [node.url], f"packs{name}")
            both.publish()
            for task in tasks:
                packs = [_pack(one, task) for one in (both.files, both.cluster)]
                same[packs[0] == packs[1]] += 1
    share = same[True] / max(1, same.total())
    print(f"the same context for {share:.1%} of {same.total()} tasks")
    return [f"the same contexts: {share:.1%}"] if share < PACK_BAR else []


def _pack(knowledge: KnowledgeBase, task: context.Task) -> list[tuple[str, str]]:
    answer = knowledge.context(
        task.task_type, language=task.language or "python", task=task.task, current_files=task.files
    )
    return [(one["topic"], one["lines"]) for one in answer["sources"]]


class Clients:
    """Many who ask the same replicas until they are told to stop."""

    def __init__(self, replicas: Sequence[KnowledgeBase], count: int) -> None:
        self.done = threading.Event()
        self.answers: Counter[str] = Counter()
        self.times: list[float] = []
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._ask, args=(replicas[number % len(replicas)], number))
            for number in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.done.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, replica: KnowledgeBase, number: int) -> None:
        chance = random.Random(number)
        while not self.done.is_set():
            # Different questions: one that was asked before is answered without the cluster.
            words = chance.sample(WORDS[:50], 4)
            started = time.perf_counter()
            said = _asked(replica, f"marker {' '.join(words)}")
            with self._lock:
                self.answers[said] += 1
                self.times.append(time.perf_counter() - started)


def _asked(replica: KnowledgeBase, query: str) -> str:
    """What came of one search: the generations whose marks its results carry, or the error."""
    try:
        answer = replica.search(query, limit=20, max_tokens=8_000, deadline=Deadline(_CALL_MS))
    except SageError as error:
        return f"{error.code}: {str(error)[:80]}"
    marks = {result["title"].partition(" ")[0] for result in answer["results"]}
    if not marks:
        return "WRONG: nothing found"
    if len(marks) > 1:
        return f"WRONG: {' and '.join(sorted(marks))}"
    if answer.get("complete") is False:  # the answer itself says what it lacks
        return f"one generation, and says: {_SECONDS.sub('N s', answer.get('note', ''))[:150]}"
    return "one generation"


def kill(nodes: Sequence[Node], clients: int, seconds: float) -> list[str]:
    """A node dies and a generation is published while clients ask; the bars that are missed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repo")
        _write_marked(root, "alpha")
        settings = load_settings({"root": root}, {"SAGE_CACHE_DIR": f"{folder}/cache"}, root)
        both = Both(KnowledgeBase(settings), [node.url for node in nodes], "killed")
        both.publish()
        # A copy of every part lies on another node before one may die.
        nodes[0].ask("GET", "/_cluster/health?wait_for_status=green&timeout=60s")
        crowd = Clients([both.cluster, both.replica()], clients)
        crowd.start()
        time.sleep(seconds / 3)
        nodes[-1].kill()
        time.sleep(seconds / 3)
        _write_marked(root, "beta")
        moved = both.publish().moved
        time.sleep(seconds / 3)
        crowd.stop()
    print(f"{crowd.answers.total()} searches of {clients} clients, p50 {_middle(crowd.times)}")
    for said, count in crowd.answers.most_common():
        print(f"  {count:>7}  {said}")
    wrong = [f"{count} x {said}" for said, count in crowd.answers.items() if "one g" not in said]
    return wrong + ([] if moved else ["nothing was published with a node gone"])


def _write_marked(root: Path, mark: str) -> None:
    """Fifty pages that all say which generation they are of."""
    chance = random.Random(5)
    for number in range(50):
        page = root / ".knowledge" / "practices" / f"page-{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(chance.choices(WORDS[:50], k=60))
        page.write_text(f"# {mark} page {number}\n\nmarker {mark} {text}.\n", "utf-8")


def _middle(times: Sequence[float]) -> str:
    return f"{statistics.median(times) * 1000:.0f} ms" if times else "none"


if __name__ == "__main__":
    sys.exit(main())
