"""What a context holds of what its task needs, and what it costs, side by side in one run.

`context_tasks.yaml` names for each task the passages it cannot do without and the pages that help.
Counted are the must-have passages in the answer, the share of its tokens from pages that serve the
task, and the size of the whole answer as JSON: with the task given, by the recipe alone, and in
plain search results one after another. Only CPU time counts, and both sides of a ratio take turns.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sage.documents.document import Document
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.safe_yaml import load_yaml
from sage.sanitize import heading_sources
from sage.settings import load_settings

ROOT = Path(__file__).parent.parent
CORPUS = ROOT.parent / "shared" / "corpus" / "sage-kb"
if not CORPUS.is_dir():
    CORPUS = ROOT.parent.parent / "shared" / "corpus" / "sage-kb"
BASES = {"own": ROOT, "corpus": CORPUS}
TASKS = Path(__file__).parent / "context_tasks.yaml"
BUDGETS = (1_000, 2_000, 4_000)
RECALL_BARS = {1_000: 0.50, 2_000: 0.70, 4_000: 0.85}
USEFUL_BAR = 0.65
SPEED_BAR = 3.0
FIRST_BAR = 1.5
FIRST_PAGES = (500, 5_000)
FIRST_ROUNDS = 3
ROUNDS = 5
_FIRST_TASK = "retry the carrier lookup after a timeout"
HELD_SHARE = 0.5
"""A passage is in an answer when so much of its lines is."""


class Task(NamedTuple):
    """A task, the passages it cannot do without and the pages that help."""

    held_out: bool
    task_type: str
    task: str
    language: str | None
    files: tuple[str, ...]
    must: tuple[str, ...]
    should: tuple[str, ...]

    @property
    def is_absent(self) -> bool:
        """Whether the base holds nothing for it."""
        return not self.must and not self.should

    @property
    def pages(self) -> set[str]:
        """The pages that serve it."""
        return {topic.partition("#")[0] for topic in (*self.must, *self.should)}


class Outcome(NamedTuple):
    """What one answer was worth."""

    found: int
    wanted: int
    useful_tokens: int
    tokens: int
    answer_tokens: int


Answers = Callable[[Task, int], tuple[str, Mapping[str, Any]]]
"""From a task and a budget to the text and the whole answer."""


def main() -> int:
    """Print every figure; 1 when a bar is missed."""
    missed: list[str] = []
    tasks = read_tasks(TASKS)
    for name, root in BASES.items():
        if root.is_dir():
            knowledge = _open(root)
            missed += quality(knowledge, tasks[name], name)
            missed += _speed(knowledge, tasks[name], name)
    missed += first_calls()
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


def read_tasks(path: Path) -> dict[str, list[Task]]:
    """The tasks of a file, by the name of their base."""
    bases: Any = load_yaml(path.read_text("utf-8"), max_bytes=1_000_000)
    return {
        name: [
            Task(
                one["set"] == "held",
                one["task_type"],
                one.get("task", ""),
                one.get("language"),
                tuple(one.get("files", ())),
                tuple(one["must"]),
                tuple(one["should"]),
            )
            for one in tasks
        ]
        for name, tasks in bases.items()
    }


def quality(knowledge: KnowledgeBase, tasks: Sequence[Task], name: str) -> list[str]:
    """Print how well each way serves the tasks; the bars missed on the held-out ones."""
    judge = Judge(knowledge)
    ways: dict[str, Answers] = {
        "context with the task": judge.context,
        "recipe alone": judge.recipe,
        "search in a row": judge.search,
    }
    missed = []
    for held_out in (False, True):
        chosen = [task for task in tasks if task.held_out == held_out and not task.is_absent]
        print(f"\n{name}: {len(chosen)} tasks {'held out' if held_out else 'for tuning'}")
        for way, answers in ways.items():
            outcomes = {
                budget: [judge.outcome(task, budget, answers) for task in chosen]
                for budget in BUDGETS
            }
            print(f"  {way:<24}" + "".join(_figures(outcomes[budget]) for budget in BUDGETS))
            if held_out and way == "context with the task":
                missed += _missed_bars(outcomes, name)
    missed += _absent(judge, [task for task in tasks if task.is_absent], name)
    return missed


class Judge:
    """Answers tasks in several ways and counts what the answers hold."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._knowledge = knowledge
        self._pages = {document.topic: document for document in knowledge.documents()}
        self._topics = {document.path: document.topic for document in self._pages.values()}

    def context(self, task: Task, budget: int) -> tuple[str, Mapping[str, Any]]:
        """What the product answers."""
        options: Any = {"language": task.language} if task.language else {}
        answer: Any = self._knowledge.context(
            task.task_type,
            token_budget=budget,
            task=task.task,
            current_files=task.files,
            **options,
        )
        return answer["context"], answer

    def recipe(self, task: Task, budget: int) -> tuple[str, Mapping[str, Any]]:
        """What the product answers when it is not told the task."""
        return self.context(task._replace(task="", files=()), budget)

    def search(self, task: Task, budget: int) -> tuple[str, Mapping[str, Any]]:
        """The sections of search results, one after another."""
        text = ""
        words = task.task or " ".join(task.files)
        for result in self._knowledge.search(words, limit=50)["results"]:
            page = self._pages[result["topic"].partition("#")[0]]
            first, last = result["lines"]
            found = next((one for one in page.sections if one.start_line == first), None)
            source = page.text(found) if found else page.title
            heading = f"# {page.title} ({page.path}:{first}-{last})\n\n"
            longer = "\n\n".join(filter(None, (text, heading + source.strip())))
            if self._count({"context": longer}) > budget:
                break
            text = longer
        return text, {"context": text}

    def outcome(self, task: Task, budget: int, answers: Answers) -> Outcome:
        """What an answer holds for a task."""
        text, answer = answers(task, budget)
        lines = {line.strip() for line in text.splitlines()}
        found = sum(self._holds(lines, topic) for topic in task.must)
        useful = tokens = 0
        for path, part in _parts(text):
            size = self._knowledge.counter.count(part)
            tokens += size
            useful += size if self._topics[path] in task.pages else 0
        return Outcome(found, len(task.must), useful, tokens, self._count(answer))

    def _count(self, answer: Mapping[str, Any]) -> int:
        packed = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return self._knowledge.counter.count(packed)

    def _holds(self, lines: set[str], topic: str) -> bool:
        name, _, anchor = topic.partition("#")
        wanted = {line.strip() for line in _section(self._pages[name], anchor).splitlines()}
        wanted -= {""}
        return len(wanted & lines) >= HELD_SHARE * len(wanted)


def _section(page: Document, anchor: str) -> str:
    """A section with everything below it, without its heading."""
    for position, section in enumerate(page.sections):
        if section.anchor == anchor:
            last = page.sections[page.reach(position) - 1]
            return page.body[section.start : last.end].partition("\n")[2]
    raise LookupError(f"{page.topic} has no section #{anchor}")


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The path and the text of each part."""
    starts = list(heading_sources(text))
    ends = [*(start for start, _ in starts[1:]), len(text)]
    for (start, path), end in zip(starts, ends, strict=False):  # of no parts there is one end
        yield path, text[start:end]


def _figures(outcomes: Sequence[Outcome]) -> str:
    found = sum(one.found for one in outcomes) / sum(one.wanted for one in outcomes)
    useful = _useful(outcomes)
    largest = max(one.answer_tokens for one in outcomes)
    mean = statistics.mean(one.answer_tokens for one in outcomes)
    return f"  recall {found:>4.0%} useful {useful:>4.0%} mean {mean:>5.0f} most {largest:>5,} |"


def _useful(outcomes: Sequence[Outcome]) -> float:
    """The mean share of useful tokens."""
    return statistics.mean(one.useful_tokens / max(1, one.tokens) for one in outcomes)


def _missed_bars(outcomes: Mapping[int, Sequence[Outcome]], name: str) -> list[str]:
    missed = []
    for budget, ones in outcomes.items():
        recall = sum(one.found for one in ones) / sum(one.wanted for one in ones)
        if recall < RECALL_BARS[budget]:
            missed.append(f"{name}: {recall:.0%} of the must-haves in {budget:,} tokens")
        if _useful(ones) < USEFUL_BAR:
            missed.append(f"{name}: {_useful(ones):.0%} of {budget:,} tokens are useful")
        if any(one.answer_tokens > budget for one in ones):
            missed.append(f"{name}: an answer is over its {budget:,} tokens")
    return missed


def _absent(judge: Judge, tasks: Sequence[Task], name: str) -> list[str]:
    """What comes when the base holds nothing for a task: a note and little else."""
    silent = 0
    for task in tasks:
        _, answer = judge.context(task, 2_000)
        said = "note" in answer and "nothing" in answer["note"]
        silent += not said
        size = judge.outcome(task, 2_000, judge.context).answer_tokens
        print(f"  absent: {task.task[:60]:<60} {size:>5} tokens, {'said' if said else 'NOT SAID'}")
    return [f"{name}: {silent} absent topics without a word"] if silent else []


def _open(root: Path) -> KnowledgeBase:
    return open_knowledge(load_settings({"root": root}, {}, root))


def _speed(knowledge: KnowledgeBase, tasks: Sequence[Task], name: str) -> list[str]:
    """A warm context against a search for the same words; no answer is asked for twice."""
    searches, contexts = [], []
    judge = Judge(knowledge)
    for n in range(ROUNDS):
        for task in tasks:
            words = f"{task.task} {n}"
            searches.append(_cpu(partial(knowledge.search, words)))
            contexts.append(_cpu(partial(judge.context, task._replace(task=words), 4_000)))
    search, context = statistics.median(searches), statistics.median(contexts)
    print(f"\nwarm calls on {name}: search {search:.2f} ms, context {context:.2f} ms CPU")
    print(f"  ratio {context / search:.2f} (bar {SPEED_BAR})")
    return [f"a context is {context / search:.2f} searches"] if context > SPEED_BAR * search else []


def first_calls() -> list[str]:
    """The first context of a process against its first search, both with a kept index."""
    missed = []
    for pages in FIRST_PAGES:
        with tempfile.TemporaryDirectory() as folder:
            root, cache = Path(folder, "root"), Path(folder, "cache")
            _write_pages(root, pages)
            _first(root, cache, "search")  # builds the index and keeps it
            spent: dict[str, list[float]] = {"search": [], "context": []}
            for _ in range(FIRST_ROUNDS):
                for kind, seconds in spent.items():
                    seconds.append(_first(root, cache, kind))
        search, context = (statistics.median(spent[kind]) for kind in ("search", "context"))
        print(f"\nfirst call of a process on {pages:,} pages: search {search:.2f} s CPU, ", end="")
        print(f"context {context:.2f} s, ratio {context / search:.2f} (bar {FIRST_BAR})")
        if context > FIRST_BAR * search:
            missed.append(f"first context on {pages:,} pages: {context / search:.2f} searches")
    return missed


def _first(root: Path, cache: Path, kind: str) -> float:
    """The CPU seconds of a process that makes one call."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from sage.knowledge import open_knowledge\n"
        "from sage.settings import load_settings\n"
        "root, kind, task = Path(sys.argv[1]), sys.argv[2], sys.argv[3]\n"
        "settings = load_settings({'root': root}, dict(SAGE_CACHE_DIR=sys.argv[4]))\n"
        "knowledge = open_knowledge(settings)\n"
        "knowledge.search(task) if kind == 'search' else knowledge.context('coding', task=task)\n"
        "print(time.process_time())\n"
        "knowledge.close()\n"
    )
    command = [sys.executable, "-c", program, str(root), kind, _FIRST_TASK, str(cache)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return float(ended.stdout)


def _write_pages(root: Path, pages: int) -> None:
    """A base of so many pages, each of six sections of 60 words, the same in every run."""
    chance = random.Random(7)
    words = ["".join(chance.choices("aeiourstlnm", k=chance.randint(4, 9))) for _ in range(4_000)]
    words += _FIRST_TASK.split() * 8
    layers = ("core", "guidelines", "frameworks", "practices")
    for number in range(pages):
        sections = (
            f"## {' '.join(chance.choices(words, k=3))}\n\n{' '.join(chance.choices(words, k=60))}."
            for _ in range(6)
        )
        layer = layers[min(3, number % 16)]
        path = root / ".knowledge" / layer / f"area{number % 20}" / f"page{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        title = " ".join(chance.choices(words, k=3))
        path.write_text(f"# {title}\n\n" + "\n\n".join(sections) + "\n", "utf-8")


def _cpu(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1000


if __name__ == "__main__":
    sys.exit(main())
