"""Which generations of a source nobody reads any more, and since when.

One stays for a while after the alias left it, for calls that still read it. It says itself when the
alias left; where it does not, because the publish that moved the alias died, whoever finds it says
so: nothing is removed too early, and nothing stays for ever.
"""

import time
from collections.abc import Callable, Mapping

from sage.cluster import generations
from sage.cluster.connection import Connection, soon
from sage.cluster.generations import Meta
from sage.cluster.lock import PublishLock

MOVED_SECONDS = 300.0
"""Longer than it can take from the time that a generation says to the move of the alias to it."""


def remove_unread(
    connection: Connection,
    source: str,
    grace_seconds: float,
    now: Callable[[], float] = time.time,
) -> tuple[str, ...]:
    """Remove generations that nobody reads any more, under the lock; the names of those removed."""
    alias = generations.served(connection, soon())
    held = generations.all_of(connection, source, soon())
    gone: list[str] = []
    for name, left in _left(held, alias, now()).items():
        if now() - left >= grace_seconds:
            generations.delete(connection, name, soon())
            gone.append(name)
        elif not held[name].retired:
            generations.write_retired(connection, name, left, soon())
    return tuple(gone)


def unread(
    connection: Connection,
    source: str,
    grace_seconds: float,
    now: Callable[[], float] = time.time,
) -> tuple[str, ...]:
    """The names of those that would be removed now; nothing is changed."""
    alias = generations.served(connection, soon())
    held = generations.all_of(connection, source, soon())
    is_publishing = PublishLock(connection, source).is_taken(soon())
    return tuple(
        name
        for name, left in _left(held, alias, now()).items()
        if now() - left >= grace_seconds and (held[name].published or not is_publishing)
    )


def _left(held: Mapping[str, Meta], alias: tuple[str, ...], now: float) -> dict[str, float]:
    """Since when each generation that the alias does not know is not served, at the latest."""
    moved = max((meta.published for name, meta in held.items() if name in alias), default=0.0)
    # No later than the alias moved to the one that is served.
    latest = min(now, moved + MOVED_SECONDS) if moved else now
    return {
        name: (meta.retired or latest) if meta.published else float("-inf")
        for name, meta in held.items()
        if name not in alias
    }
