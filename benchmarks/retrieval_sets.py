"""Questions with known answers: sets of other people's pages where they are present, and our own.

A set is a folder with `corpus.jsonl.gz` (id, text) and `queries.jsonl.gz` (text, rel). None is
part of this repository; `SAGE_RETRIEVAL_SETS` names the folder that holds them.
"""

import gzip
import json
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sage.knowledge import KnowledgeBase
from sage.safe_yaml import load_yaml
from sage.search.evaluation import read_golden
from sage.settings import load_settings

ROOT = Path(__file__).parent.parent
OWN = "own"
_FOLDER = ROOT.parent / "shared" / "retrieval"


@dataclass(frozen=True)
class Query:
    """A question and how well each page answers it."""

    text: str
    grades: Mapping[str, float]


@dataclass(frozen=True)
class RetrievalSet:
    """Pages by their path below `.knowledge`, and the queries over them."""

    name: str
    pages: Mapping[str, str]
    queries: tuple[Query, ...]


def folder() -> Path:
    """Where the sets of others are expected."""
    return Path(os.environ.get("SAGE_RETRIEVAL_SETS", _FOLDER))


def set_names() -> list[str]:
    """The sets that are present, our own last."""
    found = sorted(path.parent.name for path in folder().glob("*/corpus.jsonl.gz"))
    return [*found, OWN]


def load_set(name: str, max_queries: int = 300) -> RetrievalSet:
    """One set; of very many queries a fixed sample."""
    loaded = _own() if name == OWN else _foreign(folder() / name)
    if len(loaded.queries) <= max_queries:
        return loaded
    chosen = random.Random(3).sample(loaded.queries, max_queries)
    return RetrievalSet(name, loaded.pages, tuple(chosen))


def opened(questions: RetrievalSet, folder: Path) -> KnowledgeBase:
    """A set's pages as files of a knowledge base, indexed; files that are there stay."""
    for path, text in questions.pages.items():
        page = folder / "repo" / ".knowledge" / path
        if not page.exists():
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf-8")
    environment = {"SAGE_CACHE_DIR": str(folder / "cache")}
    knowledge = KnowledgeBase(load_settings({"root": folder / "repo"}, environment, folder))
    knowledge.warm()
    return knowledge


def _own() -> RetrievalSet:
    knowledge = ROOT / ".knowledge"
    pages = {
        path.relative_to(knowledge).as_posix(): path.read_text("utf-8")
        for path in sorted(knowledge.rglob("*.md"))
    }
    golden = read_golden(load_yaml((knowledge / "eval.yaml").read_text("utf-8")))
    queries = tuple(
        Query(one.query, {f"{topic.partition('#')[0]}.md": 1.0 for topic in one.expected})
        for one in golden
    )
    return RetrievalSet(OWN, pages, queries)


def _foreign(path: Path) -> RetrievalSet:
    pages = {f"practices/{one['id']}": one["text"] for one in _lines(path / "corpus.jsonl.gz")}
    queries = tuple(
        Query(one["text"], {f"practices/{page}": grade for page, grade in one["rel"].items()})
        for one in _lines(path / "queries.jsonl.gz")
    )
    return RetrievalSet(path.name, pages, queries)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
