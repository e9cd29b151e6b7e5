"""A cluster against the embedded engine: `python -m benchmarks.cluster agree|kill|size`.

    agree   quality, verdicts and contexts of both engines on every set, side by side
    kill    three nodes, one killed and a generation published while clients ask
    size    publishing, visibility and searches at a number of sections, against raw requests

The nodes are those of the tests: OpenSearch 2.5, Java and npm are needed, 1 GB for each node.
"""

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import context
from benchmarks.retrieval_sets import Query, load_set, opened, set_names
from sage.cluster.backend import open_cluster
from sage.cluster.connection import Connection
from sage.cluster.options import cluster_options
from sage.cluster.publish import Published, Publisher, PublishOptions
from sage.deadline import Deadline
from sage.documents.source_roots import files_of
from sage.errors import SageError
from sage.knowledge import KnowledgeBase
from sage.search.evaluation import discounted
from sage.settings import load_settings, rootless_settings
from tests.cluster.nodes import Node, running

LIMIT = 10
NDCG_BAR, VERDICT_BAR, PACK_BAR = 0.01, 0.98, 0.95
PUBLISH_BAR, VISIBLE_BAR, SEARCH_BAR = 3.0, 3.0, 2.5
_CALL_MS = 20_000
_SECONDS = re.compile(r"[0-9]+ s")
_SIMPLE_LINES = 20_000
_SECTIONS_A_PAGE = 10
_WORDS = [f"{one}{two}" for one in ("ka", "re", "so", "mi", "tu") for two in range(800)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is named; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", default="agree", choices=("agree", "kill", "size"))
    parser.add_argument("--sets", default=",".join(set_names()))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--sections", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3, help="of a publish, and of 60 searches")
    given = parser.parse_args(arguments)
    with running(3 if given.what == "kill" else 1) as nodes:
        if given.what == "agree":
            missed = agree(nodes[0], given.sets.split(","))
        elif given.what == "kill":
            missed = kill(nodes, given.clients, given.seconds)
        else:
            missed = size(nodes[0], given.sections, given.rounds)
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


class Both:
    """One repository, answered from its files and from the cluster."""

    def __init__(self, files: KnowledgeBase, urls: Sequence[str], base: str) -> None:
        self.files = files
        self.connection = Connection(cluster_options(urls, base, {}))
        self.cluster = self.files

    def publish(self) -> Published:
        """Bring the cluster to the files, and open a replica if there is none."""
        done = Publisher(self.files, self.connection, PublishOptions()).publish()
        if self.cluster is self.files:
            self.cluster = self.replica()
        return done

    def replica(self) -> KnowledgeBase:
        """A base that is answered from the cluster."""
        return open_cluster(self.connection, rootless_settings(environment={}), Deadline(60_000))


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
            words = chance.sample(_WORDS[:50], 4)
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
        text = " ".join(chance.choices(_WORDS[:50], k=60))
        page.write_text(f"# {mark} page {number}\n\nmarker {mark} {text}.\n", "utf-8")


def size(node: Node, sections: int, rounds: int) -> list[str]:
    """One size against what the cluster does with the same documents by itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repo")
        write_base(root, sections)
        settings = load_settings(
            {"root": root},
            {"SAGE_CACHE_DIR": f"{folder}/cache", "SAGE_LIMITS_MAX_FILES": "1000000"},
            root,
        )
        both = Both(KnowledgeBase(settings), [node.url], "sized")
        publish = statistics.median(
            _published(both, node, Path(folder, f"bulks-{number}")) for number in range(rounds)
        )
        print(f"publish: {publish:.1f} x the cluster's own bulk, the middle of {rounds}")
        started = time.perf_counter()
        other = both.replica()
        print(f"a replica opens in {time.perf_counter() - started:.1f} s")
        _tell_room(node)
        visible = _visible(both, root, other)
        print(f"a changed page is visible {visible:.2f} s after its publish ended")
        _index_sections(both.connection, root)
        ours, plain, apart = _searches(both, node, rounds)
        print(f"search p50 {ours:.1f} ms, the raw query {plain:.1f} ms: {ours / plain:.1f} x")
        print(
            "for comparison, the same sections as documents of their own, the standard analyzer, "
            f"ten with their texts: {apart:.1f} ms: {ours / apart:.1f} x"
        )
    missed = [f"publish {publish:.1f} x"] if publish > PUBLISH_BAR else []
    missed += [f"visible after {visible:.1f} s"] if visible > VISIBLE_BAR else []
    return missed + ([f"search {ours / plain:.1f} x"] if ours > SEARCH_BAR * plain else [])


# Opens a replica in a process of its own and prints its memory before, after and after searches.
_REPLICA = """
import sys
from benchmarks.cluster import resident
from sage.cluster.backend import open_cluster
from sage.cluster.connection import Connection
from sage.cluster.options import cluster_options
from sage.deadline import Deadline
from sage.settings import rootless_settings
empty = resident()
connection = Connection(cluster_options([sys.argv[1]], "sized", {}))
replica = open_cluster(connection, rootless_settings(environment={}), Deadline(600_000))
replica.info()
opened = resident()
for query in sys.argv[2:]:
    replica.search(query)
print(f"a replica: {opened - empty:.0f} MB for the base when it is open, "
      f"{resident() - empty:.0f} after {len(sys.argv) - 2} searches")
"""


def resident() -> float:
    """The memory of this process in megabytes; needs /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def _tell_room(node: Node) -> None:
    """What the base takes: on the disk of the node, and in the memory of a replica."""
    store = node.ask("GET", "/sized-v*/_stats/store")["_all"]["primaries"]["store"]
    print(f"{store['size_in_bytes'] / 1e6:,.0f} MB on the disk of the cluster, without copies")
    chance = random.Random(11)
    queries = [" ".join(chance.sample(_WORDS, 3)) for _ in range(200)]
    command = [sys.executable, "-c", _REPLICA, node.url, *queries]
    subprocess.run(command, cwd=Path(__file__).parent.parent, check=True)


def _published(both: Both, node: Node, bulks: Path) -> float:
    """How many times as long a publish from scratch takes as its own bulks do.

    More than one is needed: a node that has just started compiles itself while it takes the first
    publish, and has done so when it takes the bulks again.
    """
    node.ask("DELETE", "/sized-v*")
    recording = Recording(node, "sized", bulks)
    started = time.perf_counter()
    done = Publisher(both.files, recording, PublishOptions()).publish()
    publish = time.perf_counter() - started
    raw = recording.replay(node.ask("GET", f"/{done.index}")[done.index]["mappings"])
    bulks.unlink()
    print(f"{done.documents:,} pages, {done.sections:,} sections")
    print(f"publish {publish:.1f} s, the cluster's own bulk {raw:.1f} s: {publish / raw:.1f} x")
    simple = _one_by_one(both, node)
    print(f"(each section as a document of its own: {simple:.1f} s, {publish / simple:.1f} x)")
    both.cluster = both.replica()
    return publish / raw


def write_base(root: Path, sections: int) -> None:
    """Pages of ten sections, the same in every run."""
    chance = random.Random(3)
    shutil.rmtree(root, ignore_errors=True)
    for number in range(sections // _SECTIONS_A_PAGE):
        page = root / ".knowledge" / "practices" / f"area-{number % 100}" / f"page-{number}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        parts = [
            f"## {chance.choice(_WORDS)} {part}\n\n{' '.join(chance.choices(_WORDS, k=50))}.\n"
            for part in range(_SECTIONS_A_PAGE - 1)
        ]
        first = f"# Page {number} {chance.choice(_WORDS)}\n\n{chance.choice(_WORDS)} text.\n\n"
        page.write_text(first + "\n".join(parts), "utf-8")


class Recording(Connection):
    """Remembers the bulks that it sent, in a file."""

    def __init__(self, node: Node, base: str, file: Path) -> None:
        super().__init__(cluster_options([node.url], base, {}))
        self._file = file
        self._sizes: list[int] = []

    def request(
        self, method: str, path: str, body: object, deadline: Deadline, *, again: bool = True
    ) -> dict[str, Any]:
        if path.endswith("/_bulk") and isinstance(body, bytes):
            with self._file.open("ab") as file:
                file.write(body)
            self._sizes.append(len(body))
        return super().request(method, path, body, deadline, again=again)

    def replay(self, mappings: object) -> float:
        """Seconds in which the cluster takes the same bulks into an empty index."""
        settings = {"number_of_replicas": 0, "refresh_interval": "-1"}
        body = {"mappings": mappings, "settings": settings}
        super().request("PUT", "/raw", body, Deadline(60_000), again=False)
        seconds = 0.0
        with self._file.open("rb") as file:
            for size in self._sizes:
                bulk = file.read(size)
                started = time.perf_counter()
                super().request("POST", "/raw/_bulk", bulk, Deadline(120_000))
                seconds += time.perf_counter() - started
        started = time.perf_counter()
        super().request("POST", "/raw/_refresh", None, Deadline(120_000))
        seconds += time.perf_counter() - started
        super().request("DELETE", "/raw", None, Deadline(60_000))
        return seconds


def _one_by_one(both: Both, node: Node) -> float:
    """Seconds for the same sections as plain documents, a title and a text each.

    What somebody would do who wants nothing but the cluster's own search; no bar is set on it.
    """
    node.ask("PUT", "/simple", {"settings": {"number_of_replicas": 0, "refresh_interval": "-1"}})
    library, lines, seconds = both.files.library, list[bytes](), 0.0
    action = json.dumps({"index": {}}).encode()
    for source in files_of(library.refresh(library.layers, Deadline())):
        page = library.load(source, Deadline())
        for section in page.sections if page else ():
            document = {"title": section.heading, "text": page.text(section) if page else ""}
            lines += [action, json.dumps(document, ensure_ascii=False).encode()]
        if len(lines) >= _SIMPLE_LINES:
            seconds += _sent(both.connection, lines)
            lines = []
    seconds += _sent(both.connection, lines) if lines else 0.0
    started = time.perf_counter()
    node.ask("POST", "/simple/_refresh")
    seconds += time.perf_counter() - started
    node.ask("DELETE", "/simple")
    return seconds


def _sent(connection: Connection, lines: list[bytes]) -> float:
    body = b"\n".join((*lines, b""))
    started = time.perf_counter()
    connection.request("POST", "/simple/_bulk", body, Deadline(120_000))
    return time.perf_counter() - started


def _visible(both: Both, root: Path, other: KnowledgeBase) -> float:
    """Seconds from the end of a publish until every replica finds what was written."""
    page = root / ".knowledge" / "practices" / "area-0" / "page-0.md"
    page.write_text("# Changed\n\nA zanzibar appears.\n", "utf-8")
    both.publish()
    ended = time.perf_counter()
    for replica in (both.cluster, other):
        while not replica.search("zanzibar")["results"]:
            pass
    return time.perf_counter() - ended


def _index_sections(connection: Connection, root: Path) -> None:
    """Put every section into the cluster as somebody would who indexes them by himself."""
    text = {"type": "text"}
    mappings = {"properties": {"title": text, "text": text, "path": {"type": "keyword"}}}
    settings = {"number_of_replicas": 0, "refresh_interval": "-1"}
    body = {"mappings": mappings, "settings": settings}
    connection.request("PUT", "/apart", body, Deadline(60_000), again=False)
    pages = sorted((root / ".knowledge").rglob("*.md"))
    for start in range(0, len(pages), 500):
        lines: list[str] = []
        for page in pages[start : start + 500]:
            for part in page.read_text("utf-8").split("\n## "):
                title, _, rest = part.partition("\n")
                section = {"title": title, "text": rest, "path": str(page)}
                lines += ('{"index":{}}', json.dumps(section))
        data = ("\n".join(lines) + "\n").encode()
        connection.request("POST", "/apart/_bulk", data, Deadline(120_000))
    connection.request("POST", "/apart/_refresh", None, Deadline(120_000))


def _searches(both: Both, node: Node, rounds: int) -> tuple[float, float, float]:
    """The medians of our searches, of the same words as a plain query and over the sections."""
    chance = random.Random(9)
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(60 * rounds):
        words = chance.sample(_WORDS, 3)
        marks = [time.perf_counter()]
        both.cluster.search(" ".join(words), limit=LIMIT)
        marks.append(time.perf_counter())
        node.ask("POST", "/sized/_search", _plain(words))
        marks.append(time.perf_counter())
        node.ask("POST", "/apart/_search", _of_sections(words))
        marks.append(time.perf_counter())
        for taken, (started, ended) in zip(times, pairwise(marks), strict=True):
            taken.append(ended - started)
    ours, plain, apart = (statistics.median(taken) * 1000 for taken in times)
    return ours, plain, apart


def _plain(words: Sequence[str]) -> Mapping[str, Any]:
    """What somebody would ask who wants the ten best pages and their texts."""
    fields = [f"text_stems.{word}" for word in words]
    should = [{"rank_feature": {"field": one, "saturation": {"pivot": 1.0}}} for one in fields]
    shown = {"size": LIMIT, "stored_fields": ["text", "_source"], "track_total_hits": True}
    return {**shown, "query": {"bool": {"should": should}}}


def _of_sections(words: Sequence[str]) -> Mapping[str, Any]:
    """The same of somebody who has a document for each section."""
    query = {"multi_match": {"query": " ".join(words), "fields": ["title^2", "text"]}}
    return {"size": LIMIT, "query": query, "track_total_hits": True}


def _middle(times: Sequence[float]) -> str:
    return f"{statistics.median(times) * 1000:.0f} ms" if times else "none"


if __name__ == "__main__":
    sys.exit(main())
