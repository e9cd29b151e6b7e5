"""cachetools' home: values trusted for a while, computed once however many threads ask.

Bounded by number and, where that is asked for, by bytes: for all and for each owner, so that one
caller of a shared server fills no more than its share.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, TypeVar

from cachetools import TTLCache

from sage.answers import CacheInfo
from sage.deadline import Clock, Deadline
from sage.errors import TimeoutExceeded

V = TypeVar("V")

# On whose behalf the running code works, "" for nobody in particular, who may fill all.
owner: ContextVar[str] = ContextVar("sage_cache_owner", default="")

MAX_ANSWERS = 256
"""Answers kept in memory."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""What they take together; half of it those of one caller."""
_MAX_OWNERS = 1_000


class _Kept(NamedTuple, Generic[V]):
    """A value and whom its bytes are counted for."""

    value: V
    size: int
    owner: str


class Cache(Generic[V]):
    """A bounded cache with a time to live, a lock and single flight."""

    def __init__(
        self,
        size: int,
        ttl_seconds: float,
        clock: Clock,
        size_of: Callable[[V], int] | None = None,
        *,
        most_values: int | None = None,
        largest: int | None = None,
        owner_most: int | None = None,
    ) -> None:
        """Args:
        size: the most that the values may have together.
        size_of: what each of them has; 1 when it is not given.
        most_values: how many there may be, where their size is not their number.
        largest: what has more is not kept.
        owner_most: what the values of one owner may have together.
        """
        # A TTLCache used by several threads without a lock corrupts its links for good.
        self._ready = threading.Condition()
        self._size_of = size_of
        # Each value counts at least so much that their number is bounded too.
        self._least = 1 if most_values is None else max(1, size // most_values)
        self._largest = size if largest is None else largest
        self._owner_most = owner_most
        self._values: TTLCache[Hashable, _Kept[V]] = TTLCache(
            size, ttl_seconds, timer=clock, getsizeof=lambda kept: kept.size
        )
        self._owned: dict[str, int] = {}
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
        """Keep a value, unless it alone is too large."""
        size = 1 if self._size_of is None else self._size_of(value)
        if size > self._largest:
            return
        kept = _Kept(value, max(size, self._least), owner.get())
        with self._ready, suppress(ValueError):
            if kept.owner and self._owner_most is not None:
                self._make_room(kept, self._owner_most)
            self._values[key] = kept

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

    def _make_room(self, kept: _Kept[V], most: int) -> None:
        """Drop the oldest values of an owner who has had its share."""
        # Values that expire or are displaced are not subtracted: this is the most it can be.
        at_most = self._owned.get(kept.owner, 0) + kept.size
        if at_most > most:
            own = {key: one.size for key, one in self._values.items() if one.owner == kept.owner}
            at_most = sum(own.values()) + kept.size
            for key, size in own.items():
                if at_most <= most:
                    break
                at_most -= size
                self._values.pop(key, None)
        self._owned[kept.owner] = at_most
        if len(self._owned) > _MAX_OWNERS:
            holding = {one.owner for one in self._values.values()}
            self._owned = {name: size for name, size in self._owned.items() if name in holding}

    def _find(self, key: Hashable) -> V | None:
        # Not `get`: it looks twice, and raises when the value expires in between.
        try:
            return self._values[key].value
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


class AnswerCache:
    """The answers to what was asked before, of whatever kind."""

    def __init__(self, ttl_seconds: float, clock: Clock) -> None:
        self._values: Cache[Any] = Cache(
            MAX_ANSWER_BYTES,
            ttl_seconds,
            clock,
            bytes_of,
            most_values=MAX_ANSWERS,
            largest=MAX_ANSWER_BYTES // 8,
            owner_most=MAX_ANSWER_BYTES // 2,
        )

    @property
    def info(self) -> CacheInfo:
        """Whether answers are kept, and how often one was there."""
        return CacheInfo(enabled=self._values.enabled, hit_rate=self._values.hit_rate)

    def remember(
        self,
        key: Hashable,
        compute: Callable[[], V],
        may_keep: Callable[[V], bool],
        deadline: Deadline,
    ) -> tuple[V, bool]:
        """An answer, and whether it was ready; partial ones are not kept."""

        def computed() -> tuple[V, bool]:
            value = compute()
            return value, may_keep(value)

        return self._values.remember(key, computed, deadline)


def bytes_of(value: object) -> int:
    """The bytes that a value takes with all that it holds."""
    total, seen, left = 0, set[int](), [value]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        total += sys.getsizeof(part)
        # Most parts: the kinds below are asked for one after the other.
        if isinstance(part, (str, int, float)):
            continue
        if isinstance(part, Mapping):
            left += part.keys()
            left += part.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            left += part
        elif dataclasses.is_dataclass(part) and not isinstance(part, type):
            left += [getattr(part, field.name) for field in dataclasses.fields(part)]
    return total
