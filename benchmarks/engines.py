"""The engines that search is measured against, behind one small interface."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from sage.deadline import Deadline
from sage.documents.document import parse_document
from sage.documents.library import Library
from sage.search.engine import SearchEngine
from sage.search.sections import SearchOptions
from sage.settings import load_settings
from sage.terms.analysis import STOP_WORDS
from sage.token_counter import BundledVocabulary, TokenCounter

LIMIT = 10


class Engine(Protocol):
    """Builds an index of pages in a folder, opens it again, and searches it."""

    def build(self, folder: Path, pages: Mapping[str, str]) -> None: ...

    def open(self, folder: Path) -> None: ...

    def search(self, query: str) -> list[str]: ...


def engine(name: str) -> Engine:
    """A new engine."""
    made: Engine = ENGINES[name]()
    return made


class Sage:
    """This project, as the knowledge base calls it: files, parsing, token counts, snippets."""

    def build(self, folder: Path, pages: Mapping[str, str]) -> None:
        for path, text in pages.items():
            page = folder / "repo" / ".knowledge" / path
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf-8")
        self.open(folder)
        self.engine.close()

    def open(self, folder: Path) -> None:
        flags = {"root": folder / "repo"}
        self.settings = load_settings(flags, {"SAGE_CACHE_DIR": str(folder / "cache")}, folder)
        self.library = Library(self.settings)
        self.engine = SearchEngine(self.settings, TokenCounter().count_slice, BundledVocabulary())
        self.update()

    def update(self) -> None:
        listings = self.library.refresh(self.settings.layers, Deadline())
        files = [source for listing in listings for source in listing.files]
        self.snapshot = self.engine.update(
            files, lambda source: self.library.look_up(source, Deadline()), Deadline()
        )

    def search(self, query: str) -> list[str]:
        found = self.snapshot.search(query, SearchOptions(LIMIT), Deadline())
        paths = (result.path.removeprefix(".knowledge/") for result in found.sections)
        # The second section of a page is no second page.
        return list(dict.fromkeys(paths))


class FullText:
    """SQLite FTS5 with its porter stemmer, OR over the content words, BM25."""

    def __init__(self, by_section: bool) -> None:
        self._by_section = by_section

    def build(self, folder: Path, pages: Mapping[str, str]) -> None:
        self._connect(folder)
        self._db.execute(
            "create virtual table page using "
            "fts5(path unindexed, heading, body, tokenize='porter unicode61')"
        )
        self._db.executemany("insert into page values (?, ?, ?)", self._rows(pages))
        self._db.commit()
        self._db.close()

    def open(self, folder: Path) -> None:
        self._connect(folder)

    def search(self, query: str) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in content(query))
        if not words:
            return []
        statement = "select path from page where page match ? order by bm25(page) limit ?"
        found = self._db.execute(statement, (words, LIMIT * (5 if self._by_section else 1)))
        return list(dict.fromkeys(path for (path,) in found))[:LIMIT]

    def _connect(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / "fts5.db")

    def _rows(self, pages: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
        for path, text in pages.items():
            if not self._by_section:
                yield path, "", text
                continue
            document = parse_document(text, f".knowledge/{path}", path.partition("/")[0])
            for section in document.sections:
                yield path, " ".join(section.breadcrumb), document.text(section)


class PlainWhoosh:
    """Whoosh as it comes: its standard analyzer, BM25F, OR of the words."""

    def build(self, folder: Path, pages: Mapping[str, str]) -> None:
        from whoosh.fields import ID, TEXT, Schema
        from whoosh.index import create_in

        folder.mkdir(parents=True, exist_ok=True)
        writer = create_in(folder, Schema(path=ID(stored=True), body=TEXT)).writer()
        for path, text in pages.items():
            writer.add_document(path=path, body=text)
        writer.commit()

    def open(self, folder: Path) -> None:
        from whoosh.index import open_dir

        index: Any = open_dir(folder)
        self._searcher = index.searcher()
        self._schema = index.schema

    def search(self, query: str) -> list[str]:
        from whoosh.qparser import OrGroup, QueryParser

        parser = QueryParser("body", self._schema, group=OrGroup)
        parsed = parser.parse(" ".join(re.findall(r"\w+", query)))
        return [found["path"] for found in self._searcher.search(parsed, limit=LIMIT)]


class TermCounting:
    """What grep would do: pages by how many different words of the query they hold."""

    def build(self, folder: Path, pages: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pages.txt").write_text("\0".join(f"{p}\1{t}" for p, t in pages.items()), "utf-8")

    def open(self, folder: Path) -> None:
        pages = (folder / "pages.txt").read_text("utf-8").split("\0")
        self._pages = [page.lower().partition("\1") for page in pages]
        self._names = [page.partition("\1")[0] for page in pages]

    def search(self, query: str) -> list[str]:
        words = content(query)
        held: Counter[int] = Counter()
        for number, (_, _, text) in enumerate(self._pages):
            held[number] = sum(word in text for word in words)
        best = [number for number, count in held.most_common(LIMIT) if count]
        return [self._names[number] for number in best]


def content(query: str) -> list[str]:
    """The different words of a query that say something."""
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    return [word for word in words if word not in STOP_WORDS] or words


ENGINES: dict[str, Any] = {
    "sage": Sage,
    "fts5-sections": lambda: FullText(by_section=True),
    "fts5-files": lambda: FullText(by_section=False),
    "whoosh": PlainWhoosh,
    "counting": TermCounting,
}
