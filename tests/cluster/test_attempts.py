"""Which nodes are asked for one request, one after the other."""

from collections.abc import Mapping

import pytest

from sage.cluster.attempts import Attempts, Failure


def asked(
    nodes: int, failures: Mapping[int, Failure], *, first: int = 0, again: bool = True
) -> list[int]:
    """The nodes that are asked where each fails in its way, the others by breaking off."""
    attempts = Attempts(nodes, first, again=again)
    found: list[int] = []
    for attempt in attempts:
        found.append(attempt.node)
        attempts.failed(failures.get(attempt.node, Failure.BROKEN))
    return found


@pytest.mark.parametrize("nodes", [1, 3, 10])
def test_the_pauses_are_those_of_rounds_however_many_nodes_there_are(nodes: int) -> None:
    attempts = Attempts(nodes, 0, again=True)
    pauses = []
    for attempt in attempts:
        pauses.append(attempt.pause_seconds)
        attempts.failed(Failure.BUSY)
    assert len(pauses) == 3 * nodes
    assert [one for one in pauses if one] == [0.2, 0.4]
    assert (pauses[nodes], pauses[2 * nodes]) == (0.2, 0.4)


def test_every_node_is_asked_three_times_from_the_first_on() -> None:
    assert asked(3, {}, first=1) == [1, 2, 0] * 3


def test_a_node_that_is_none_is_not_asked_again_and_does_not_shorten_the_pause() -> None:
    assert asked(2, {0: Failure.STRANGE}) == [0, 1, 1, 1]
    assert asked(2, {0: Failure.STRANGE, 1: Failure.STRANGE}) == [0, 1]
    attempts = Attempts(2, 0, again=True)
    pauses = {}
    for number, attempt in enumerate(attempts):
        pauses[number] = attempt.pause_seconds
        attempts.failed(Failure.STRANGE if attempt.node == 0 else Failure.BUSY)
    assert pauses == {0: 0.0, 1: 0.0, 2: 0.2, 3: 0.4}


@pytest.mark.parametrize("silence", [Failure.SILENT, Failure.UNREACHED_SILENT])
def test_of_silent_nodes_a_second_one_is_the_last(silence: Failure) -> None:
    assert asked(4, {1: silence, 3: silence}) == [0, 1, 2, 3]
    attempts = iter(one := Attempts(3, 0, again=True))
    assert next(attempts).may_move_on
    one.failed(silence)
    assert not next(attempts).may_move_on


@pytest.mark.parametrize("failure", Failure)
def test_what_may_not_be_sent_twice_is_sent_on_only_where_it_was_not_begun(
    failure: Failure,
) -> None:
    is_begun = failure not in (Failure.UNREACHED, Failure.UNREACHED_SILENT, Failure.REFUSED)
    assert asked(2, {0: failure}, again=False) == ([0] if is_begun else [0, 1])
