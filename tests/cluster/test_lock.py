"""Who publishes keeps the lock as long as that takes, and gives it back without a word."""

import pytest

from sage.cluster.conformance import PAGES
from sage.deadline import Deadline
from sage.errors import Unavailable
from sage.publish.lock import PublishLock
from sage.publish.publisher import Publisher
from sage.values import OWN
from tests.cluster.conftest import Team


class Died(BaseException):
    """In place of a signal: nothing that follows is done."""


def die(*_: object) -> None:
    raise Died


@pytest.fixture
def renewed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How often the lock was renewed, where every time is due."""
    times: list[bool] = []
    rewrite = PublishLock._rewrite

    def counted(self: PublishLock, deadline: Deadline, trouble: Exception) -> None:
        times.append(True)
        rewrite(self, deadline, trouble)

    monkeypatch.setattr("sage.publish.lock._RENEW_SECONDS", -1.0)
    monkeypatch.setattr(PublishLock, "_rewrite", counted)
    return times


def test_the_lock_is_kept_while_what_is_served_is_read(
    team: Team, renewed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    team.publish(PAGES)
    renewed.clear()
    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "_write", die)
        with pytest.raises(Died):
            team.publish({"core/new.md": "# New\n\nMarmalade.\n"})
    assert len(renewed) == len(PAGES)
    renewed.clear()
    team.publish(dry_run=True)
    assert renewed == []  # nobody holds it then


def test_a_lock_that_is_gone_is_given_back_without_a_word(
    team: Team, caplog: pytest.LogCaptureFixture
) -> None:
    lock = PublishLock(team.connection, OWN)
    lock.acquire(Deadline(30_000))
    path = f"/{team.options.base}-publishing/_doc/{OWN}?refresh=true"
    team.connection.request("DELETE", path, None, Deadline(30_000))
    lock.release(Deadline(30_000))
    assert caplog.text == ""
    lock.acquire(Deadline(30_000))
    with pytest.raises(Unavailable, match="another publish of own is under way"):
        PublishLock(team.connection, OWN).acquire(Deadline(30_000))
