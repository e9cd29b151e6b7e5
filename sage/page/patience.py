"""How long a page waits for an answer: not for an index that is still being built.

Until it is there for the first time, a page is shown after a moment with what there is, and asks
again by itself. For pages that lie in a cluster nobody waits long, and for one that was found
silent only a moment.
"""

from collections.abc import Callable
from typing import TypeVar

from sage.deadline import Deadline, no_deadline
from sage.errors import TimeoutExceeded
from sage.knowledge import KnowledgeBase

FIRST_MS = 1_500
"""What a first paint may wait."""
ELSEWHERE_MS = 5_000
"""What a person waits for each thing that a cluster is asked for."""

T = TypeVar("T")


def deadline_of(knowledge: KnowledgeBase) -> Deadline:
    """For one thing that a page asks for; files are read to their end, however long it takes."""
    if not knowledge.library.is_published:
        return no_deadline()
    # Of what is published the message says why the cluster could not be asked the last time.
    return Deadline(FIRST_MS if "message" in knowledge.index() else ELSEWHERE_MS)


class Patience:
    """Asks a knowledge base as long as a person waits."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self._knowledge = knowledge
        self._longest_ms = knowledge.settings.limits.call_timeout_ms
        self._is_ready = False

    def ask(self, call: Callable[[Deadline], T]) -> T | None:
        """The answer; None when there is nothing to answer from yet."""
        if not self._is_ready:
            deadline = Deadline(FIRST_MS)
            answer = _answered(call, deadline)
            # What the short deadline cut is asked for again, once there is a whole index.
            if not deadline.expired or self.progress is not None:
                return answer
        left = deadline_of(self._knowledge).remaining_seconds
        longest = self._longest_ms
        return call(Deadline(longest if left is None else min(longest, left * 1000)))

    @property
    def progress(self) -> int | None:
        """How much of the first index is there, in percent; None once all of it is."""
        if not self._is_ready:
            index = self._knowledge.index()
            self._is_ready = index["state"] == "ready"
            if not self._is_ready:
                return round(100 * index.get("progress", 0))
        return None


def _answered(call: Callable[[Deadline], T], deadline: Deadline) -> T | None:
    try:
        return call(deadline)
    except TimeoutExceeded:
        return None
