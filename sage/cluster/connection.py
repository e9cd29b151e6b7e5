"""The one way to the cluster: plain requests over kept connections, within a deadline.

A node that does not answer, or not as OpenSearch does, is left for the next one. What cannot be
answered is an error that says what is wrong with the cluster and what to do; credentials are in no
message and no log.
"""

import base64
import contextlib
import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sage.cluster.attempts import Attempt, Attempts, Failure
from sage.cluster.exchange import (
    NodeAnswer,
    NodeConnection,
    SecureNodeConnection,
    StrangeAnswer,
)
from sage.cluster.node_errors import (
    Busy,
    Misconfigured,
    checked,
    failure_of,
    failure_of_busy,
    is_busy,
)
from sage.deadline import Deadline
from sage.errors import ConfigError, TimeoutExceeded, Unavailable

logger = logging.getLogger("sage.cluster")

MAJORS = (2, 3)
"""The versions of OpenSearch whose plain interface is used; see docs/scaling.md."""
STEP_SECONDS = 120.0
"""For one step of a publish."""
LONGEST_SECONDS = 30.0
"""So long one node may be silent before it is asked again, and where the caller sets no limit."""
_MAX_IDLE = 16
_LONG_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Where the cluster is, and as whom it is asked."""

    urls: tuple[str, ...]
    base: str = "sage"
    """The name of the knowledge base there: that of its alias."""
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: Path | None = None
    """Whose certificates are trusted; None means those of the system."""

    @property
    def shown(self) -> str:
        """The addresses, for messages."""
        return ", ".join(self.urls)


def soon() -> Deadline:
    """The deadline of one step of a publish that begins now."""
    return Deadline(STEP_SECONDS * 1000)


@contextlib.contextmanager
def taken_apart(what: str) -> Iterator[None]:
    """Where an answer is taken apart that nobody has looked into.

    Args:
        what: the answer, for a message: `to a search`.

    Raises:
        Unavailable: it has another form than those of OpenSearch.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # It may as well be a mistake of ours: whoever runs a server has to see where.
        logger.info("an answer %s could not be taken apart", what, exc_info=True)
        raise Unavailable(
            f"the cluster answered {what} in another form than OpenSearch does; "
            "look whether --url names its nodes, and what lies between"
        ) from error


class Connection:
    """Asks the nodes of one cluster. Thread-safe."""

    TRY_SECONDS = 3.0
    """So long the first node may be silent while there are others that were not asked yet."""

    def __init__(
        self, options: ClusterOptions, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.options = options
        self._sleep = sleep
        self._lock = threading.Lock()
        self._idle: dict[str, list[NodeConnection]] = {url: [] for url in options.urls}
        self._is_closed = False
        self._first = 0
        self._known_version = ""
        self._headers = {"Content-Type": "application/json"}
        if options.user:
            pair = f"{options.user}:{options.password}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._prefixes = {url: urlsplit(url).path for url in options.urls}
        secure = any(urlsplit(url).scheme == "https" for url in options.urls)
        self._tls = _tls(options.ca_file) if secure else None

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_version(self, deadline: Deadline) -> None:
        """Refuse a cluster of a kind that nobody tried.

        Raises:
            Unavailable: it is another product or version.
        """
        if self._known_version:
            return
        answer = self.get("/", deadline)
        with taken_apart("the question for its version"):
            version = answer["version"]
            number, kind = str(version["number"]), str(version.get("distribution", ""))
        if kind != "opensearch" or not number.startswith(tuple(f"{one}." for one in MAJORS)):
            raise Misconfigured(
                f"{self.options.shown} runs {kind or 'another product, of version'} {number}; "
                f"SAGE needs OpenSearch {' or '.join(map(str, MAJORS))}"
            )
        self._known_version = number

    def get(self, path: str, deadline: Deadline) -> dict[str, Any]:
        """What is there; asked again if a node fails."""
        return self.request("GET", path, None, deadline)

    def change(
        self, method: str, path: str, body: object, deadline: Deadline, *, again: bool = True
    ) -> None:
        """Have an index or an alias made, changed or removed.

        Raises:
            Unavailable: also where the cluster does not say that it did.
        """
        answer = self.request(method, path, body, deadline, again=again)
        if answer.get("acknowledged") is not True:
            raise Unavailable(
                f"the cluster does not say that it has done {method} {path.partition('?')[0]}; "
                "look at its health, then publish again"
            )

    def request(
        self,
        method: str,
        path: str,
        body: object,
        deadline: Deadline,
        *,
        again: bool = True,
    ) -> dict[str, Any]:
        """What the cluster answers to one request.

        Args:
            body: an object, or bytes that are sent as they are.
            again: whether it may be sent twice; otherwise it is sent to another node only where
                the one before was not reached, or has surely not begun it.

        Raises:
            NotThere, Conflict: as the cluster says.
            Unavailable: no node can answer it now; Busy, if it may be sent again later.
            TimeoutExceeded: the deadline passed before one did.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else None
        trouble, may_wait = "", False
        urls = self.options.urls
        attempts = Attempts(len(urls), self._first, again=again)
        for attempt in attempts:
            if deadline.expired:
                break
            self._pause(attempt.pause_seconds, deadline)
            url = urls[attempt.node]
            try:
                answer = self._send(url, method, path, data, self._limits(attempt, deadline, again))
                if not is_busy(answer):
                    found = checked(answer, url)
                    self._first = attempt.node
                    return found
                failure, trouble = failure_of_busy(answer, url)
            except ssl.SSLCertVerificationError as error:
                raise Misconfigured(
                    f"the certificate of {url} is not trusted: {error.verify_message}; "
                    "name its authority with --ca-file"
                ) from error
            except (StrangeAnswer, OSError, http.client.HTTPException) as error:
                failure, trouble = failure_of(error, url)
                if failure in (Failure.SILENT, Failure.UNREACHED_SILENT):
                    self._first = (attempt.node + 1) % len(urls)  # nobody else need wait for it
            may_wait = failure is Failure.REFUSED or (failure is Failure.BUSY and again)
            attempts.failed(failure)
        if deadline.expired and not trouble:
            raise TimeoutExceeded(deadline.message)
        # To ask for less would not help: it is the cluster that takes so long.
        kind = TimeoutExceeded if deadline.expired else Busy if may_wait else Unavailable
        raise kind(trouble)

    def close(self) -> None:
        """Close what is kept; nothing is kept from now on."""
        with self._lock:
            self._is_closed = True
            for idle in self._idle.values():
                while idle:
                    idle.pop().close()

    def _pause(self, seconds: float, deadline: Deadline) -> None:
        if seconds:
            left = deadline.remaining_seconds
            self._sleep(seconds if left is None else min(seconds, left / 2))

    def _limits(self, attempt: Attempt, deadline: Deadline, again: bool) -> "_AttemptLimits":
        """Until when one node has to be reached, and to answer."""
        now, left = time.monotonic(), deadline.remaining_seconds
        if left is None:
            left = LONGEST_SECONDS
        some = left
        if attempt.may_move_on and attempt.are_others:
            some = min(self.TRY_SECONDS, left / 2)
        elif attempt.may_move_on:
            some = min(left, LONGEST_SECONDS)
        # What may not be sent twice may take all the time where it was sent.
        return _AttemptLimits(now + some, now + (some if again else left), again)

    def _send(
        self, url: str, method: str, path: str, data: bytes | None, limits: "_AttemptLimits"
    ) -> NodeAnswer:
        whole = self._prefixes[url] + path
        kept = self._taken(url) if limits.again else None
        if kept is not None:
            # The other side may have closed what was kept: then it hardly saw the request.
            with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError):
                return self._exchange(kept, url, method, whole, data, limits.answered)
        opened = self._opened(url)
        opened.reach(limits.reached)
        return self._exchange(opened, url, method, whole, data, limits.answered)

    def _exchange(
        self,
        connection: NodeConnection,
        url: str,
        method: str,
        path: str,
        data: bytes | None,
        until: float,
    ) -> NodeAnswer:
        try:
            answer = connection.exchange(method, path, data, self._headers, until)
        except BaseException:  # an answer may be half read: nobody may use this connection again
            connection.close()
            raise
        with self._lock:
            idle = self._idle[url]
            if len(idle) < _MAX_IDLE and answer.may_be_kept and not self._is_closed:
                idle.append(connection)
            else:
                connection.close()
        return answer

    def _taken(self, url: str) -> NodeConnection | None:
        with self._lock:
            idle = self._idle[url]
            return idle.pop() if idle else None

    def _opened(self, url: str) -> NodeConnection:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if self._tls is not None and parts.scheme == "https":
            return SecureNodeConnection(host, port or http.client.HTTPS_PORT, self._tls)
        return NodeConnection(host, port or http.client.HTTP_PORT)


class _AttemptLimits(NamedTuple):
    """What holds for one attempt; times are those of `time.monotonic`."""

    reached: float
    answered: float
    again: bool
    """Whether what it is asked may be sent twice."""


class PatientConnection(Connection):
    """Waits for a cluster that is busy: whoever publishes has the time, whoever asks has not."""

    TRY_SECONDS = LONGEST_SECONDS

    def request(
        self, method: str, path: str, body: object, deadline: Deadline, *, again: bool = True
    ) -> dict[str, Any]:
        """What the cluster answers to one request, sooner or later."""
        for pause in _LONG_PAUSES:
            try:
                return super().request(method, path, body, deadline, again=again)
            except Busy:
                self._sleep(pause)
        return super().request(method, path, body, deadline, again=again)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca-file {ca_file} holds no certificates") from error
