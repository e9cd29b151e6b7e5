"""A deadline that work checks inside its loops: a point in time, and a caller who may give up."""

import time
from collections.abc import Callable

from sage.errors import TimeoutExceeded

Clock = Callable[[], float]


class Deadline:
    """The moment after which work is no longer wanted."""

    __slots__ = ("_at", "_cancelled", "_clock", "_limit_ms")

    def __init__(self, limit_ms: float | None = None, clock: Clock = time.monotonic) -> None:
        self._limit_ms = limit_ms
        self._clock = clock
        self._at = None if limit_ms is None else clock() + limit_ms / 1000
        self._cancelled = False

    @property
    def expired(self) -> bool:
        """Whether time is up or the caller has gone."""
        return self._cancelled or (self._at is not None and self._clock() >= self._at)

    @property
    def remaining_seconds(self) -> float | None:
        """What is left, never below zero; None without a limit."""
        if self._cancelled:
            return 0.0
        return None if self._at is None else max(0.0, self._at - self._clock())

    def cancel(self) -> None:
        """Tell the work that nobody waits for it any more."""
        self._cancelled = True

    def check(self) -> None:
        """Stop here when the deadline has passed.

        Raises:
            TimeoutExceeded: time is up or the caller has gone.
        """
        if self.expired:
            raise TimeoutExceeded(self.message)

    @property
    def message(self) -> str:
        """One sentence for the caller whose time ran out."""
        if self._limit_ms is None:
            return "the call was cancelled"
        return (
            f"no answer within {self._limit_ms:.0f} ms; "
            "ask for less (a topic, a smaller limit) or allow more time"
        )


def no_deadline() -> Deadline:
    """A deadline that passes only when it is cancelled."""
    return Deadline()
