"""cachetools' home: values trusted for a while, computed once however many threads ask."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import TTLCache

from sage.deadline import Clock, Deadline
from sage.errors import TimeoutExceeded

V = TypeVar("V")


class Cache(Generic[V]):
    """A bounded cache with a time to live, a lock and single flight."""

    def __init__(self, size: int, ttl_seconds: float, clock: Clock) -> None:
        # A TTLCache used by several threads without a lock corrupts its links for good.
        self._ready = threading.Condition()
        self._values: TTLCache[Hashable, V] = TTLCache(size, ttl_seconds, timer=clock)
        self._computing: set[Hashable] = set()
        self._enabled = ttl_seconds > 0
        self.hits = 0
        self.misses = 0

    @property
    def enabled(self) -> bool:
        """Whether anything is kept at all."""
        return self._enabled

    @property
    def hit_rate(self) -> float:
        """The share of questions answered from the cache so far."""
        asked = self.hits + self.misses
        return round(self.hits / asked, 4) if asked else 0.0

    def peek(self, key: Hashable) -> V | None:
        """The value if it is there, without counting the question."""
        with self._ready:
            return self._find(key)

    def put(self, key: Hashable, value: V) -> None:
        """Keep a value."""
        with self._ready:
            self._values[key] = value

    def remember(
        self, key: Hashable, compute: Callable[[], tuple[V, bool]], deadline: Deadline
    ) -> tuple[V, bool]:
        """The value and whether it came from the cache.

        Args:
            compute: makes the value, and says whether it may be kept.

        Raises:
            TimeoutExceeded: another thread was still computing it when the deadline passed.
        """
        with self._ready:
            found = self._wait(key, deadline)
            if found is not None:
                self.hits += 1
                return found, True
            self.misses += 1
            self._computing.add(key)
        try:
            value, keep = compute()
            if keep:
                self.put(key, value)
            return value, False
        finally:
            with self._ready:
                self._computing.discard(key)
                self._ready.notify_all()

    def _find(self, key: Hashable) -> V | None:
        # Not `get`: it looks twice, and raises when the value expires in between.
        try:
            return self._values[key]
        except KeyError:
            return None

    def _wait(self, key: Hashable, deadline: Deadline) -> V | None:
        """The value, once nobody is computing it; None makes the caller the one who does."""
        while True:
            value = self._find(key)
            if value is not None or key not in self._computing:
                return value
            if not self._ready.wait(deadline.remaining_seconds):
                raise TimeoutExceeded(deadline.message)
