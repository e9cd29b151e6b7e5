"""Who publishes keeps the lock as long as that takes, and gives it back without a word."""

from collections.abc import Iterator
from typing import Any

import pytest

from sage.cluster.connection import Connection
from sage.deadline import Deadline
from sage.errors import Unavailable
from sage.publish.lock import Lost, PublishLock
from sage.values import OWN
from tests.cluster.conftest import Team, eventually, free_the_lock


def soon() -> Deadline:
    return Deadline(30_000)


def place(team: Team) -> str:
    return f"/{team.options.base}-publishing/_doc/{OWN}"


@pytest.fixture
def lock(team: Team) -> Iterator[PublishLock]:
    held = PublishLock(team.connection, OWN)
    held.acquire(soon())
    yield held
    held.release(soon())


def test_the_lock_is_renewed_whatever_its_owner_does(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.publish.lock.RENEW_SECONDS", 0.01)
    lock = PublishLock(team.connection, OWN)
    lock.acquire(soon())
    first = team.connection.get(place(team), soon())["_seq_no"]
    eventually(lambda: team.connection.get(place(team), soon())["_seq_no"] > first + 3, "renewals")
    lock.check()
    lock.release(soon())
    free_the_lock(team)  # nobody renews it any more


def test_whoever_lost_the_lock_finds_it_without_asking(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.publish.lock.RENEW_SECONDS", 0.01)
    lock = PublishLock(team.connection, OWN)
    lock.acquire(soon())
    other = PublishLock(team.connection, OWN, now=lambda: 9e9)

    def is_lost() -> bool:
        try:
            lock.check()
        except Lost:
            return True
        return False

    def taken() -> bool:
        try:
            other.acquire(soon())
        except Unavailable:  # it was renewed just then
            return False
        return True

    eventually(taken, "moments in which it can be taken")
    eventually(is_lost, "signs of it")
    with pytest.raises(Lost, match="another publish of own took over"):
        lock.renew(soon())
    other.release(soon())


def test_what_is_sent_twice_because_nobody_answered_takes_no_lock_away(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a proxy that answers 504 although the cluster did what it was told."""
    send = Connection._send

    def twice(self: Connection, url: str, method: str, *given: Any) -> Any:
        if method == "PUT" and given[0].startswith(place(team)):
            send(self, url, method, *given)
        return send(self, url, method, *given)

    monkeypatch.setattr(Connection, "_send", twice)
    lock = PublishLock(team.connection, OWN)
    lock.acquire(soon())
    lock.renew(soon())
    with pytest.raises(Unavailable, match="another publish of own is under way"):
        PublishLock(team.connection, OWN).acquire(soon())
    lock.release(soon())


def test_a_lock_that_is_gone_is_given_back_without_a_word(
    team: Team, lock: PublishLock, caplog: pytest.LogCaptureFixture
) -> None:
    team.connection.request("DELETE", f"{place(team)}?refresh=true", None, soon())
    lock.release(soon())
    assert caplog.text == ""
    lock.acquire(soon())
    with pytest.raises(Unavailable, match="another publish of own is under way"):
        PublishLock(team.connection, OWN).acquire(soon())
