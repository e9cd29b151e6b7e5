"""One search in the cluster: its candidates, with where they hold the words of the query."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from sage.cluster.connection import Connection
from sage.cluster.page_record import places_of, postings_of
from sage.cluster.replica import Scope
from sage.cluster.requests import candidates_query, counting, inside, searched
from sage.cluster.schema import bucket_of, page_id
from sage.deadline import Deadline
from sage.errors import Unavailable
from sage.search.postings import Postings
from sage.search.query import Wanted
from sage.search.vocabulary import Forms, stem_of

CANDIDATES = 200
"""Pages that the cluster hands over for a query; its order is only nearly ours."""
_TOGETHER = 50
"""Pages that are looked at for words that stand together."""


class ClusterReader:
    """Reads one scope for one search."""

    def __init__(self, connection: Connection, scope: Scope, deadline: Deadline) -> None:
        self._connection = connection
        self._scope = scope
        self._deadline = deadline
        self._pages: dict[int, Mapping[str, list[str]]] = {}
        """The stored fields of the candidates, by the row of each."""
        self._found: dict[str, dict[str, list[tuple[int, Postings]]]] = {}
        self._counted: dict[Forms, int] = {}
        """How many documents hold a concept of several stems."""

    def gather(self, wanted: Wanted) -> int | None:
        """Ask the cluster for candidates; None when their number says nothing."""
        self._pages, self._found = {}, {}
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
                "size": CANDIDATES if wanted.concepts else _TOGETHER,
                "query": candidates_query(wanted, self._scope),
                "_source": ["path"],
                "stored_fields": ["_source", "lengths", "record", *buckets],
                "track_total_hits": True,
                "aggs": counting(mixed, self._scope),
            },
            self._deadline,
        )
        self._keep(answer["hits"]["hits"])
        for name in mixed:
            held = answer["aggregations"]["all"]["scope"][name]["doc_count"]
            self._counted[wanted.concepts[int(name)].forms] = held
        total: int = answer["hits"]["total"]["value"]
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

    def __getitem__(self, row: int) -> int:
        """The words of a row of a candidate."""
        first = self._firsts[row]
        return int(self._lengths[first][row - first])

    def record(self, row: int) -> bytes:
        """What is shown of a page."""
        stored = self._pages.get(row)
        if stored is None:
            stored = self._loaded(row)
        try:
            return base64.b64decode(stored["record"][0], validate=True)
        except (binascii.Error, LookupError, ValueError) as error:
            raise Unavailable("a page in the cluster is damaged; publish again") from error

    def _keep(self, hits: Sequence[Mapping[str, Any]]) -> None:
        slots, firsts = self._scope.slots, self._scope.catalog.first_rows
        for hit in hits:
            slot = slots.get(hit["_source"]["path"])
            if slot is not None:
                self._pages[firsts[slot]] = hit["fields"]
        # Postings are read in the order of rows.
        self._pages = dict(sorted(self._pages.items()))
        self._lengths = {
            first: stored["lengths"][0].split(",") for first, stored in self._pages.items()
        }
        self._firsts = {
            first + inner: first
            for first, lengths in self._lengths.items()
            for inner in range(len(lengths))
        }

    def _occurrences(self, form: str) -> dict[str, list[tuple[int, Postings]]]:
        bucket = bucket_of(form)
        rows: dict[str, list[tuple[int, list[int]]]] = {}
        for first, stored in self._pages.items():
            if bucket in stored:
                for field, held in places_of(stored[bucket][0], form).items():
                    rows.setdefault(field, []).extend((first + row, at) for row, at in held)
        return {field: [(0, postings_of(held))] for field, held in rows.items()}

    def _loaded(self, row: int) -> Mapping[str, list[str]]:
        scope = self._scope
        path = scope.catalog.slots[scope.catalog.owners[row]].path
        body = {
            "query": {"bool": {"filter": inside(scope, {"ids": {"values": [page_id(path)]}})}},
            "stored_fields": ["record", "lengths"],
        }
        hits = searched(self._connection, scope.indexes, body, self._deadline)["hits"]["hits"]
        if not hits:
            raise Unavailable("a page is no longer in the cluster; ask again")
        fields: Mapping[str, list[str]] = hits[0]["fields"]
        return fields
