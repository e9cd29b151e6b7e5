"""What a publish refuses, leaves and says when something is not as it should be."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from sage.answers import ReplicaInfo
from sage.cluster import generations
from sage.cluster.conformance import PAGES
from sage.cluster.connection import PatientConnection
from sage.cluster.schema import checked_source, page_id, parse_name
from sage.deadline import Deadline
from sage.errors import ConfigError, Unavailable
from sage.paths import KNOWLEDGE_DIR
from sage.publish.lock import Lost, PublishLock
from sage.publish.publisher import Publisher, PublishOptions
from sage.values import OWN
from tests.cluster.conftest import Died, Team, die, eventually, free_the_lock
from tests.cluster.nodes import Node
from tests.commands import Run, run
from tests.processes import PATIENCE_SECONDS
from tests.repositories import git

__all__ = ["run"]


def test_a_copy_that_nobody_described_is_not_taken_for_a_finished_generation(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.publish(PAGES)
    with monkeypatch.context() as patched:
        patched.setattr(generations, "write_meta", die)
        patched.setattr(PublishLock, "release", lambda *_: None)
        with pytest.raises(Died):
            team.publish({"core/principles.md": "# Principles\n\nMarmalade.\n"})
    assert len(team.indexes) == 2
    free_the_lock(team)
    assert team.publish().moved
    assert team.replica().search("marmalade")["results"]


def test_a_replica_that_missed_a_revert_has_no_page_of_what_was_reverted(team: Team) -> None:
    text = "# New\n\nMarmalade.\n"
    team.publish(PAGES)
    team.publish({"core/new.md": text})
    replica = team.replica()
    assert replica.search("marmalade")["results"]
    team.publish(None, "core/new.md")
    for number in range(2):
        team.publish({f"core/later-{number}.md": "# Later\n\nTreacle.\n"})
    eventually(lambda: bool(replica.search("treacle")["results"]), "pages of the last one")
    assert not replica.search("marmalade")["results"]
    assert "Treacle" in replica.get("all", "core/later-0")["content"]


def test_an_empty_checkout_replaces_nothing_unless_that_is_asked_for(team: Team) -> None:
    first = team.publish(PAGES)
    for path in PAGES:
        team.base.path(path).unlink()
    for dry_run in (True, False):
        with pytest.raises(ConfigError, match=r"holds no pages.*--allow-empty"):
            team.publish(dry_run=dry_run)
    assert team.served == team.indexes == [first.index]
    done = team.publish(allow_empty=True)
    assert (done.moved, done.removed, done.documents) == (True, len(PAGES), 0)
    assert not team.publish().moved  # there is nothing left to lose


def test_a_new_source_without_pages_is_refused_unless_that_is_asked_for(team: Team) -> None:
    for dry_run in (True, False):
        with pytest.raises(ConfigError, match=r"is not published yet.*--allow-empty"):
            team.publish(source="payments", dry_run=dry_run)
    assert team.indexes == []
    assert team.publish(source="payments", allow_empty=True).moved


def test_the_command_says_what_an_empty_checkout_would_take_away(run: Run, team: Team) -> None:
    at = ("--url", team.options.urls[0], "--base", team.options.base)
    assert run("publish", *at)[0] == 0
    for path in team.base.path("").rglob("*.md"):
        path.unlink()
    code, out, err = run("publish", *at)
    assert (code, out) == (4, "")
    assert "2 pages of own would no longer be served" in err
    assert "2 removed" in run("publish", *at, "--allow-empty")[1]


def lose(team: Team, node: Node, index: str, path: str) -> None:
    """Take a page out of an index, as nobody may."""
    with set_for(node, index, index__blocks__write=False):
        node.ask("DELETE", f"/{index}/_doc/{page_id(path)}?refresh=true")


@pytest.mark.parametrize("more", [{}, {"core/new.md": "# New\n\nMarmalade.\n"}])
def test_what_lost_a_page_is_written_anew(
    team: Team, node: Node, more: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    first = team.publish(PAGES)
    lose(team, node, first.index, f"{KNOWLEDGE_DIR}/guidelines/errors.md")
    with pytest.raises(Unavailable, match="does not hold what it says; publish again"):
        team.replica()
    done = team.publish(more)
    assert f"{first.index} does not hold what it says: all is written anew" in caplog.text
    assert (done.moved, done.documents) == (True, len(PAGES) + len(more))
    assert team.replica().search("failed request")["results"]
    assert not team.publish().moved


def test_what_is_damaged_can_be_written_anew(run: Run, team: Team) -> None:
    first = team.publish(PAGES)
    at = ("--url", team.options.urls[0], "--base", team.options.base)
    assert f"{first.documents} added" in run("publish", *at, "--anew", "--dry-run")[1]
    assert team.served == [first.index]
    assert run("publish", *at, "--anew")[0] == 0
    assert team.served != [first.index]
    assert "nothing changed" in run("publish", *at)[1]
    assert team.replica().search("rollback")["results"]


def test_old_generations_make_room_on_a_full_disk(team: Team, node: Node) -> None:
    first = team.publish(PAGES)
    second = team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    base = team.options.base
    with set_for(node, f"{base}*", index__blocks__read_only_allow_delete=True):
        publisher = Publisher(team.base.open(), team.connection, PublishOptions(grace_seconds=0.0))
        assert publisher.prune() == (first.index,)
    assert team.served == team.indexes == [second.index]


def test_whoever_lost_the_lock_removes_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    first = team.publish(PAGES)
    other = PublishLock(team.connection, OWN, now=lambda: 9e9)
    written = Publisher._written

    def too_slow(self: Publisher, *given: Any) -> int:
        written(self, *given)
        other.acquire(Deadline(30_000))
        return -1  # what was counted is not what is there

    monkeypatch.setattr(Publisher, "_written", too_slow)
    with pytest.raises(Lost, match="another publish of own took over"):
        team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    other.release(Deadline(30_000))
    assert team.served == [first.index]
    assert len(team.indexes) == 2


@contextmanager
def set_for(node: Node, index: str, **settings: object) -> Iterator[None]:
    """Something is set for an index for a while."""
    dotted = {name.replace("__", "."): value for name, value in settings.items()}
    node.ask("PUT", f"/{index}/_settings", dotted)
    try:
        yield
    finally:
        node.ask("PUT", f"/{index}/_settings", dict.fromkeys(dotted))


@pytest.mark.parametrize("what", ["{base}-v*", "{base}-publishing", "{base}*"])
def test_a_full_disk_is_told_at_once_and_replicas_serve_on(
    team: Team, node: Node, what: str
) -> None:
    first = team.publish(PAGES)
    replica = team.replica()
    pauses: list[float] = []
    indexes = what.format(base=team.options.base)
    with (
        set_for(node, indexes, index__blocks__read_only_allow_delete=True),
        PatientConnection(team.options, pauses.append) as patient,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(team, "connection", patient)
        with pytest.raises(Unavailable, match=r"its disk is full.*free room on its disks"):
            team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
        assert pauses == []
        assert replica.search("rollback")["results"]
    assert team.served == team.indexes == [first.index]
    assert team.publish().moved


@pytest.mark.parametrize("changed", ["core/new.md", "all"])
def test_an_index_that_no_node_takes_is_told_with_the_reason_and_leaves_nothing(
    team: Team, node: Node, changed: str
) -> None:
    first = team.publish(PAGES)
    pages = dict.fromkeys(PAGES if changed == "all" else [changed], "# New\n\nMarmalade.\n")
    rule: dict[str, object] = {"cluster.routing.allocation.exclude._name": node.name}
    node.ask("PUT", "/_cluster/settings", {"transient": rule})
    try:
        with pytest.raises(Unavailable, match=r"no node takes the new index .*matches cluster"):
            team.publish(pages)
    finally:
        node.ask("PUT", "/_cluster/settings", {"transient": dict.fromkeys(rule)})
    assert team.served == team.indexes == [first.index]
    assert team.publish().moved


def test_a_copy_has_a_place_whatever_was_set_for_its_original(team: Team, node: Node) -> None:
    first = team.publish(PAGES, shards=2)
    rule = {"index.routing.allocation.exclude._name": node.name}
    node.ask("PUT", f"/{first.index}/_settings", {**rule, "index.auto_expand_replicas": "false"})
    done = team.publish({"core/new.md": "# New\n\nMarmalade.\n"}, shards=5)
    held = node.ask("GET", f"/{done.index}/_settings?flat_settings=true")
    settings = held[done.index]["settings"]
    assert settings["index.auto_expand_replicas"] == "0-1"
    assert settings["index.number_of_shards"] == "2"  # a copy has those of its original
    assert not settings.get("index.routing.allocation.exclude._name")
    assert team.replica().search("marmalade")["results"]


@pytest.fixture
def quickly_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster has just started here."""
    monkeypatch.setattr(generations, "STARTING_SECONDS", 1)


def make_red(node: Node, index: str) -> None:
    """Damage an index on the disk, and have its node look at it again."""
    uuid = node.ask("GET", f"/{index}/_settings/index.uuid")[index]["settings"]["index"]["uuid"]
    (about,) = node.ask("GET", "/_nodes/_local/settings")["nodes"].values()
    (data,) = about["settings"]["path"]["data"]
    for folder in Path(data).glob(f"nodes/0/indices/{uuid}/*/index"):
        mark = folder / "corrupted_by_a_test"
        mark.write_bytes(b"")
        mark.chmod(0o666)
    place = {"index": index, "shard": 0, "node": node.name, "allow_primary": True}
    node.ask("POST", "/_cluster/reroute", {"commands": [{"cancel": place}]})
    until = time.monotonic() + PATIENCE_SECONDS
    while node.ask("GET", f"/_cluster/health/{index}")["status"] != "red":
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.usefixtures("quickly_red")
def test_what_is_served_and_red_is_written_anew(
    team: Team, node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    first = team.publish(PAGES)
    make_red(node, first.index)
    done = team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    assert (done.moved, done.added) == (True, len(PAGES) + 1)
    assert f"{first.index}, which is served, is red and cannot be read" in caplog.text
    assert team.served == [done.index]
    assert team.replica().search("marmalade")["results"]


@pytest.mark.usefixtures("quickly_red")
def test_what_is_red_is_written_anew_with_the_same_content_too(team: Team, node: Node) -> None:
    first = team.publish(PAGES)
    make_red(node, first.index)
    second = team.publish()
    assert (second.moved, second.index != first.index) == (True, True)
    third = team.publish()
    assert (third.moved, third.index) == (False, second.index)
    assert team.replica().search("rollback")["results"]
    # What went back to it finds no finished generation in the one that is red.
    team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    again = team.publish(None, "core/new.md", grace_seconds=0.0)
    assert (again.moved, team.indexes) == (True, [again.index])


@pytest.mark.usefixtures("quickly_red")
def test_a_lock_that_is_red_is_named(team: Team, node: Node) -> None:
    team.publish(PAGES)
    make_red(node, f"{team.options.base}-publishing")
    with pytest.raises(Unavailable, match=r"-publishing, which holds nothing but .* is red"):
        team.publish({"core/new.md": "# New\n\nMarmalade.\n"})


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_base_whose_name_an_index_has_is_refused_before_anything_is_written(
    team: Team, node: Node, dry_run: bool
) -> None:
    node.ask("PUT", f"/{team.options.base}")
    with pytest.raises(ConfigError, match="has an index of that name"):
        team.publish(PAGES, dry_run=dry_run)
    assert team.indexes == []


def test_an_index_in_the_alias_that_is_not_ours_is_named(team: Team, node: Node) -> None:
    first = team.publish(PAGES)
    foreign = f"foreign_{team.options.base}"
    node.ask("PUT", f"/{foreign}", {"aliases": {team.options.base: {}}})
    with pytest.raises(Unavailable, match=f"{foreign} was not written by SAGE"):
        team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    node.ask("DELETE", f"/{foreign}")
    assert team.served == [first.index]


def test_an_index_where_the_new_one_would_be_is_named(team: Team, node: Node) -> None:
    name = team.publish(PAGES, dry_run=True).index
    node.ask("PUT", f"/{name}")
    with pytest.raises(Unavailable, match=f"{name} was not written by SAGE"):
        team.publish()


def test_sources_may_have_hyphens_and_none_is_taken_for_another(team: Team) -> None:
    names = ("payments", "payments-api", "payments-api-v4")
    for name in (*names, *names):
        page = f"# {name}\n\nMarmalade of {name}.\n"
        team.publish({"core/page.md": page}, source=name, grace_seconds=0.0)
    assert len(team.served) == len(team.indexes) == len(names)
    replica = team.replica()
    found = replica.search("marmalade", limit=20)["results"]
    assert {one["topic"] for one in found} == {f"core/{name}/page" for name in names}
    only = replica.search("marmalade source:payments-api")["results"]
    assert [one["topic"] for one in only] == ["core/payments-api/page"]


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "all", "a" * 41, "ä"])
def test_a_name_that_no_index_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="lower-case letters"):
        checked_source(name)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("sage-v4-own-0123", "own"),
        ("sage-v4-payments-api-v5-own-0123", "payments-api-v5-own"),
        ("sage-publishing", None),
        ("sage-x4-own-0123", None),
        ("sage-v\u00b2-own-0123", None),
        ("sage-v4-own", None),
    ],
)
def test_a_source_is_read_from_the_name_of_an_index(name: str, source: str | None) -> None:
    parts = parse_name(name)
    assert (parts.source if parts else None) == source
    assert parts is None or str(parts) == name


def test_what_is_served_says_the_last_commit_that_holds_exactly_that(team: Team) -> None:
    def commit() -> str:
        git(team.base.root, "init", "-q")
        git(team.base.root, "add", "-A", "-f", ".")
        git(team.base.root, "commit", "-qm", "pages", "--allow-empty")
        return git(team.base.root, "rev-parse", "HEAD")

    def told() -> tuple[str, str]:
        (served,) = cast("ReplicaInfo", team.replica().info())["published"]
        return served["commit"], served["since"]

    team.base.write(PAGES)
    first = commit()
    new = {"core/new.md": "# New\n\nMarmalade.\n"}
    team.publish(new)
    assert told()[0] == f"{first}-dirty"
    since = told()[1]
    second = commit()
    assert not team.publish().moved
    assert told() == (second, since)
    third = commit()
    assert not team.publish().moved
    assert told() == (third, since)
    # The generation that is served again was published from another commit.
    team.publish({"core/other.md": "# Other\n\nTreacle.\n"})
    fourth = commit()
    team.base.path("core/other.md").unlink()
    again = team.publish()
    assert again.moved
    assert told()[0] == f"{fourth}-dirty"
