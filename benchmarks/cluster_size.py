"""One size of a base in a cluster, against what the cluster does with the same by itself.

The pages are made ones, the same in every run, or those of a real repository. The raw requests go
through the same kept connections as ours.
"""

import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.both_engines import Both
from sage.cluster.connection import Connection
from sage.cluster.options import cluster_options
from sage.cluster.schema import TEXT, feature_of
from sage.deadline import Deadline
from sage.documents.source_roots import files_of
from sage.knowledge import KnowledgeBase
from sage.publish.publisher import Publisher, PublishOptions
from sage.settings import load_settings
from sage.terms.analysis import stem_of
from tests.cluster.nodes import Node

LIMIT = 10
PUBLISH_BAR, VISIBLE_BAR, SEARCH_BAR = 3.0, 3.0, 2.5
WORDS = [f"{one}{two}" for one in ("ka", "re", "so", "mi", "tu") for two in range(800)]
_SIMPLE_LINES = 20_000
_SECTIONS_A_PAGE = 10
_QUESTIONS_A_ROUND = 60
_HEADING = re.compile(r"^#{1,4} +(.{8,80}?)[ #]*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?:^|[.!?] )([A-Z][a-z]*(?: [a-z]+){5,7})", re.MULTILINE)


def size(node: Node, sections: int, rounds: int, real: Path | None) -> list[str]:
    """The bars that are missed.

    Args:
        sections: of made pages.
        real: a repository whose pages are taken in place of made ones.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repo")
        if real is None:
            write_base(root, sections)
            questions = made_questions(_QUESTIONS_A_ROUND * rounds)
        else:
            shutil.copytree(real / ".knowledge", root / ".knowledge")
            questions = questions_of(root, _QUESTIONS_A_ROUND * rounds)
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
        _tell_room(node, questions)
        visible = _visible(both, root, other)
        print(f"a changed page is visible {visible:.2f} s after its publish ended")
        _index_sections(both.connection, root)
        ours, plain, apart = _searches(both, questions)
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
from benchmarks.cluster_size import resident
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


def _tell_room(node: Node, questions: Sequence[str]) -> None:
    """What the base takes: on the disk of the node, and in the memory of a replica."""
    store = node.ask("GET", "/sized-v*/_stats/store")["_all"]["primaries"]["store"]
    print(f"{store['size_in_bytes'] / 1e6:,.0f} MB on the disk of the cluster, without copies")
    command = [sys.executable, "-c", _REPLICA, node.url, *questions]
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
            f"## {chance.choice(WORDS)} {part}\n\n{' '.join(chance.choices(WORDS, k=50))}.\n"
            for part in range(_SECTIONS_A_PAGE - 1)
        ]
        first = f"# Page {number} {chance.choice(WORDS)}\n\n{chance.choice(WORDS)} text.\n\n"
        page.write_text(first + "\n".join(parts), "utf-8")


def made_questions(count: int) -> list[str]:
    """Three words each of those that made pages have."""
    chance = random.Random(9)
    return [" ".join(chance.sample(WORDS, 3)) for _ in range(count)]


def questions_of(root: Path, count: int) -> list[str]:
    """What somebody may ask of real pages: their headings, and some words of their sentences."""
    chance = random.Random(9)
    pages = sorted(root.rglob("*.md"))
    chance.shuffle(pages)
    questions: list[str] = []
    for page in pages:
        text = page.read_text("utf-8", "replace")
        found = (_HEADING if len(questions) % 2 else _SENTENCE).findall(text)
        if found:
            questions.append(chance.choice(found))
        if len(questions) == count:
            break
    return questions


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
    page = next(one for one in sorted(root.rglob("*.md")))
    page.write_text("# Changed\n\nA zanzibarzanzibar appears.\n", "utf-8")
    both.publish()
    ended = time.perf_counter()
    for replica in (both.cluster, other):
        while not replica.search("zanzibarzanzibar")["results"]:
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
            for part in page.read_text("utf-8", "replace").split("\n## "):
                title, _, rest = part.partition("\n")
                section = {"title": title, "text": rest, "path": str(page)}
                lines += ('{"index":{}}', json.dumps(section))
        data = ("\n".join(lines) + "\n").encode()
        connection.request("POST", "/apart/_bulk", data, Deadline(120_000))
    connection.request("POST", "/apart/_refresh", None, Deadline(120_000))


def _searches(both: Both, questions: Sequence[str]) -> tuple[float, float, float]:
    """The medians of our searches, of the same words as a plain query and over the sections."""

    def asked(index: str, body: Mapping[str, Any]) -> None:
        both.connection.request("POST", f"/{index}/_search", body, Deadline(120_000))

    ways: Sequence[Callable[[str], object]] = (
        lambda question: both.cluster.search(question, limit=LIMIT),
        lambda question: asked("sized", _plain(question)),
        lambda question: asked("apart", _of_sections(question)),
    )
    times: tuple[list[float], ...] = ([], [], [])
    for question in questions:
        marks = [time.perf_counter()]
        for way in ways:
            way(question)
            marks.append(time.perf_counter())
        for taken, (started, ended) in zip(times, pairwise(marks), strict=True):
            taken.append(ended - started)
    ours, plain, apart = (statistics.median(taken) * 1000 for taken in times)
    return ours, plain, apart


def _plain(question: str) -> Mapping[str, Any]:
    """What somebody would ask who wants the ten best pages and their texts."""
    stems = dict.fromkeys(stem_of(word.casefold()) for word in re.findall(r"\w+", question))
    fields = [f"{TEXT}.{feature_of(stem)}" for stem in stems]
    should = [{"rank_feature": {"field": one, "saturation": {"pivot": 1.0}}} for one in fields]
    shown = {"size": LIMIT, "stored_fields": ["text", "_source"], "track_total_hits": True}
    return {**shown, "query": {"bool": {"should": should}}}


def _of_sections(question: str) -> Mapping[str, Any]:
    """The same of somebody who has a document for each section."""
    query = {"multi_match": {"query": question, "fields": ["title^2", "text"]}}
    return {"size": LIMIT, "query": query, "track_total_hits": True}
