"""Only one publishes a source at a time: a document in the cluster says who, and for how long."""

import contextlib
import logging
import secrets
import time
from collections.abc import Callable

from sage.cluster.connection import Connection, taken_apart
from sage.cluster.generations import is_red
from sage.cluster.node_errors import Conflict, NotThere
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded, Unavailable

logger = logging.getLogger("sage.cluster")

HELD_SECONDS = 60.0
"""Whoever does not renew it for so long is taken for dead."""
_RENEW_SECONDS = 10.0


class Lost(Unavailable):
    """Somebody else publishes the source now; nothing of this run is served."""


class PublishLock:
    """Held from the first write to the move of the alias."""

    def __init__(
        self, connection: Connection, source: str, now: Callable[[], float] = time.time
    ) -> None:
        self._connection = connection
        self._index = f"{connection.options.base}-publishing"
        self._path = f"/{self._index}/_doc/{source}"
        self._source = source
        self._now = now
        self._owner = secrets.token_hex(8)
        self._seen = (0, 0)
        self._renewed = 0.0
        self._is_held = False

    @taken_apart("the question for the lock")
    def acquire(self, deadline: Deadline) -> None:
        """Take the lock.

        Raises:
            Unavailable: somebody else holds it.
        """
        properties = {"owner": {"type": "keyword"}, "until": {"type": "double"}}
        body = {
            "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1"},
            "mappings": {"dynamic": "strict", "properties": properties},
        }
        with contextlib.suppress(Conflict):  # it is there already
            self._connection.change("PUT", f"/{self._index}", body, deadline)
        if is_red(self._connection, self._index, deadline):
            raise Unavailable(
                f"the index {self._index}, which holds nothing but the lock of those who publish, "
                "is red; remove it, then publish again"
            )
        try:
            self._write("op_type=create", deadline)
        except Conflict:
            try:
                held = self._connection.get(self._path, deadline)
            except NotThere:  # it was given back just now, to somebody else perhaps
                raise self._taken() from None
            if held["_source"]["until"] > self._now():
                raise self._taken() from None
            self._seen = (held["_seq_no"], held["_primary_term"])
            self._rewrite(deadline, self._taken())

    @taken_apart("the question for the lock")
    def is_taken(self, deadline: Deadline) -> bool:
        """Whether somebody holds it now."""
        try:
            held = self._connection.get(self._path, deadline)
        except NotThere:
            return False
        return bool(held["_source"]["until"] > self._now())

    def renew(self, deadline: Deadline, *, now: bool = False) -> None:
        """Keep it, if it is held and that is due or must be certain.

        Raises:
            Lost: somebody else has taken it.
        """
        if self._is_held and (now or self._now() - self._renewed > _RENEW_SECONDS):
            self._rewrite(
                deadline, Lost(f"another publish of {self._source} took over; run it again")
            )

    def release(self, deadline: Deadline) -> None:
        """Let others publish; where that cannot be said they may in a minute."""
        self._is_held = False
        number, term = self._seen
        try:
            path = f"{self._path}?if_seq_no={number}&if_primary_term={term}&refresh=true"
            self._connection.request("DELETE", path, None, deadline)
        except (Conflict, NotThere):
            return  # it is somebody else's by now, or nobody's
        except (Unavailable, TimeoutExceeded) as error:
            # What was published is published, and what failed has its own reason.
            logger.warning(
                "the lock stays until it runs out", extra={"fields": {"why": str(error)}}
            )

    def _taken(self) -> Unavailable:
        return Unavailable(
            f"another publish of {self._source} is under way; wait for it, or a minute if it died"
        )

    def _rewrite(self, deadline: Deadline, trouble: Exception) -> None:
        number, term = self._seen
        try:
            self._write(f"if_seq_no={number}&if_primary_term={term}", deadline)
        except Conflict:
            raise trouble from None

    @taken_apart("the question for the lock")
    def _write(self, condition: str, deadline: Deadline) -> None:
        until = self._now() + HELD_SECONDS
        answer = self._connection.request(
            "PUT",
            f"{self._path}?{condition}",
            {"owner": self._owner, "until": until},
            deadline,
            again=False,
        )
        self._seen = (answer["_seq_no"], answer["_primary_term"])
        self._renewed = self._now()
        self._is_held = True
