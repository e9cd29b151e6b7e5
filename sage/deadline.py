"""A deadline that work checks inside its loops, and the clocks that tell when it has passed."""

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sage.errors import TimeoutExceeded

Clock = Callable[[], float]
_MONTH_SECONDS = 365.25 / 12 * 86_400

# When the call that the running code works for was complete, by time.monotonic; None when that is
# now: whoever looked at the files since then saw what the caller may expect to be seen.
arrived: ContextVar[float | None] = ContextVar("sage_call_arrived", default=None)


@dataclass(frozen=True, slots=True)
class Clocks:
    """What tells the time and waits; replaced by hand in tests."""

    monotonic: Clock = time.monotonic
    now: Clock = time.time
    sleep: Callable[[float], None] = time.sleep

    def months_ago(self, months: int) -> date:
        """The day so many months before today."""
        moment = max(0.0, self.now() - months * _MONTH_SECONDS)
        return datetime.fromtimestamp(moment, UTC).date()


class Deadline:
    """The moment after which work is no longer wanted."""

    __slots__ = ("_at", "_cancelled", "_clock", "_limit_ms", "since")

    def __init__(self, limit_ms: float | None = None, clock: Clock = time.monotonic) -> None:
        self._limit_ms = limit_ms
        self._clock = clock
        self._at = None if limit_ms is None else clock() + limit_ms / 1000
        self._cancelled = False
        came = arrived.get()
        self.since = time.monotonic() if came is None else came
        """What the caller may expect to be seen is older than this."""

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

    def earlier(self, limit_ms: float) -> "Deadline":
        """A deadline for a part of the work: so soon, and with half of what is left to spare."""
        left = self.remaining_seconds
        made = Deadline(limit_ms if left is None else min(limit_ms, left * 500), self._clock)
        made.since = self.since
        return made

    def part(self, share: float, most_seconds: float | None = None) -> "Deadline":
        """A deadline for a part of the work: it passes with this one, or when its share is used.

        With `most_seconds` the share is no longer than that; without a limit there is none either.
        """
        remaining = self.remaining_seconds
        if remaining is not None:
            remaining = min(share * remaining, remaining if most_seconds is None else most_seconds)
        return _PartDeadline(self, remaining)

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


class _PartDeadline(Deadline):
    """A share of what another deadline has left."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Deadline, seconds: float | None) -> None:
        super().__init__(None if seconds is None else seconds * 1000, whole._clock)
        self._whole = whole
        self.since = whole.since

    @property
    def expired(self) -> bool:
        """Whether its time is up, or the caller of the whole has gone."""
        return self._whole.expired or super().expired

    @property
    def remaining_seconds(self) -> float | None:
        """What is left of the share."""
        return 0.0 if self.expired else super().remaining_seconds

    @property
    def message(self) -> str:
        """The caller knows only the whole."""
        return self._whole.message


def no_deadline() -> Deadline:
    """A deadline that passes only when it is cancelled."""
    return Deadline()
