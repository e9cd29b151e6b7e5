"""A cluster that is too busy gets again only what it refused."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from sage.cluster.connection import Connection
from sage.errors import Unavailable
from sage.publish.bulk import BATCH_BYTES, Bulk


class Cluster:
    """Answers every batch with the next statuses; keeps the names it was sent."""

    def __init__(self, *statuses: Sequence[int]) -> None:
        self._statuses = list(statuses)
        self.sent: list[list[str]] = []

    def request(self, _method: str, _path: str, body: bytes, _deadline: object) -> dict[str, Any]:
        lines = [json.loads(line) for line in body.splitlines()]
        actions = [one for one in lines if "index" in one or "delete" in one]
        self.sent.append([next(iter(one.values()))["_id"] for one in actions])
        statuses = self._statuses.pop(0) if self._statuses else [200] * len(actions)
        items = [{"index": {"status": one, "error": {"type": "why"}}} for one in statuses]
        return {"errors": any(one >= 300 for one in statuses), "items": items}


def written(cluster: Cluster, *names: str) -> list[float]:
    """Write documents of these names; how long it paused in between."""
    pauses: list[float] = []
    bulk = Bulk(cast("Connection", cluster), "index", pauses.append)
    try:
        for name in names:
            bulk.put(name, {"text": name})
        bulk.flush()
    finally:
        bulk.close()
    return pauses


def test_what_was_refused_is_sent_again_ever_later() -> None:
    cluster = Cluster([200, 429, 429], [429, 200])
    assert written(cluster, "a", "b", "c") == [0.25, 0.5]
    assert cluster.sent == [["a", "b", "c"], ["b", "c"], ["b"]]


def test_a_document_that_is_refused_ends_it() -> None:
    with pytest.raises(Unavailable, match="refuses a document: why"):
        written(Cluster([200, 400]), "a", "b")


def test_a_cluster_that_stays_busy_ends_it() -> None:
    with pytest.raises(Unavailable, match="too busy"):
        written(Cluster(*[[429]] * 20), "a")


def test_what_was_deleted_before_is_no_fault() -> None:
    assert written(Cluster([404, 200]), "a", "b") == []


def test_much_goes_in_several_batches() -> None:
    cluster = Cluster()
    bulk = Bulk(cast("Connection", cluster), "index")
    for name in ("a", "b", "c"):
        bulk.put(name, {"text": "x" * (BATCH_BYTES // 2)})
    bulk.delete("d")
    bulk.flush()
    bulk.close()
    assert cluster.sent == [["a", "b"], ["c", "d"]]
