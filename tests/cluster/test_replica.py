"""A replica that serves on is as right as one that was opened just now."""

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from sage.cluster.backend import open_cluster
from sage.cluster.conformance import PAGES
from sage.cluster.connection import ClusterOptions, Connection
from sage.cluster.generations import all_of, write_meta
from sage.cluster.replica import LOOK_SECONDS
from sage.cluster.vectors import VectorReader
from sage.cluster.view import UNLOADED
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded, Unavailable
from sage.knowledge import KnowledgeBase
from sage.settings import rootless_settings
from sage.values import OWN
from tests.cluster.conftest import Team, beside, eventually, name_in_alias, narrowed, told
from tests.cluster.nodes import Node
from tests.processes import PATIENCE_SECONDS

State = Mapping[str, str]


def page(word: str) -> str:
    return f"# About {word}\n\nThe {word} is kept by the team.\n"


A = {f"practices/{name}.md": page(name) for name in ("apple", "pear", "plum", "quince", "fig")}
B, C, D = ({**A, f"practices/{name}.md": page(name)} for name in ("badger", "civet", "dingo"))
C_AND_D = {**C, **D}
EDITED = {**A, "practices/apple.md": page("heron"), "core/new.md": page("ibis")}
WITHOUT = {name: text for name, text in A.items() if "fig" not in name}
WORDS = ("fig", "badger", "civet", "dingo", "heron")

WALKS: Mapping[str, Sequence[State]] = {
    "a revert and what comes after": [B, A, C, C_AND_D],
    "two reverts": [B, A, B, C, A, D, C_AND_D],
    "a page that comes back": [WITHOUT, A, WITHOUT, EDITED, A, C],
    "everything anew": [{"core/one.md": page("badger")}, A, B],
}


def publish(team: Team, state: State, **options: object) -> None:
    """Publish exactly these pages."""
    gone = [
        path.relative_to(team.base.path("")).as_posix() for path in team.base.path("").rglob("*.md")
    ]
    team.publish(state, *(name for name in gone if name not in state), **options)


def said(replica: KnowledgeBase) -> dict[str, object]:
    """All that it lists and finds."""
    found = {word: replica.search(word) for word in WORDS}
    return {
        "topics": replica.topics(),
        **{word: [one["topic"] for one in answer["results"]] for word, answer in found.items()},
        **{f"{word} missing": answer.get("missing") for word, answer in found.items()},
        "sections": replica.info()["index"]["sections"],
    }


@pytest.fixture
def payments(team: Team, tmp_path: Path) -> Team:
    """Another repository that publishes into the same base, as a source of its own."""
    return beside(team, tmp_path / "payments")


@pytest.mark.parametrize(
    ("walk", "grace_seconds"), [*((walk, 300.0) for walk in WALKS), ("two reverts", 0.0)]
)
def test_it_follows_every_step(walk: str, grace_seconds: float, team: Team) -> None:
    publish(team, A)
    every, some = team.replica(), team.replica()
    for step, state in enumerate(WALKS[walk]):
        publish(team, state, grace_seconds=grace_seconds)
        fresh = said(team.replica())
        assert said(every) == fresh, step
        assert fresh["topics"] == team.base.open().topics()
        if step % 2:
            assert said(some) == fresh, step


def test_it_follows_several_sources(team: Team, payments: Team) -> None:
    publish(team, A)
    publish(payments, B, source="payments")
    replica = team.replica()
    for own, theirs in ((B, A), (A, C), (C, B), (C_AND_D, EDITED), (A, A)):
        publish(team, own)
        publish(payments, theirs, source="payments")
        assert said(replica) == said(team.replica())


def test_only_what_changed_is_loaded_after_a_revert(team: Team) -> None:
    """What is in memory already is not loaded again, and neither is what a copy was made of."""
    publish(team, A)
    replica = team.replica()
    publish(team, B)
    replica.search("badger")
    asked: list[str] = []
    request = team.connection.request

    def noted(method: str, path: str, body: object, *rest: object, **more: object) -> object:
        if isinstance(body, bytes) and b'"gt": ' in body:
            asked.append(body.decode().partition('"gt": ')[2].partition("}")[0])
        return request(method, path, body, *rest, **more)  # type: ignore[arg-type]

    team.connection.request = noted  # type: ignore[method-assign,assignment]
    publish(team, A)
    assert not replica.search("badger")["results"]
    assert asked == []
    publish(team, C)
    assert replica.search("civet")["results"]
    assert set(asked) == {"0"}


def test_a_commit_that_is_published_again_says_since_when(team: Team) -> None:
    publish(team, PAGES)
    replica = team.replica()
    publish(team, A)
    replica.search("apple")
    publish(team, PAGES)
    replica.search("rollback")
    fresh = team.replica()
    fresh.search("rollback")
    assert told(replica)["published"] == told(fresh)["published"]


class SlowLoads(Connection):
    """Lets nobody load pages until it is told to."""

    def __init__(self, options: ClusterOptions) -> None:
        super().__init__(options)
        self.may_load = threading.Event()
        self.may_load.set()

    def __enter__(self) -> Self:
        return self

    def request(self, method: str, path: str, body: object, *rest: Any, **more: Any) -> Any:
        if isinstance(body, bytes) and b'"gt": ' in body:
            self.may_load.wait(PATIENCE_SECONDS)
        return super().request(method, path, body, *rest, **more)


def test_a_generation_that_loads_slowly_holds_up_no_call(team: Team) -> None:
    publish(team, A)
    settings = rootless_settings(environment=team.base.environment)
    with SlowLoads(team.options) as slow:
        replica = open_cluster(slow, settings, Deadline(60_000))
        before = told(replica)["published"]
        slow.may_load.clear()
        publish(team, B)

        def tells_of_it() -> bool:
            answer = replica.search("badger", deadline=patience())
            assert not answer["results"]
            is_told = "is being loaded" in answer.get("note", "")
            assert not is_told or answer["complete"] is False
            return is_told

        # Where the cluster takes long to say what the alias names, the first call cannot know.
        eventually(tells_of_it, "answers that tell of what is loaded")
        assert tells_of_it()
        assert not replica.context("coding", task="badger", deadline=patience())["complete"]
        got = replica.get("practices", "apple", deadline=patience())
        assert ("apple" in got["content"], got["metadata"]["complete"]) == (True, False)
        eventually(lambda: told(replica)["status"] == "degraded", "signs of what is loaded")
        info = told(replica)
        assert info["published"] == before
        assert info["behind_seconds"] > 1.0
        slow.may_load.set()
        eventually(lambda: bool(replica.search("badger")["results"]), "answers from the new one")
        assert "complete" not in replica.search("badger")
        eventually(lambda: told(replica)["status"] == "healthy", "signs that all is served")


def patience() -> Deadline:
    """So long a call may take here; what is held up takes longer."""
    return Deadline(PATIENCE_SECONDS * 500)


def test_it_tells_since_when_the_cluster_is_silent(team: Team, node: Node) -> None:
    publish(team, A)
    replica = team.replica()
    eventually(lambda: told(replica)["behind_seconds"] < 1.0, "signs that it is near the alias")
    node.kill(signal.SIGSTOP)
    try:
        for least in (1.0, 3.0):
            eventually(
                lambda least=least: replica.info(Deadline(500))["behind_seconds"] > least,  # type: ignore[misc,typeddict-item]
                f"{least} s since the alias was known",
            )
        info = replica.info(Deadline(500))
        assert (info["status"], "ask for less" in str(info["reasons"])) == ("unhealthy", False)
    finally:
        node.kill(signal.SIGCONT)
    eventually(lambda: told(replica)["status"] == "healthy", "signs of its recovery")
    eventually(lambda: told(replica)["behind_seconds"] < 1.0, "signs that it is near the alias")


def test_a_cluster_that_is_known_to_be_silent_takes_no_whole_deadline(
    team: Team, node: Node
) -> None:
    team.publish(PAGES)
    replica = team.replica()
    assert replica.search("rollback")["results"]
    team.clock.skip(LOOK_SECONDS)
    node.kill(signal.SIGSTOP)
    calls: list[Callable[[Deadline], object]] = [
        lambda deadline: replica.search("retries", deadline=deadline),
        lambda deadline: replica.context("coding", task="retries", deadline=deadline),
        lambda deadline: replica.get("all", "guidelines/errors", deadline=deadline),
    ]
    try:
        for call in calls:
            deadline = Deadline(PATIENCE_SECONDS * 1000)
            with pytest.raises(TimeoutExceeded, match="look at the cluster's health"):
                call(deadline)
            left = deadline.remaining_seconds
            assert left is not None
            assert left > PATIENCE_SECONDS / 2
    finally:
        node.kill(signal.SIGCONT)


def test_a_load_that_fails_in_any_way_is_told_and_tried_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.publish(PAGES)
    replica = team.replica()
    with monkeypatch.context() as patched:
        patched.setattr(VectorReader, "keep_only", lambda *_: [][0])
        team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
        replica.search("marmalade")
    team.publish({"core/newer.md": "# Newer\n\nTreacle.\n"})
    eventually(lambda: bool(replica.search("treacle")["results"]), "the newer page")


def test_what_cannot_be_loaded_is_told_and_what_is_in_memory_is_served(team: Team) -> None:
    publish(team, A)
    replica = team.replica()
    publish(team, B)
    index = team.served[0]
    meta = all_of(team.connection, OWN, Deadline(30_000))[index]
    write_meta(team.connection, index, replace(meta, documents=99), Deadline(30_000))
    answer = replica.search("apple")
    assert (bool(answer["results"]), answer["complete"]) == (True, False)
    assert answer["note"] == "the source own is served as it was before"
    info = told(replica)
    assert info["status"] == "degraded"
    assert "does not hold what it says" in info["reasons"][0]
    part = told(narrowed(replica, ("core", "practices")))
    assert (part["status"], part["reasons"]) == ("degraded", [UNLOADED])
    assert index not in str(part)
    write_meta(team.connection, index, meta, Deadline(30_000))
    eventually(lambda: bool(replica.search("badger")["results"]), "answers from the new one")
    assert told(replica)["status"] == "healthy"


def test_a_source_that_cannot_be_loaded_holds_up_no_other(team: Team, payments: Team) -> None:
    publish(team, A)
    publish(payments, {"practices/dingo.md": page("dingo")}, source="payments")
    replica = team.replica()
    old = name_in_alias(team, "payments")
    publish(team, B)
    eventually(lambda: bool(replica.search("badger")["results"]), "answers from the new one")
    answer = replica.search("dingo")
    assert (len(answer["results"]), answer["complete"]) == (1, False)
    assert answer["note"] == "the source payments is served as it was before"
    team.connection.request("DELETE", f"/{old}", None, Deadline(30_000))
    for one in (replica, team.replica()):
        answer = one.search("dingo")
        assert (answer["results"], answer["complete"]) == ([], False)
        assert "the source payments is not served" in answer["note"]
        assert one.search("badger")["results"]
        info = told(one)
        assert (info["status"], [said["source"] for said in info["published"]]) == (
            "degraded",
            ["own"],
        )
        assert "payments is not served" in info["reasons"][0]
        assert "another version of SAGE" in info["reasons"][0]
    publish(payments, C, source="payments")
    assert replica.search("civet")["results"]
    assert told(replica)["status"] == "healthy"


def test_a_foreign_index_in_the_alias_is_told_and_the_rest_is_served(team: Team) -> None:
    publish(team, A)
    foreign = f"{team.options.base}notes"
    team.connection.request("PUT", f"/{foreign}", None, Deadline(30_000))
    action = {"add": {"index": foreign, "alias": team.options.base}}
    team.connection.request("POST", "/_aliases", {"actions": [action]}, Deadline(30_000))
    replica = team.replica()
    assert replica.search("apple")["results"]
    assert f"{foreign} was not written by SAGE" in told(replica)["reasons"][0]


def test_where_nothing_can_be_loaded_a_replica_does_not_start(team: Team) -> None:
    publish(team, A)
    replica = team.replica()
    old = name_in_alias(team, OWN)
    team.connection.request("DELETE", f"/{old}", None, Deadline(30_000))
    with pytest.raises(Unavailable, match="another version of SAGE"):
        team.replica()
    with pytest.raises(Unavailable, match="the source own is not served"):
        replica.search("apple")
    assert told(replica)["status"] == "unhealthy"


def test_a_thread_that_cannot_start_is_tried_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(team, A)
    replica = team.replica()
    publish(team, B)
    start, refused = threading.Thread.start, threading.Event()

    def full(thread: threading.Thread) -> None:
        if thread.name == "sage-load" and not refused.is_set():
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", full)
    assert not replica.search("badger")["results"]
    assert refused.is_set()
    team.clock.skip(1.0)
    assert replica.search("badger")["results"]


def test_whoever_opens_a_base_that_loads_slowly_waits_no_longer_than_it_said(team: Team) -> None:
    publish(team, A)
    settings = rootless_settings(environment=team.base.environment)
    with SlowLoads(team.options) as slow:
        slow.may_load.clear()
        with pytest.raises(TimeoutExceeded, match="is being loaded still"):
            open_cluster(slow, settings, Deadline(300))
        slow.may_load.set()
        for thread in threading.enumerate():
            if thread.name == "sage-load":
                thread.join(PATIENCE_SECONDS)


class SilentAlias(SlowLoads):
    """Answers nobody that asks for the alias until it is told to."""

    asked = threading.Event()

    def request(self, method: str, path: str, body: object, *rest: Any, **more: Any) -> Any:
        if path.startswith("/_alias/"):
            self.asked.set()
            self.may_load.wait(PATIENCE_SECONDS)
        return super().request(method, path, body, *rest, **more)


def test_whoever_follows_waits_for_nobody_who_looks(team: Team) -> None:
    publish(team, A)
    settings = rootless_settings(environment=team.base.environment)
    with SilentAlias(team.options) as slow:
        replica = open_cluster(slow, settings, Deadline(60_000), team.clock)
        slow.may_load.clear()
        slow.asked.clear()
        team.clock.skip(1.0)
        looking = threading.Thread(target=replica.search, args=("apple",))
        looking.start()
        assert slow.asked.wait(PATIENCE_SECONDS)
        replica.library.follow(Deadline(50))
        assert not slow.may_load.is_set()
        assert replica.search("apple")["results"]
        slow.may_load.set()
        looking.join(PATIENCE_SECONDS)
