"""What takes a while is made once for each state of the base, for all who ask."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Keeps what was made last. Whoever asks meanwhile waits for it. Safe to share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[Hashable, T] | None = None

    def get(self, state: Hashable, make: Callable[[], T]) -> T:
        """What was made for this state, now or before."""
        with self._lock:
            if self._made is None or self._made[0] != state:
                self._made = (state, make())
            return self._made[1]
