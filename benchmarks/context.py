"""What a context holds, how well it fills its budget and what it costs, side by side in one run.

Twenty tasks name the documents a senior colleague would hand over. Counted is how many of them
are in the pack: with the task given, by the recipe alone, and in plain search results one after
another. Only CPU time counts, and both sides of a ratio take turns.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sage.answers import ContextAnswer
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.settings import load_settings
from sage.yamltext import load_yaml

ROOT = Path(__file__).parent.parent
CORPUS = ROOT.parent / "shared" / "corpus" / "sage-kb"
TASKS = Path(__file__).parent / "context_tasks.yaml"
BUDGET = 4_000
BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)
WANTED_BAR = 0.9
USED_BAR = 0.9
SPEED_BAR = 3.0
ROUNDS = 7


class Task(NamedTuple):
    """A task as a colleague would state it, and the documents that should come with it."""

    task_type: str
    language: str
    task: str
    wanted: frozenset[str]


def main() -> int:
    """Print every figure; 1 when a bar is missed."""
    tasks = read_tasks()
    own = _open(ROOT)
    missed = _wanted(own, tasks)
    for root, name in ((ROOT, "our own pages"), (CORPUS, "a base of 184 pages")):
        if root.is_dir():
            knowledge = _open(root)
            missed += _used(knowledge, tasks, name)
            missed += _speed(knowledge, tasks, name)
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


def read_tasks() -> list[Task]:
    """The tasks of `context_tasks.yaml`."""
    tasks: Any = load_yaml(TASKS.read_text("utf-8"))
    return [
        Task(one["task_type"], one["language"], one["task"], frozenset(one["wanted"]))
        for one in tasks
    ]


def _open(root: Path) -> KnowledgeBase:
    return open_knowledge(load_settings({"root": root}, {}, root))


def _wanted(knowledge: KnowledgeBase, tasks: Sequence[Task]) -> list[str]:
    """How many of the wanted documents each way brings within the budget."""
    ways: dict[str, Callable[[Task], set[str]]] = {
        "context with the task": lambda task: _documents(_context(knowledge, task)),
        "recipe alone": lambda task: _documents(_context(knowledge, task._replace(task=""))),
        "search results in a row": lambda task: _searched(knowledge, task),
    }
    total = sum(len(task.wanted) for task in tasks)
    print(f"wanted documents in {BUDGET:,} tokens, {len(tasks)} tasks, {total} documents")
    shares = {}
    for name, way in ways.items():
        found = [task.wanted & way(task) for task in tasks]
        whole = sum(one == task.wanted for one, task in zip(found, tasks, strict=True))
        shares[name] = sum(map(len, found)) / total
        print(f"  {name:<26} {shares[name]:>6.1%}   all of them for {whole} tasks")
    share = shares["context with the task"]
    return [f"{share:.1%} of the wanted documents"] if share < WANTED_BAR else []


def _context(knowledge: KnowledgeBase, task: Task, budget: int = BUDGET) -> ContextAnswer:
    return knowledge.context(
        task.task_type, language=task.language, token_budget=budget, task=task.task
    )


def _documents(answer: ContextAnswer) -> set[str]:
    return {source["topic"].partition("#")[0] for source in answer["sources"]}


def _searched(knowledge: KnowledgeBase, task: Task) -> set[str]:
    """The documents of search results whose sections fit the budget one after another."""
    found: set[str] = set()
    used = 0
    for result in knowledge.search(task.task, limit=50)["results"]:
        used += result["tokens"]
        if used > BUDGET:
            break
        found.add(result["topic"].partition("#")[0])
    return found


def _used(knowledge: KnowledgeBase, tasks: Sequence[Task], name: str) -> list[str]:
    """How much of each budget is used, at least and on the average."""
    print(f"\nshare of the budget used on {name}, with and without the task")
    missed = []
    asked = [*tasks, *(task._replace(task="") for task in tasks)]
    for budget in BUDGETS:
        answers = [_context(knowledge, task, budget) for task in asked]
        # A pack that holds everything there is cannot hold more.
        shares = [one["token_count"] / budget for one in answers if not one["complete"]]
        print(f"  {budget:>6,} tokens: least {min(shares):.1%}, mean {statistics.mean(shares):.1%}")
        if min(shares) < USED_BAR:
            missed.append(f"{min(shares):.1%} of {budget:,} tokens used on {name}")
    return missed


def _speed(knowledge: KnowledgeBase, tasks: Sequence[Task], name: str) -> list[str]:
    """A warm context against a search for the same words; no answer is asked for twice."""
    searches, contexts = [], []
    for n in range(ROUNDS):
        for task in tasks:
            words = f"{task.task} {n}"
            searches.append(_cpu(partial(knowledge.search, words)))
            contexts.append(_cpu(partial(_context, knowledge, task._replace(task=words))))
    search, context = statistics.median(searches), statistics.median(contexts)
    print(f"\nwarm calls on {name}: search {search:.2f} ms, context {context:.2f} ms CPU")
    print(f"  ratio {context / search:.2f} (bar {SPEED_BAR})")
    return [f"a context is {context / search:.2f} searches"] if context > SPEED_BAR * search else []


def _cpu(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1000


if __name__ == "__main__":
    sys.exit(main())
