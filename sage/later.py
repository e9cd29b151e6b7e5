"""Something that is made when it is first needed, however many threads need it at once."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Something made by the first thread that needs it, once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._value: T | None = None

    @property
    def made(self) -> bool:
        """Whether anybody has needed it yet."""
        return self._value is not None

    def get(self) -> T:
        """The value."""
        if self._value is None:
            with self._lock:
                if self._value is None:
                    self._value = self._make()
        return self._value
