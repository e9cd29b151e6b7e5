"""Only one publishes a source at a time: a document in the cluster says who, and for how long.

Whoever holds it renews it in a thread of its own, so that a step that takes long does not lose it.
The clocks of those who publish may differ by less than the time that is left after a renewal.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from sage.cluster.connection import Connection, taken_apart
from sage.cluster.generations import is_red
from sage.cluster.node_errors import Conflict, NotThere
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded, Unavailable

logger = logging.getLogger("sage.cluster")

HELD_SECONDS = 60.0
"""Whoever does not renew it for so long is taken for dead."""
RENEW_SECONDS = 10.0
_QUESTION = "the question for the lock"


class Lost(Unavailable):
    """Somebody else publishes the source now; nothing of this run is served."""


class PublishLock:
    """Held from before it is known what to write until old generations are removed."""

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
        self._changing = threading.Lock()
        self._lost: Lost | None = None
        self._stopped = threading.Event()

    def acquire(self, deadline: Deadline) -> None:
        """Take the lock, and keep it until it is released.

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
            self._take_over(deadline)
        self._lost = None
        self._stopped = threading.Event()
        work = (self._stopped,)
        threading.Thread(target=self._keep, args=work, name="sage-lock", daemon=True).start()

    def is_taken(self, deadline: Deadline) -> bool:
        """Whether somebody holds it now."""
        held = self._held(deadline)
        return held is not None and self._until(held) > self._now()

    def check(self) -> None:
        """See, without asking the cluster, whether it is known to be lost.

        Raises:
            Lost: somebody else has taken it.
        """
        if self._lost is not None:
            raise self._lost

    def renew(self, deadline: Deadline) -> None:
        """Be certain that it is held, before what cannot be taken back.

        Raises:
            Lost: somebody else has taken it.
        """
        with self._changing:
            self.check()
            try:
                self._rewrite(deadline)
            except Conflict:
                self._lost = Lost(f"another publish of {self._source} took over; run it again")
                raise self._lost from None

    def release(self, deadline: Deadline) -> None:
        """Let others publish; where that cannot be said they may in a minute."""
        self._stopped.set()
        with self._changing:
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

    def _keep(self, stopped: threading.Event) -> None:
        while not stopped.wait(RENEW_SECONDS):
            try:
                self.renew(Deadline(HELD_SECONDS * 1000))
            except Lost:
                return  # whoever publishes finds it at the next step
            except (Unavailable, TimeoutExceeded) as error:
                logger.warning(
                    "the lock could not be renewed", extra={"fields": {"why": str(error)}}
                )

    def _take_over(self, deadline: Deadline) -> None:
        """Take it from somebody who died.

        Raises:
            Unavailable: nobody did.
        """
        taken = Unavailable(
            f"another publish of {self._source} is under way; wait for it, or a minute if it died"
        )
        held = self._held(deadline)
        # Without a document it was given back just now, to somebody else perhaps.
        if held is None or self._until(held) > self._now():
            raise taken
        self._seen = self._place(held)
        try:
            self._rewrite(deadline)
        except Conflict:
            raise taken from None

    def _rewrite(self, deadline: Deadline) -> None:
        number, term = self._seen
        self._write(f"if_seq_no={number}&if_primary_term={term}", deadline)

    def _write(self, condition: str, deadline: Deadline) -> None:
        body = {"owner": self._owner, "until": self._now() + HELD_SECONDS}
        try:
            answer = self._connection.request("PUT", f"{self._path}?{condition}", body, deadline)
        except Conflict:
            # It may have been written and nobody said so: then it was sent a second time.
            held = self._held(deadline)
            if held is None or self._owner_of(held) != self._owner:
                raise
            answer = held
        self._seen = self._place(answer)

    def _held(self, deadline: Deadline) -> dict[str, Any] | None:
        try:
            return self._connection.get(self._path, deadline)
        except NotThere:
            return None

    @staticmethod
    @taken_apart(_QUESTION)
    def _until(held: Mapping[str, Any]) -> float:
        return float(held["_source"]["until"])

    @staticmethod
    @taken_apart(_QUESTION)
    def _owner_of(held: Mapping[str, Any]) -> str:
        return str(held["_source"]["owner"])

    @staticmethod
    @taken_apart(_QUESTION)
    def _place(answer: Mapping[str, Any]) -> tuple[int, int]:
        return int(answer["_seq_no"]), int(answer["_primary_term"])
