"""One search in the cluster: its candidates, with where they hold the words of the query."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sage.cluster.connection import Connection, taken_apart
from sage.cluster.page_record import DAMAGED, bytes_from_column, occurrences
from sage.cluster.replica import Scope
from sage.cluster.requests import candidates_query, counting, inside, searched
from sage.cluster.schema import bucket_of, page_id
from sage.deadline import Deadline
from sage.errors import Unavailable
from sage.search.index_reader import Wanted
from sage.search.query import Forms
from sage.terms.analysis import stem_of
from sage.terms.postings import Postings

CANDIDATES = 80
"""Pages that the cluster hands over for the best answers: as many as the ranking looks at closely.
Its order is only nearly ours; of 120 the ten best were the same a little more often, not better.
"""
MANY_CANDIDATES = 200
"""Where more is asked for: a part of a list, another order, words that stand together."""
_TOGETHER = 50
"""Pages that are looked at for words that stand together."""


class ClusterReader:
    """Reads one scope for one search."""

    def __init__(
        self, connection: Connection, scope: Scope, deadline: Deadline, records: dict[int, str]
    ) -> None:
        """Args:
        records: what is shown of pages, as the cluster keeps it; what is fetched is added.
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
        self._found: dict[str, dict[str, list[tuple[int, Postings]]]] = {}
        self._counted: dict[Forms, int] = {}
        """How many documents hold a concept of several stems."""
        self._beyond: Wanted | None = None
        """What was gathered last, where more pages hold it than were handed over."""

    @taken_apart("a search")
    def gather(self, wanted: Wanted) -> int | None:
        """Ask the cluster for candidates; None when their number says nothing."""
        self._pages, self._columns, self._found, self._beyond = 0, {}, {}, None
        if not wanted.concepts and not wanted.phrases:
            return None
        buckets = sorted({bucket_of(form) for form in wanted.forms})
        mixed = {
            str(number): sorted({stem_of(form) for form, _ in concept.forms})
            for number, concept in enumerate(wanted.concepts)
        }
        mixed = {name: stems for name, stems in mixed.items() if len(stems) > 1}
        answer = searched(
            self._connection,
            self._scope.indexes,
            {
                "size": _most(wanted),
                "query": candidates_query(wanted, self._scope),
                "stored_fields": "_none_",
                "docvalue_fields": ["path", *buckets],
                "track_total_hits": True,
                "aggs": counting(mixed, self._scope),
            },
            self._deadline,
        )
        self._keep(answer["hits"]["hits"], buckets)
        for name in mixed:
            held = int(answer["aggregations"]["all"]["scope"][name]["doc_count"])
            self._counted[wanted.concepts[int(name)].forms] = held
        total = int(answer["hits"]["total"]["value"])
        if total > self._pages:
            self._beyond = wanted
        return None if wanted.phrases or wanted.compared else total

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

    @taken_apart("a search")
    def holders(self, slots: Collection[int]) -> list[int]:
        """Which of some documents that are no candidates hold any of the concepts gathered last."""
        if self._beyond is None or not slots:
            return []
        entries = self._scope.catalog.slots
        ids = {page_id(entries[slot].path): slot for slot in slots}
        query = candidates_query(self._beyond, self._scope)
        query["bool"]["filter"].append({"ids": {"values": list(ids)}})
        body = {"size": len(ids), "query": query, "_source": False}
        answer = searched(self._connection, self._scope.indexes, body, self._deadline)
        return [ids[hit["_id"]] for hit in answer["hits"]["hits"]]

    @taken_apart("a search")
    def fetch(self, rows: Iterable[int]) -> None:
        """Ask the cluster for what is shown of some pages, in one request."""
        catalog = self._scope.catalog
        paths = {
            catalog.slots[catalog.owners[row]].path: row for row in rows if row not in self._records
        }
        if not paths:
            return
        ids = {"ids": {"values": list(map(page_id, paths))}}
        body = {
            "size": len(paths),
            "query": {"bool": {"filter": inside(self._scope, ids)}},
            "stored_fields": "_none_",
            "docvalue_fields": ["path", "record"],
        }
        answer = searched(self._connection, self._scope.indexes, body, self._deadline)
        for hit in answer["hits"]["hits"]:
            columns = hit["fields"]
            self._records[paths[columns["path"][0]]] = columns["record"][0]

    def record(self, row: int) -> bytes:
        """What is shown of a page."""
        self.fetch((row,))
        if row not in self._records:
            raise Unavailable("a page is no longer in the cluster; ask again")
        try:
            return bytes_from_column(self._records[row])
        except ValueError as error:
            raise Unavailable(DAMAGED) from error

    def _keep(self, hits: Sequence[Mapping[str, Any]], buckets: Sequence[str]) -> None:
        slots, firsts = self._scope.slots, self._scope.catalog.first_rows
        pages: list[tuple[int, Mapping[str, Sequence[str]]]] = []
        for hit in hits:
            columns = hit["fields"]
            slot = slots.get(columns["path"][0])
            if slot is not None:
                pages.append((firsts[slot], columns))
        # Postings are read in the order of rows.
        pages.sort(key=itemgetter(0))
        self._pages = len(pages)
        try:
            self._columns = {
                name: [
                    (first, bytes_from_column(columns[name][0]))
                    for first, columns in pages
                    if name in columns
                ]
                for name in buckets
            }
        except ValueError as error:
            raise Unavailable(DAMAGED) from error

    def _occurrences(self, form: str) -> dict[str, list[tuple[int, Postings]]]:
        try:
            found = occurrences(self._columns.get(bucket_of(form), ()), form)
        except ValueError as error:
            raise Unavailable(DAMAGED) from error
        return {field: [(0, postings)] for field, postings in found.items()}


def _most(wanted: Wanted) -> int:
    if not wanted.concepts:
        return _TOGETHER
    return MANY_CANDIDATES if wanted.deep or wanted.phrases else CANDIDATES
