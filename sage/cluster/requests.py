"""Searches as the cluster understands them; the scope is inside each, built in one place."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sage.cluster.connection import Connection, taken_apart
from sage.cluster.node_errors import NotThere
from sage.cluster.schema import FIELDS, TEXT, TITLE, feature_of, length_norm, page_id
from sage.deadline import Deadline
from sage.errors import Unavailable
from sage.search.catalog import Catalog
from sage.search.index_reader import Wanted
from sage.search.query import Forms
from sage.terms.analysis import stem_of

_BOOSTS = ((TEXT, 1.0), (TITLE, 1.4), (FIELDS, 0.7))
_ENOUGH = 1.2
"""Of a stem on a page of average length, or in a title, is worth half of the most."""
_LEAST = 0.001
"""What nearly every page holds is worth something: a weight of nothing is refused."""
_FILTERS = {"tag": "tags", "lang": "languages"}
"""The fields of filters that are called otherwise."""
_PAGE_SIZE = 2_000

RED = (
    "the cluster is red, a part of the index is gone; bring the node that holds it back, "
    "or remove the index and publish again"
)

Hit = Mapping[str, Any]


def searched(
    connection: Connection, indexes: Sequence[str], body: Mapping[str, Any], deadline: Deadline
) -> dict[str, Any]:
    """The answer to one search over some indexes.

    Raises:
        NotThere: one of the indexes was removed.
        Unavailable: a part of them does not answer.
    """
    if not indexes:
        raise ValueError("a search of no index would be one of every index of the cluster")
    # In the body: a hundred names would be too long for an address.
    head = {"index": list(indexes), "allow_partial_search_results": False}
    lines = f"{json.dumps(head)}\n{json.dumps(body)}\n".encode()
    answer = connection.request("POST", "/_msearch", lines, deadline)
    with taken_apart("a search"):
        return _first_of(answer)


def _first_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = answer["responses"][0]
    error = first.get("error")
    if error is None:
        hits = first["hits"]["hits"]
        if not isinstance(hits, list) or not all(isinstance(one, dict) for one in hits):
            raise TypeError("hits that are none")
        return first
    if first.get("status") == 404:
        raise NotThere(f"{error.get('type')}: {error.get('reason')}; ask again")
    failed = [one.get("reason") or {} for one in error.get("failed_shards") or ()]
    reason = error.get("reason") or (failed or [{}])[0].get("reason") or ""
    if first.get("status") == 503:  # often without any reason
        raise Unavailable(f"{RED} ({reason[:300]})" if reason else RED)
    raise Unavailable(
        f"the cluster cannot search now ({error.get('type')}: {reason[:300]}); look at its health"
    )


def check_search(connection: Connection, indexes: Sequence[str], deadline: Deadline) -> None:
    """See whether some indexes can be searched: their alias is told also while one is lost.

    Raises:
        NotThere, Unavailable: they cannot, as it would be told to whoever searches.
        TimeoutExceeded: the deadline passed before that was known.
    """
    body = {"size": 0, "query": {"match_all": {}}, "terminate_after": 1, "track_total_hits": False}
    searched(connection, indexes, body, deadline)


class Visible(Protocol):
    """What a caller may see."""

    layers: tuple[str, ...]

    @property
    def catalog(self) -> Catalog:
        """Its documents."""

    @property
    def names(self) -> Sequence[str]:
        """The sources."""


def inside(seen: Visible, *conditions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The filter of every search for pages: what may be seen, and what else must be."""
    # Nothing but pages names its source: a third condition took a fifth of the search.
    return [
        {"terms": {"layer": list(seen.layers)}},
        {"terms": {"source": list(seen.names)}},
        *conditions,
    ]


class Weighing(NamedTuple):
    """What is known of the pages that a caller may see; those of others have no part in a score."""

    rarity: Callable[[Forms], float]
    """How rare a concept is among them."""
    length: float
    """The words of an average one."""


def candidates_query(wanted: Wanted, seen: Visible, weighing: Weighing) -> dict[str, Any]:
    """Finds what may answer a query, best first."""
    catalog = seen.catalog
    conditions: list[Mapping[str, Any]] = [_any(stem) for stem in _stems(wanted.together)]
    if wanted.layers is not None:
        conditions.append({"terms": {"layer": sorted(wanted.layers)}})
    for filters in wanted.filters:
        for name, values in filters._asdict().items():
            if values:
                conditions.append({"terms": {_FILTERS.get(name, name): sorted(values)}})
    should: list[dict[str, Any]] = []
    for concept in wanted.concepts:
        stems: dict[str, float] = {}
        rarity = weighing.rarity(concept.forms)
        for form, value in concept.forms:
            stem = stem_of(form)
            stems[stem] = max(stems.get(stem, 0.0), value / 100)
        for stem, share in stems.items():
            should += _scored(stem, share * concept.weight * rarity, weighing.length)
    excluded = [_any(stem_of(forms[0])) for forms in wanted.excluded]
    if wanted.without:
        excluded.append(_ids(wanted.without, catalog))
    if wanted.among is not None:
        conditions.append(_ids(wanted.among, catalog))
    return {
        "bool": {
            "filter": inside(seen, *conditions),
            "must": [{"bool": {"should": should, "minimum_should_match": 1}}] if should else [],
            "must_not": excluded,
        }
    }


def counting(concepts: Mapping[str, Sequence[str]], seen: Visible) -> dict[str, Any]:
    """Counts in the same request how many pages of the scope hold any of some stems.

    Args:
        concepts: the stems, by a name of our own.
    """
    counted = {
        name: {"filter": {"bool": {"should": [_any(stem) for stem in stems]}}}
        for name, stems in concepts.items()
    }
    scope = {"filter": {"bool": {"filter": inside(seen)}}, "aggs": counted}
    return {"all": {"global": {}, "aggs": {"scope": scope}}} if counted else {}


def _scored(stem: str, weight: float, length: float) -> Iterator[dict[str, Any]]:
    for name, boost in _BOOSTS:
        enough = _ENOUGH / length_norm(length) if name == TEXT else _ENOUGH
        yield _feature(name, stem, enough, max(boost * weight, _LEAST))


def _feature(name: str, stem: str, enough: float = 1.0, boost: float = 1.0) -> dict[str, Any]:
    """Pages that hold a stem in a field; how much of it they say for itself makes the score."""
    field = f"{name}.{feature_of(stem)}"
    return {"rank_feature": {"field": field, "saturation": {"pivot": enough}, "boost": boost}}


def _any(stem: str) -> dict[str, Any]:
    return {
        "bool": {
            "should": [_feature(name, stem) for name, _ in _BOOSTS],
            "minimum_should_match": 1,
        }
    }


def _stems(forms: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(map(stem_of, forms))


def _ids(slots: Iterable[int], catalog: Catalog) -> dict[str, Any]:
    paths = catalog.column("path")
    return {"ids": {"values": [page_id(paths[slot]) for slot in slots]}}


def all_hits(
    connection: Connection,
    index: str,
    query: Mapping[str, Any],
    fields: Mapping[str, Any],
    order: Sequence[str],
    deadline: Deadline,
) -> Iterator[Hit]:
    """Every document of one index that passes a query."""
    body = {"query": query, "sort": [{name: "asc"} for name in order], **fields}
    for hits in hit_parts(connection, [index], body, deadline, _PAGE_SIZE, _PAGE_SIZE):
        yield from hits


def hit_parts(
    connection: Connection,
    indexes: Sequence[str],
    body: Mapping[str, Any],
    deadline: Deadline,
    first: int,
    most: int,
) -> Iterator[Sequence[Hit]]:
    """All that a search finds, in the order that it asks for, a part after the other.

    Args:
        first: how much there is in the first part.
        most: in each that follows.
    """
    asked = {**body, "track_total_hits": False, "size": first}
    while True:
        hits: list[Hit] = searched(connection, indexes, asked, deadline)["hits"]["hits"]
        if hits:
            yield hits
        if len(hits) < asked["size"]:
            return
        with taken_apart("a search"):
            asked |= {"size": most, "search_after": hits[-1]["sort"]}
