"""What is no longer served goes after its grace, never before, and never stays for ever."""

import json
import time
from typing import Any

import pytest

from sage.cluster import generations
from sage.cluster.conformance import PAGES
from sage.deadline import Deadline
from sage.publish.lock import PublishLock
from sage.publish.publisher import Publisher, PublishOptions
from sage.values import OWN
from tests.cluster.conftest import Died, Team, die, free_the_lock
from tests.commands import Run, run

__all__ = ["run"]


def prune(team: Team, **options: object) -> tuple[str, ...]:
    """Remove what is no longer read."""
    given = PublishOptions(**options)  # type: ignore[arg-type]
    return Publisher(team.base.open(), team.connection, given).prune()


def said_by(team: Team, index: str) -> dict[str, Any]:
    mapping = team.connection.get(f"/{index}/_mapping", Deadline(30_000))[index]
    said: dict[str, Any] = json.loads(mapping["mappings"]["_meta"]["sage"])
    return said


def say(team: Team, index: str, **more: object) -> None:
    meta = {"sage": json.dumps({**said_by(team, index), **more})}
    team.connection.request("PUT", f"/{index}/_mapping", {"_meta": meta}, Deadline(30_000))


def certain() -> None:
    """Nobody else publishes."""


def replaced_by_one_that_died(team: Team, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A generation, and one that died when the alias had moved to it."""
    first = team.publish(PAGES)
    with monkeypatch.context() as patched:
        patched.setattr("sage.cluster.generations.remove_unread", die)
        with pytest.raises(Died):
            team.publish({"core/new.md": "# New\n\nOne.\n"})
    (second,) = team.served
    return first.index, second


def test_a_dry_run_of_prune_says_what_would_go_and_removes_nothing(team: Team, run: Run) -> None:
    first = team.publish(PAGES)
    second = team.publish({"core/new.md": "# New\n\nOne.\n"})
    before = [said_by(team, index) for index in team.indexes]
    at = ("--url", team.options.urls[0], "--base", team.options.base)
    words = ("publish", *at, "--prune", "--dry-run", "--grace", "0")
    assert run(*words)[1] == f"would remove 1 old generation: {first.index}\n"
    assert json.loads(run(*words, "--json")[1]) == {"would_prune": [first.index]}
    assert run(*words[:-1], "300")[1] == "would remove 0 old generations\n"
    assert set(team.indexes) == {first.index, second.index}
    assert [said_by(team, index) for index in team.indexes] == before
    assert run("publish", *at, "--prune", "--grace", "0")[1].startswith("removed 1 old generation:")


def test_prune_of_a_source_that_is_not_there_says_which_are(team: Team, run: Run) -> None:
    at = ("publish", "--url", team.options.urls[0], "--base", team.options.base, "--prune")
    code, out, err = run(*at)
    assert (code, out) == (1, "")
    assert "nothing at all is; look at --base and --url" in err
    team.publish(PAGES, source="payments")
    team.publish(source="web-ui")
    for more in ((), ("--dry-run",)):
        code, out, err = run(*at, "--source", "payment", *more)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "its sources are payments, web-ui; did you mean payments?" in err
    assert run(*at, "--source", "payments") == (0, "removed 0 old generations\n", "")


def test_a_dry_run_does_not_count_what_somebody_is_writing(team: Team) -> None:
    first = team.publish(PAGES)
    second = team.publish({"core/new.md": "# New\n\nOne.\n"})
    say(team, first.index, published=0.0)
    lock = PublishLock(team.connection, OWN)
    lock.acquire(Deadline(30_000))
    assert prune(team, dry_run=True) == ()
    lock.release(Deadline(30_000))
    assert prune(team, dry_run=True) == (first.index,)
    assert team.served == [second.index]


def test_what_a_publish_left_that_died_after_the_alias_moved_goes_after_the_grace(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, served = replaced_by_one_that_died(team, monkeypatch)
    assert prune(team, grace_seconds=60.0) == ()
    assert time.time() - said_by(team, old)["retired"] < 60
    later = time.time() + 61
    gone = generations.remove_unread(team.connection, OWN, 60.0, certain, lambda: later)
    assert (gone, team.indexes) == ((old,), [served])


def test_what_was_left_long_ago_goes_at_once(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    old, served = replaced_by_one_that_died(team, monkeypatch)
    say(team, served, published=time.time() - 3_600)
    assert prune(team, grace_seconds=300.0) == (old,)


def test_a_generation_of_an_older_mapping_goes_after_the_grace(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cluster.schema", "cluster.generations", "publish.publisher"):
        monkeypatch.setattr(f"sage.{module}.MAPPING", 3)
    monkeypatch.setattr("sage.cluster.schema.Name.__new__.__defaults__", (3,))
    first = team.publish(PAGES)
    monkeypatch.undo()
    assert "-v3-" in first.index
    say(team, first.index, words_of_another_version=["x"])
    second = team.publish()
    assert second.moved
    assert team.served == [second.index]
    assert said_by(team, first.index)["retired"] > 0
    assert said_by(team, first.index)["words_of_another_version"] == ["x"]
    assert prune(team, grace_seconds=60.0) == ()
    assert prune(team, grace_seconds=0.0) == (first.index,)


def test_one_that_was_served_again_has_its_whole_grace_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = team.publish(PAGES)
    team.publish({"core/new.md": "# New\n\nOne.\n"})
    say(team, first.index, retired=time.time() - 200)
    assert team.publish(None, "core/new.md").index == first.index
    with monkeypatch.context() as patched:
        patched.setattr("sage.cluster.generations.remove_unread", die)
        with pytest.raises(Died):
            team.publish({"core/new.md": "# New\n\nTwo.\n"})
    free_the_lock(team)
    assert generations.remove_unread(team.connection, OWN, 100.0, certain) == ()


def test_an_index_with_our_name_that_is_not_ours_is_named_and_left_alone(
    team: Team, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = f"{team.options.base}-v4-own-0000000000000000"
    team.connection.request("PUT", f"/{foreign}", {}, Deadline(30_000))
    done = team.publish(PAGES)
    assert prune(team, grace_seconds=0.0) == ()
    assert team.indexes == sorted([foreign, done.index])
    assert f"{foreign} was not written by SAGE and stands where a generation would" in caplog.text
    assert generations.served(team.connection, Deadline(30_000)) == (done.index,)


def test_a_generation_as_mapping_4_wrote_it_is_replaced_and_retired(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cluster.schema", "cluster.generations", "publish.publisher"):
        monkeypatch.setattr(f"sage.{module}.MAPPING", 4)
    monkeypatch.setattr("sage.cluster.schema.Name.__new__.__defaults__", (4,))
    first = team.publish(PAGES)
    monkeypatch.undo()
    said = {**said_by(team, first.index), "line": "0123456789abcdef"}
    for name in ("key", "ancestors", "content"):
        del said[name]
    meta = {"sage": json.dumps(said)}
    team.connection.request("PUT", f"/{first.index}/_mapping", {"_meta": meta}, Deadline(30_000))
    second = team.publish()
    assert (second.moved, second.added, team.served) == (True, len(PAGES), [second.index])
    assert said_by(team, first.index)["retired"] > 0
    assert said_by(team, first.index)["line"] == "0123456789abcdef"
    assert prune(team, grace_seconds=0.0) == (first.index,)
