import pytest

from sage.deadline import Deadline, no_deadline
from sage.errors import TimeoutExceeded
from tests.conftest import Clock


def test_deadline_expires_at_its_moment_and_not_before(clock: Clock) -> None:
    deadline = Deadline(500, clock)
    clock.tick(0.4)
    assert not deadline.expired
    clock.tick(0.1)
    assert deadline.expired


def test_remaining_seconds_never_fall_below_zero(clock: Clock) -> None:
    deadline = Deadline(500, clock)
    clock.tick(0.2)
    assert deadline.remaining_seconds == pytest.approx(0.3)
    clock.tick(10)
    assert deadline.remaining_seconds == 0.0


def test_check_raises_with_the_limit_and_what_to_do(clock: Clock) -> None:
    deadline = Deadline(250, clock)
    deadline.check()
    clock.tick(1)
    with pytest.raises(TimeoutExceeded, match="no answer within 250 ms; ask for less"):
        deadline.check()


def test_no_deadline_never_expires() -> None:
    deadline = no_deadline()
    deadline.check()
    assert not deadline.expired
    assert deadline.remaining_seconds is None


def test_cancelled_deadline_is_over_even_without_a_limit() -> None:
    deadline = no_deadline()
    deadline.cancel()
    assert deadline.expired
    assert deadline.remaining_seconds == 0.0
    with pytest.raises(TimeoutExceeded, match="cancelled"):
        deadline.check()


def test_a_part_passes_when_its_share_is_used(clock: Clock) -> None:
    whole = Deadline(1000, clock)
    part, short = whole.part(0.7), whole.part(0.7, most_seconds=0.2)
    clock.tick(0.3)
    assert (short.expired, part.expired, whole.expired) == (True, False, False)
    assert part.remaining_seconds == pytest.approx(0.4)
    clock.tick(0.5)
    assert (part.expired, whole.expired) == (True, False)
    assert "1000 ms" in part.message


def test_a_part_passes_with_the_whole() -> None:
    whole = no_deadline()
    part = whole.part(0.5, most_seconds=1.0)
    assert part.remaining_seconds is None
    whole.cancel()
    assert part.expired
    assert part.remaining_seconds == 0.0
