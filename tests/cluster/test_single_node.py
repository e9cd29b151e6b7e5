"""A base that was published to a cluster is answered from there as from the files."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from sage.cluster import conformance
from sage.cluster.conformance import PAGES, Pages
from sage.cluster.connection import Connection
from sage.deadline import Deadline
from sage.errors import NotFound, TimeoutExceeded, Unavailable
from sage.knowledge import KnowledgeBase
from sage.publish.lock import PublishLock
from sage.publish.publisher import Publisher, PublishOptions
from sage.values import OWN
from tests.cluster.conftest import (
    Died,
    Team,
    beside,
    die,
    eventually,
    free_the_lock,
    narrowed,
    told,
)
from tests.cluster.nodes import Node
from tests.commands import Run, run
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS

__all__ = ["run"]

Check = Callable[[conformance.Open, conformance.Open], None]


def embedded(base: Base) -> conformance.Open:
    """Opens pages with the engine of this process."""

    def opened(pages: Pages, layers: Collection[str] | None) -> KnowledgeBase:
        shutil.rmtree(base.path(""))
        base.write(pages)
        base.clock.tick(60)
        knowledge = base.open()
        knowledge.warm()
        return knowledge if layers is None else narrowed(knowledge, layers)

    return opened


def names() -> list[Check]:
    return list(conformance.checks())


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory, base: Base) -> Base:
    """A second repository, for what an engine is compared with."""
    folder = tmp_path_factory.mktemp("other")
    return Base(folder / "repo", folder / "cache", base.open().light_counter)


@pytest.mark.parametrize("check", names(), ids=lambda check: check.__name__)
def test_the_embedded_engine_conforms(check: Check, base: Base, other: Base) -> None:
    check(embedded(base), embedded(other))


@pytest.mark.parametrize("check", names(), ids=lambda check: check.__name__)
def test_the_cluster_conforms(check: Check, team: Team, other: Base) -> None:
    def opened(pages: Pages, layers: Collection[str] | None) -> KnowledgeBase:
        shutil.rmtree(team.base.path(""))
        team.publish(pages)
        return team.replica(layers)

    check(opened, embedded(other))


def test_the_same_content_twice_changes_nothing(team: Team) -> None:
    first = team.publish(PAGES)
    before = team.indexes
    second = team.publish()
    assert (first.moved, second.moved) == (True, False)
    assert second.index == first.index
    assert team.indexes == before == team.served


def test_only_what_changed_is_written(team: Team) -> None:
    team.publish(PAGES)
    replica = team.replica()
    assert replica.search("zanzibar")["results"]
    done = team.publish(
        {"core/principles.md": "# Principles\n\nMarmalade.\n"}, "practices/secret.md"
    )
    assert (done.added, done.changed, done.removed) == (0, 1, 1)
    index = done.index
    written = team.connection.request(
        "POST", f"/{index}/_count", {"query": {"term": {"generation": 1}}}, Deadline(30_000)
    )
    pages = team.connection.request(
        "POST",
        f"/{index}/_count",
        {"query": {"bool": {"filter": [{"term": {"generation": 1}}, {"term": {"kind": "page"}}]}}},
        Deadline(30_000),
    )
    assert pages["count"] == 1 < written["count"]
    fresh = team.replica()
    for knowledge in (replica, fresh):
        knowledge_sees = knowledge.search("marmalade")["results"]
        assert [one["topic"] for one in knowledge_sees] == ["core/principles"]
        assert not knowledge.search("zanzibar")["results"]


def test_a_dry_run_writes_nothing(team: Team) -> None:
    done = team.publish(PAGES, dry_run=True)
    assert (done.added, done.moved) == (len(PAGES), False)
    with pytest.raises(Unavailable, match="nothing is published"):
        team.replica()


def test_old_generations_go_after_the_grace(team: Team) -> None:
    first = team.publish(PAGES)
    second = team.publish({"core/new.md": "# New\n\nOne.\n"})
    assert set(team.indexes) == {first.index, second.index}
    third = team.publish({"core/new.md": "# New\n\nTwo.\n"}, grace_seconds=0.0)
    assert team.indexes == [third.index]
    assert set(third.pruned) == {first.index, second.index}


def test_a_killed_publish_leaves_the_old_generation_serving(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = team.publish(PAGES)

    monkeypatch.setattr(Publisher, "_finish", die)
    monkeypatch.setattr(PublishLock, "release", lambda *_: None)
    with pytest.raises(Died):
        team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    monkeypatch.undo()
    assert team.served == [first.index]
    assert not team.replica().search("marmalade")["results"]
    with pytest.raises(Unavailable, match="another publish"):
        team.publish()
    free_the_lock(team)
    done = team.publish()
    assert done.moved
    assert team.replica().search("marmalade")["results"]


def test_counts_are_checked_before_the_alias_moves(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = team.publish(PAGES)
    written = Publisher._written
    monkeypatch.setattr(Publisher, "_written", lambda *given: written(*given) + 1)
    with pytest.raises(Unavailable, match="were written"):
        team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    assert team.served == team.indexes == [first.index]


def test_of_two_at_once_one_wins_and_none_mixes(team: Team) -> None:
    team.publish(PAGES)
    team.base.write({"core/new.md": "# New\n\nMarmalade.\n"})
    team.base.clock.tick(60)
    outcomes: list[object] = []

    def publish() -> None:
        options = PublishOptions()
        try:
            outcomes.append(Publisher(team.base.open(), team.connection, options).publish().moved)
        except Unavailable as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=publish) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(True) == 1
    assert all(one in (True, False) or "another publish" in str(one) for one in outcomes)
    assert len(team.served) == 1
    assert len(team.replica().search("marmalade")["results"]) == 1


def test_sources_publish_independently_into_one_base(team: Team, other: Base) -> None:
    team.publish(PAGES)
    beside = Team(other, team.options.urls[0])
    beside.connection.close()
    beside.connection, beside.options = team.connection, team.options
    beside.publish({"guidelines/errors.md": "# Errors\n\nPay twice never.\n"}, source="payments")
    replica = team.replica()
    topics = [one["topic"] for one in replica.search("errors", limit=20)["results"]]
    assert "guidelines/payments/errors" in topics
    assert any(topic.startswith("guidelines/errors") for topic in topics)
    assert "Pay twice" in replica.get("all", "guidelines/payments/errors")["content"]
    assert {one["source"] for one in told(replica)["published"]} == {OWN, "payments"}
    assert len(team.served) == 2


def test_a_replica_follows_the_alias_and_says_how_far_behind_it_is(team: Team) -> None:
    first = team.publish(PAGES)
    replica = team.replica()
    assert told(replica)["published"][0]["generation"] == first.index
    second = team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    eventually(lambda: bool(replica.search("marmalade")["results"]), "the new page")
    info = told(replica)
    assert info["published"][0]["generation"] == second.index
    eventually(lambda: told(replica)["behind_seconds"] <= 1.0, "signs that it is near the alias")
    assert info["status"] == "healthy"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the cluster is asked for."""
    bodies: list[bytes] = []
    request = Connection.request

    def noted(
        self: Connection, method: str, path: str, body: object, *rest: Any, **more: Any
    ) -> Any:
        bodies.append(body if isinstance(body, bytes) else b"")
        return request(self, method, path, body, *rest, **more)

    monkeypatch.setattr(Connection, "request", noted)
    return bodies


def for_records(asked: list[bytes]) -> int:
    """How many requests were for what is shown of pages; they are forgotten."""
    count = sum(b'"record"' in body for body in asked)
    asked.clear()
    return count


def test_every_search_carries_the_scope_in_its_query(team: Team, asked: list[bytes]) -> None:
    team.publish(PAGES)
    replica = team.replica(("core", "guidelines"))
    asked.clear()
    replica.search("rollback errors")
    replica.get("all", "guidelines/errors")
    replica.context("coding", task="retry")
    scope = {"terms": {"layer": ["core", "guidelines"]}}
    searches = [json.loads(body.split(b"\n")[1]) for body in asked if b'"query"' in body]
    assert searches
    assert all(scope in one["query"]["bool"]["filter"] for one in searches)


def test_whoever_sees_no_page_asks_for_no_index(team: Team, asked: list[bytes]) -> None:
    team.publish(PAGES)
    replica = team.replica(("frameworks",))
    asked.clear()
    for query in ('"give up"', "rollback", "-zanzibar launch"):
        assert replica.search(query)["results"] == []
    assert replica.context("coding", task="retry")["sources"] == []
    assert [body for body in asked if b"query" in body] == []


RETRIES = "# Page {0}\n\nRetry {0}.\n\n## Retries {0}\n\nA client retries word{0} times.\n"


def test_texts_are_fetched_together_and_once_for_a_call(team: Team, asked: list[bytes]) -> None:
    team.publish({f"practices/p{n}.md": RETRIES.format(n) for n in range(12)})
    asked.clear()
    assert len(team.replica().search("client retries", limit=10)["results"]) > 5
    assert for_records(asked) == 1
    assert team.replica().context("coding", task="let the client retry")["sources"]
    assert 1 <= for_records(asked) <= 3


def test_texts_are_fetched_once_for_a_generation(team: Team, asked: list[bytes]) -> None:
    team.publish({f"practices/p{n}.md": RETRIES.format(n) for n in range(5)})
    replica = team.replica()
    asked.clear()
    first = replica.search("client retries")
    assert (len(first["results"]), for_records(asked)) == (5, 1)
    part = narrowed(replica, ("practices",)).search("client retries")
    assert (part["results"], for_records(asked)) == (first["results"], 0)
    assert narrowed(replica, ("core",)).search("client retries")["results"] == []
    team.publish({"practices/p0.md": RETRIES.format("new")})
    asked.clear()
    second = replica.search("client retries")
    assert for_records(asked) == 1
    assert second["results"] == team.replica().search("client retries")["results"]
    assert "Retries new" in str(second)
    assert "Retries 0" not in str(second)


def test_a_full_disk_stops_publishing_and_not_serving(team: Team, node: Node) -> None:
    first = team.publish(PAGES)
    replica = team.replica()
    blocked = {"persistent": {"cluster.blocks.read_only_allow_delete": True}}
    node.ask("PUT", "/_cluster/settings", blocked)
    try:
        with pytest.raises(Unavailable, match="takes no writes"):
            team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
        assert replica.search("rollback")["results"]
    finally:
        blocked["persistent"]["cluster.blocks.read_only_allow_delete"] = None  # type: ignore[assignment]
        node.ask("PUT", "/_cluster/settings", blocked)
    assert team.served == [first.index]
    assert team.publish().moved


def test_a_page_of_no_layer_of_the_token_is_not_found(team: Team) -> None:
    team.publish(PAGES)
    with pytest.raises(NotFound):
        team.replica(("core",)).get("all", "practices/secret")


def test_a_cluster_that_hangs_is_a_timeout_and_needs_no_restart(team: Team, node: Node) -> None:
    team.publish(PAGES)
    replica = team.replica()
    node.kill(signal.SIGSTOP)
    try:
        with pytest.raises((TimeoutExceeded, Unavailable)):
            replica.search("rollback", deadline=Deadline(1_500))
        for topic in ("guidelines/errors", None):
            with pytest.raises(TimeoutExceeded, match="look at the cluster's health"):
                replica.get("guidelines", topic, deadline=Deadline(1_500))
    finally:
        node.kill(signal.SIGCONT)
    assert replica.search("rollback")["results"]


def test_a_replica_without_files_serves_a_token_what_it_may_see(team: Team, tmp_path: Path) -> None:
    team.publish(PAGES)
    environment = {**os.environ, **team.base.environment, "SAGE_TOKENS": str(tmp_path / "tokens")}
    sage = [sys.executable, "-m", "sage"]
    made = [*sage, "token", "create", "ada", "--layers", "core,guidelines"]
    token = subprocess.run(
        made, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    where = ["--engine", "opensearch", "--url", team.options.urls[0], "--base", team.options.base]
    serving = subprocess.Popen(
        [*sage, "serve", "--http", "--port", "0", "--require-token", *where],
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stderr is not None
        told_where = next(line for line in serving.stderr if '"listening"' in line)
        url = json.loads(told_where)["url"]
        assert "rollback" in _called(url, token, "rollback")["missing"]
        assert _called(url, token, "zanzibar")["total"] == 0
        assert _called(url, token, "retry a request")["results"][0]["topic"].startswith(
            "guidelines"
        )
    finally:
        serving.kill()
        serving.communicate()


def _called(url: str, token: str, query: str) -> dict[str, Any]:
    """What the server answers to a search with a token."""
    call = {"name": "sage_search", "arguments": {"query": query}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    head = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), head)
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
        answer: dict[str, Any] = json.load(response)["result"]["structuredContent"]
        return answer


def test_the_command_publishes_says_what_changed_and_tells_what_is_served(
    run: Run, base: Base, team: Team
) -> None:
    at = ("--url", team.options.urls[0], "--base", team.options.base)
    code, out, err = run("publish", *at, "--dry-run")
    assert (code, "would be published" in out) == (0, True), err
    code, out, err = run("publish", *at)
    assert (code, "2 added" in out) == (0, True), err
    assert "nothing changed" in run("publish", *at)[1]
    base.write({"core/new.md": "# New\n\nA page.\n"})
    published = json.loads(run("publish", *at, "--json")[1])
    assert (published["added"], published["documents"]) == (1, 3)
    assert "removed" in run("publish", *at, "--prune", "--grace", "0")[1]
    code, out, err = run("info", *at)
    assert (code, "3" in out) == (0, True), err


def test_what_may_not_be_seen_has_no_part_in_the_order(team: Team, tmp_path: Path) -> None:
    """Hidden pages make a word common that is rare in the pages that are seen."""
    seen = {
        f"core/{name}{number}.md": f"# Note {number}\n\n{words * (1 + number % 7)}Text.\n"
        for name, words in (("one", "gingham " * 4), ("two", "paisley " * 3))
        for number in range(100)
    }
    hidden = {f"practices/{number}.md": f"# Hidden\n\nGingham {number}.\n" for number in range(400)}
    other = Team(beside(team, tmp_path / "other").base, team.options.urls[0])
    with other.connection:
        found: list[list[tuple[str, float]]] = []
        for one, pages in ((team, seen), (other, {**seen, **hidden})):
            one.publish(pages)
            results = one.replica(["core"]).search("gingham paisley")["results"]
            found.append([(result["topic"], result["score"]) for result in results])
    assert found[0] == found[1]
    assert len(found[0]) > 3
