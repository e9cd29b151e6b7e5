"""What a publish refuses, leaves and says when something is not as it should be."""

import pytest

from sage.cluster import generations
from sage.cluster.conformance import PAGES
from sage.cluster.lock import PublishLock
from sage.deadline import Deadline
from sage.values import OWN
from tests.cluster.conftest import Team


class Died(BaseException):
    """In place of a signal: nothing that follows is done."""


def die(*_: object) -> None:
    raise Died


def free_the_lock(team: Team) -> None:
    """As a minute after its owner died."""
    lock = PublishLock(team.connection, OWN, now=lambda: 9e9)
    lock.acquire(Deadline(30_000))
    lock.release(Deadline(30_000))


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
    while not replica.search("treacle")["results"]:
        pass
    assert not replica.search("marmalade")["results"]
    assert "Treacle" in replica.get("all", "core/later-0")["content"]
