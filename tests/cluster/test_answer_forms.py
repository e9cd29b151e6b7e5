"""Answers of a form that OpenSearch's never have are told as such: no call ends in another way."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sage.cache import Cache
from sage.cluster import generations
from sage.cluster.connection import Connection, soon, taken_apart
from sage.cluster.generations import Meta, meta_from
from sage.cluster.loading import SourceGeneration
from sage.cluster.options import cluster_options
from sage.cluster.reader import ClusterReader
from sage.cluster.requests import all_hits, searched
from sage.cluster.schema import Name
from sage.cluster.view import View
from sage.deadline import Deadline
from sage.errors import NotFound, Unavailable
from sage.publish.bulk import Bulk
from sage.publish.lock import PublishLock
from sage.search.index_reader import Wanted
from sage.search.query import Concept

NAME = str(Name("sage", "own", "0123"))


class Says(Connection):
    """Gives the same answer to whatever is asked."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(cluster_options(["http://127.0.0.1:9"], "sage", {}), lambda _: None)
        self._answer = answer

    def request(self, *_: object, **__: object) -> dict[str, Any]:
        return self._answer


def bulk(connection: Connection) -> None:
    writer = Bulk(connection, NAME, lambda _: None)
    try:
        writer.put("a", {"text": "a"})
        writer.flush()
    finally:
        writer.close()


def hits(connection: Connection) -> None:
    list(all_hits(connection, NAME, {}, {}, ["path"], soon()))


CALLS: dict[str, Callable[[Connection], object]] = {
    "version": lambda ask: ask.check_version(soon()),
    "search": lambda ask: searched(ask, [NAME], {}, soon()),
    "hits": hits,
    "bulk": bulk,
    "alias": lambda ask: generations.served(ask, soon()),
    "red": lambda ask: generations.is_red(ask, NAME, soon()),
    "whole": lambda ask: generations.is_whole(ask, NAME, soon()),
    "metas": lambda ask: list(generations.metas(ask, [NAME], soon())),
    "retired": lambda ask: generations.write_retired(ask, NAME, 1.0, soon()),
    "copy": lambda ask: generations.copy(ask, NAME, "other"),
    "counts": lambda ask: generations.check_counts(ask, NAME, Meta("own", 0, "k"), soon()),
    "acquire": lambda ask: PublishLock(ask, "own").acquire(soon()),
    "taken": lambda ask: PublishLock(ask, "own").is_taken(soon()),
}
ANSWERS: list[dict[str, Any]] = [
    {},
    {"responses": []},
    {"responses": [None]},
    {"responses": [{"hits": None}]},
    {"responses": [{"hits": {"hits": "abc"}}]},
    {"responses": [{"hits": {"hits": [5] * 2_000}}]},
    {"responses": [{"hits": {"hits": [{}] * 2_000}}]},
    {"responses": [{"error": "boom", "status": 500}]},
    {"responses": [{"error": {"failed_shards": [None]}, "status": 500}]},
    {"version": "2.5.0"},
    {"error": "boom", "status": 500},
    {"acknowledged": True, "status": 5, "indices": [], NAME: {"mappings": 5, "settings": []}},
    {"acknowledged": True, NAME: {"mappings": {"_meta": {"sage": "[" * 200_000}}}},
    {"errors": True, "items": [{"index": {}}], "_source": {"until": "soon"}},
    {"errors": True, "items": [], "hits": {"total": {"value": "many"}}, "aggregations": None},
]


@pytest.mark.parametrize("number", range(len(ANSWERS)))
@pytest.mark.parametrize("call", CALLS)
def test_an_answer_of_another_form_is_told(call: str, number: int) -> None:
    if (call, number) == ("search", 6):
        return  # what it found is taken apart by whoever asked
    with pytest.raises(Unavailable):
        CALLS[call](Says(ANSWERS[number]))


READS: dict[str, Callable[[ClusterReader, Wanted], object]] = {
    "gather": lambda reader, wanted: reader.gather(wanted),
    "parts": lambda reader, wanted: list(reader.parts(wanted)),
    "every": lambda reader, wanted: reader.every(wanted),
}


@pytest.mark.parametrize("hit", [{}, {"sort": 5}, {"sort": []}, {"sort": [["a"]]}])
@pytest.mark.parametrize("read", READS)
def test_a_hit_of_another_form_is_told(read: str, hit: dict[str, Any]) -> None:
    found = {"hits": [hit], "total": {"value": 1}}
    source = SourceGeneration(NAME, Meta("own", 0, "k"), {}, {}, {})
    ask, scope = Says({"responses": [{"hits": found}]}), View((source,)).scope(("core",), ())
    reader = ClusterReader(ask, scope, Deadline(), {}, Cache(1_000, 60.0, lambda: 0.0))
    with pytest.raises(Unavailable, match="in another form than OpenSearch"):
        READS[read](reader, Wanted((Concept("retry", (("retry", 100),)),)))


def test_where_an_answer_could_not_be_taken_apart_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "sage.cluster")
    with pytest.raises(Unavailable):
        Says({}).check_version(soon())
    assert "an answer the question for its version could not be taken apart" in caplog.text
    assert "KeyError: 'version'" in caplog.text


def test_what_is_wrong_with_the_call_is_told_as_it_is() -> None:
    with pytest.raises(NotFound), taken_apart("a search"):
        raise NotFound("nothing has that name")


@pytest.mark.parametrize("answer", [{}, {"acknowledged": False}, {"acknowledged": "yes"}])
def test_what_the_cluster_does_not_confirm_is_not_done(answer: dict[str, Any]) -> None:
    ask, new = Says(answer), Name("sage", "own", "0123")
    calls: list[Callable[[], object]] = [
        lambda: generations.move_alias(ask, new, [], soon()),
        lambda: generations.delete(ask, NAME, soon()),
        lambda: generations.create(ask, NAME, {}),
        lambda: generations.write_meta(ask, NAME, Meta("own", 0, "k"), soon()),
    ]
    for work in calls:
        with pytest.raises(Unavailable, match="does not say that it has done"):
            work()


@pytest.mark.parametrize("said", ["[]", "5", '"own"', "{}", '{"source": 5}', "NaN", "{", 5, {}])
def test_what_names_no_source_is_not_ours(said: object) -> None:
    with pytest.raises(Unavailable, match="was not written by SAGE"):
        meta_from(NAME, {"mappings": {"_meta": {"sage": said}}})


def test_what_another_version_does_not_say_is_as_if_it_was_nothing() -> None:
    said = {"source": "own", "generation": "3", "line": "abc", "published": 5, "ancestors": None}
    meta = meta_from(NAME, {"mappings": {"_meta": {"sage": json.dumps(said)}}})
    assert meta == Meta(source="own", generation=0, key=NAME, published=5)


def test_an_index_that_went_is_no_fault_of_the_call() -> None:
    error = {"type": "index_not_found_exception", "reason": "no such index [x]"}
    gone = Says({"responses": [{"error": error, "status": 404}]})
    with pytest.raises(Unavailable, match=r"no such index \[x\]; ask again") as told:
        searched(gone, [NAME], {}, soon())
    assert told.value.code == "UNAVAILABLE"
