"""One search in the cluster: its candidates, with where they hold the words of the query."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sage.cache import Cache
from sage.cluster.connection import Connection, taken_apart
from sage.cluster.page_record import DAMAGED, bytes_from_column, occurrences
from sage.cluster.requests import (
    Weighing,
    candidates_query,
    counting,
    hit_parts,
    inside,
    searched,
)
from sage.cluster.schema import bucket_of, page_id
from sage.cluster.view import Scope
from sage.deadline import Deadline
from sage.errors import Unavailable
from sage.search.index_reader import Wanted
from sage.search.query import Forms
from sage.search.scoring import rarity
from sage.terms.analysis import stem_of
from sage.terms.postings import Postings
from sage.values import DEFAULT_RESULTS

CANDIDATES = 80
"""Pages that the cluster hands over for the best answers: as many as the ranking looks at closely.
Its order is only nearly ours; of 120 the ten best were the same a little more often, not better.
"""
MANY_CANDIDATES = 200
"""Where more than the best answers is asked for, but no part of a list."""
_FIRST_PART = 100
"""Pages that are looked at first for words that stand together: mostly enough for a name."""
_COLUMNS = 8_000
"""Columns that are read at once: some 10 MB."""
_PATHS = 10_000
"""Paths that are read at once, which is the most that a cluster gives."""
_ORDER = ("_score", {"path": "asc"})
"""Of pages that are alike those first whose path is: where they lie in the index depends on pages
that the caller may not see."""


class ClusterReader:
    """Reads one scope for one search."""

    def __init__(
        self,
        connection: Connection,
        scope: Scope,
        deadline: Deadline,
        records: dict[int, bytes],
        recent: Cache[bytes],
    ) -> None:
        """Args:
        records: what is shown of pages; what is fetched is added.
        recent: what other searches fetched, by generation and path.
        """
        self._connection = connection
        self._scope = scope
        self._deadline = deadline
        self.headings: Sequence[int] | None = scope.headings
        self._pages = 0
        """How many candidates there are."""
        self._columns: dict[str, list[tuple[int, bytes]]] = {}
        """The places of words in the candidates: for each bucket their rows, and what it holds."""
        self._records = records
        self._recent = recent
        self._sources = {one.meta.source: one for one in scope.sources}
        self._found: dict[str, dict[str, list[tuple[int, Postings]]]] = {}
        self._counted: dict[Forms, int] = {}
        """How many documents hold a concept of several stems."""
        self._beyond: Wanted | None = None
        """What was gathered last, where more pages hold it than were handed over."""

    def gather(self, wanted: Wanted) -> int | None:
        """Ask the cluster for candidates; None when their number says nothing."""
        self._pages, self._columns, self._found, self._beyond = 0, {}, {}, None
        if not wanted.concepts:
            return None
        if not self._scope.indexes:
            return 0
        buckets = _buckets(wanted)
        mixed = {
            str(number): sorted({stem_of(form) for form, _ in concept.forms})
            for number, concept in enumerate(wanted.concepts)
        }
        mixed = {name: stems for name, stems in mixed.items() if len(stems) > 1}
        body = {
            "size": _most(wanted, len(buckets)),
            "query": candidates_query(wanted, self._scope, self._weighing),
            "sort": _ORDER,
            "stored_fields": "_none_",
            "docvalue_fields": buckets,
            "track_total_hits": True,
            "aggs": counting(mixed, self._scope),
        }
        answer = self._searched(body)
        with taken_apart("a search"):
            self._keep(answer["hits"]["hits"], buckets)
            for name in mixed:
                held = int(answer["aggregations"]["all"]["scope"][name]["doc_count"])
                self._counted[wanted.concepts[int(name)].forms] = held
            total = int(answer["hits"]["total"]["value"])
        if total > self._pages:
            self._beyond = wanted
        return total

    def parts(self, wanted: Wanted) -> Iterator[None]:
        """Have every page that is wanted at hand, some after the others."""
        buckets = _buckets(wanted)
        most = max(_FIRST_PART, _COLUMNS // len(buckets))
        for hits in self._all_hits(wanted, buckets, _FIRST_PART, most):
            self._found = {}
            with taken_apart("a search"):
                self._keep(hits, buckets)
            yield

    def every(self, wanted: Wanted) -> set[int] | None:
        """Every page that is wanted."""
        slots = self._scope.slots
        found: set[int] = set()
        for hits in self._all_hits(wanted, (), _PATHS, _PATHS):
            with taken_apart("a search"):
                places = [(hit["_index"], hit["sort"][-1]) for hit in hits]
                found.update(slots[place] for place in places if place in slots)
        return found

    def _all_hits(
        self, wanted: Wanted, columns: Sequence[str], first: int, most: int
    ) -> Iterator[Sequence[Mapping[str, Any]]]:
        """All pages that are wanted by path, with some columns of each, some after the others."""
        if not self._scope.indexes:
            return iter(())
        body = {
            "query": candidates_query(wanted, self._scope, self._weighing),
            # Two sources may have a page of the same path: none is passed over between two parts.
            "sort": [{"source": "asc"}, {"path": "asc"}],
            "stored_fields": "_none_",
            "docvalue_fields": columns,
        }
        ask, indexes = self._connection, self._scope.indexes
        return hit_parts(ask, indexes, body, self._deadline, first, most)

    def _searched(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return searched(self._connection, self._scope.indexes, body, self._deadline)

    @property
    def _weighing(self) -> Weighing:
        words, stats = self._scope.words, self._scope.stats

        def rarity_of(forms: Forms) -> float:
            return rarity(words.holding(forms)[0], stats.documents)

        return Weighing(rarity_of, stats.length)

    def postings(self, field: str, form: str) -> Sequence[tuple[int, Postings]]:
        """Where a form occurs in the candidates."""
        found = self._found.get(form)
        if found is None:
            found = self._found[form] = self._occurrences(form)
        return found.get(field, ())

    def frequency(self, form: str) -> int:
        """In how many documents a form occurs."""
        return self._scope.words.frequency(form)

    def holding(self, forms: Forms) -> tuple[int, int]:
        """How many documents and how many sections hold any of some forms."""
        documents, sections = self._scope.words.holding(forms)
        counted = self._counted.get(forms)
        if counted is None:
            return documents, sections
        return counted, max(counted, round(sections * counted / max(documents, 1)))

    def holders(self, slots: Collection[int]) -> list[int]:
        """Which of some documents that are no candidates hold any of the concepts gathered last."""
        if self._beyond is None or not slots:
            return []
        paths = self._scope.catalog.column("path")
        ids = [page_id(paths[slot]) for slot in slots]
        query = candidates_query(self._beyond, self._scope, self._weighing)
        query["bool"]["filter"].append({"ids": {"values": ids}})
        body = {
            "size": len(ids) * len(self._scope.indexes),
            "query": query,
            "stored_fields": "_none_",
            "docvalue_fields": ["path"],
        }
        answer = self._searched(body)
        with taken_apart("a search"):
            places = [(hit["_index"], hit["fields"]["path"][0]) for hit in answer["hits"]["hits"]]
            found = {self._scope.slots[place] for place in places if place in self._scope.slots}
        return list(found.intersection(slots))

    def fetch(self, rows: Iterable[int]) -> None:
        """Ask the cluster for what is shown of some pages, in one request."""
        catalog = self._scope.catalog
        unknown: dict[tuple[str, str], tuple[int, Hashable]] = {}
        for row in rows:
            if row not in self._records:
                entry = catalog.slots[catalog.owners[row]]
                source = self._sources[entry.source]
                key: Hashable = (source.meta.key, entry.path)
                known = self._recent.peek(key)
                if known is None:
                    unknown[source.index, entry.path] = (row, key)
                else:
                    self._records[row] = known
        if not unknown:
            return
        ids = {"ids": {"values": [page_id(path) for _, path in unknown]}}
        body = {
            "size": len(unknown) * len(self._scope.indexes),
            "query": {"bool": {"filter": inside(self._scope, ids)}},
            "stored_fields": "_none_",
            "docvalue_fields": ["path", "record"],
        }
        for hit in self._searched(body)["hits"]["hits"]:
            with taken_apart("a search"):
                columns = hit["fields"]
                wanted = unknown.get((hit["_index"], columns["path"][0]))
                record = _decoded(columns["record"][0])
            if wanted is not None:  # another source may have a page of the same path
                row, key = wanted
                self._records[row] = record
                self._recent.put(key, record)

    def record(self, row: int) -> bytes:
        """What is shown of a page."""
        if row not in self._records:
            self.fetch((row,))
        if row not in self._records:
            raise Unavailable("a page is no longer in the cluster; ask again")
        return self._records[row]

    def _keep(self, hits: Sequence[Mapping[str, Any]], buckets: Sequence[str]) -> None:
        slots, firsts = self._scope.slots, self._scope.catalog.first_rows
        pages: list[tuple[int, Mapping[str, Sequence[str]]]] = []
        for hit in hits:
            slot = slots.get((hit["_index"], hit["sort"][-1]))
            if slot is not None:
                pages.append((firsts[slot], hit.get("fields", {})))
        # Postings are read in the order of rows.
        pages.sort(key=itemgetter(0))
        self._pages = len(pages)
        self._columns = {
            name: [
                (first, _decoded(columns[name][0])) for first, columns in pages if name in columns
            ]
            for name in buckets
        }

    def _occurrences(self, form: str) -> dict[str, list[tuple[int, Postings]]]:
        try:
            found = occurrences(self._columns.get(bucket_of(form), ()), form)
        except ValueError as error:
            raise Unavailable(DAMAGED) from error
        return {field: [(0, postings)] for field, postings in found.items()}


def _decoded(column: str) -> bytes:
    try:
        return bytes_from_column(column)
    except ValueError as error:
        raise Unavailable(DAMAGED) from error


def _buckets(wanted: Wanted) -> list[str]:
    """The columns that hold where the words occur."""
    return sorted({bucket_of(form) for form in wanted.forms})


def _most(wanted: Wanted, buckets: int) -> int:
    """How many pages are handed over with so many columns of each."""
    if wanted.depth <= DEFAULT_RESULTS:
        return CANDIDATES
    # Twice as many as are ranked, as over files, where that is no flood.
    return max(MANY_CANDIDATES, wanted.depth, min(2 * wanted.depth, _COLUMNS // buckets))
