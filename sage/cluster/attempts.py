"""In which order the nodes are asked for one request, and when no further one is.

A request that may be sent twice goes to every node, three times with a pause between. One that may
not goes to another node only where it was surely not begun.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

ROUNDS = 3
_PAUSE_SECONDS = 0.2


class Failure(Enum):
    """What became of an attempt."""

    UNREACHED = "nobody was there"
    UNREACHED_SILENT = "nobody said that nobody was there"
    REFUSED = "the node had no time for it, and has not begun it"
    BUSY = "the node had no time for it, and may have begun it"
    SILENT = "there was no answer in time"
    STRANGE = "the answer was not that of an OpenSearch"
    BROKEN = "the connection ended before the answer did"


_NOT_BEGUN = {Failure.UNREACHED, Failure.UNREACHED_SILENT, Failure.REFUSED}
_SILENT = {Failure.SILENT, Failure.UNREACHED_SILENT}


class Attempt(NamedTuple):
    """Which node is asked, and how."""

    node: int
    pause_seconds: float
    """To be waited before."""
    may_move_on: bool
    """Whether another node is asked where this one is silent."""
    are_others: bool
    """Whether there are some that were not asked yet."""


class Attempts:
    """The attempts of one request: to be gone through, telling how each of them failed."""

    def __init__(self, nodes: int, first: int, *, again: bool) -> None:
        """Args:
        first: the node that is asked first.
        again: whether the request may be sent twice.
        """
        self._nodes = nodes
        self._first = first
        self._again = again
        self._node = first
        self._strange: set[int] = set()
        self._was_silent = False
        self._is_over = False

    def __iter__(self) -> Iterator[Attempt]:
        pause = 0.0
        for number in range(ROUNDS * self._nodes):
            turn, place = divmod(number, self._nodes)
            if turn and not place:
                pause = _PAUSE_SECONDS * 2.0 ** (turn - 1)
            self._node = (self._first + place) % self._nodes
            if self._node in self._strange:
                continue
            are_others = number + 1 < self._nodes
            # To ask once more would not help a cluster that is slow: the second one may take all.
            yield Attempt(self._node, pause, not self._was_silent, are_others)
            pause = 0.0
            if self._is_over:
                return

    def failed(self, failure: Failure) -> None:
        """Tell what became of the attempt at hand."""
        if failure is Failure.STRANGE:
            self._strange.add(self._node)
        self._is_over = (
            (not self._again and failure not in _NOT_BEGUN)
            or (failure in _SILENT and self._was_silent)
            or len(self._strange) == self._nodes
        )
        self._was_silent = self._was_silent or failure in _SILENT
