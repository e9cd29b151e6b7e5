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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sage.cluster.exchange import NodeAnswer, NodeConnection, SecureNodeConnection, StrangeAnswer
from sage.deadline import Deadline
from sage.errors import ConfigError, TimeoutExceeded, Unavailable

logger = logging.getLogger("sage.cluster")

MAJORS = (2, 3)
"""The versions of OpenSearch whose plain interface is used; see docs/scaling.md."""
STEP_SECONDS = 120.0
"""For one step of a publish."""
LONGEST_SECONDS = 30.0
"""So long one node may be silent before it is asked again, and where the caller sets no limit."""
_ROUNDS = 3
_PAUSE_SECONDS = 0.1
_MAX_IDLE = 16
_BUSY = (429, 502, 503, 504)
_LONG_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)


class NotThere(Unavailable):
    """The index or document that was asked for does not exist, or not any more."""


class Busy(Unavailable):
    """The cluster could be reached, and has no time or room for the request now."""


class DiskFull(Unavailable):
    """The cluster has closed indexes to all writes, as it does when a disk is full."""

    def __init__(self, said: str) -> None:
        super().__init__(
            f"the cluster takes no writes, its disk is full: {said}; what is served is served "
            "still; free room on its disks or add some, remove the block if it stays, "
            "then publish again"
        )


class Conflict(Unavailable):
    """Somebody else changed it first, or it exists already."""


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
        # It may as well be a mistake of ours: whoever looks has to see where.
        logger.exception("an answer %s could not be taken apart", what)
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
            raise Unavailable(
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
            again: whether it may be sent twice; otherwise only a node that was never reached is
                left for another.

        Raises:
            NotThere, Conflict: as the cluster says.
            Unavailable: no node can answer it now; Busy, if one could be reached.
            TimeoutExceeded: the deadline passed before one did.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else None
        trouble, is_busy, was_silent = "", False, False
        strange: set[str] = set()
        first, nodes = self._first, len(self.options.urls)
        for attempt in range(_ROUNDS * nodes):
            if deadline.expired:
                break
            if attempt and attempt % nodes == 0:
                self._pause(attempt, deadline)
            number = (first + attempt) % nodes
            url = self.options.urls[number]
            if url in strange:
                continue
            is_busy = False
            # To ask once more would not help a cluster that is slow: the second one may take all.
            may_move_on = again and not was_silent
            seconds = self._seconds(deadline, may_move_on, attempt + 1 < nodes)
            try:
                answer = self._send(url, method, path, data, seconds)
                if answer.status not in _BUSY or _is_full(answer):
                    found = _checked(answer, url)
                    self._first = number
                    return found
                is_busy = True
                trouble = f"{url} says {answer.status}: {_said(answer)}"
                if answer.status == 503 and b"shard" in answer.text[:2_000]:
                    said = _said(answer)
                    trouble = f"the cluster is red, a part of the index is gone: {said}"
            except ssl.SSLCertVerificationError as error:
                raise Unavailable(
                    f"the certificate of {url} is not trusted: {error.verify_message}; "
                    "name its authority with --ca-file"
                ) from error
            except TimeoutError:
                trouble = f"{url} did not answer in time"
                self._first = (number + 1) % nodes  # nobody else need wait for it
                if not may_move_on:
                    break
                was_silent = True
            except StrangeAnswer as error:
                trouble = (
                    f"{url} does not answer like OpenSearch: {error}; "
                    "look whether --url names the nodes of a cluster"
                )
                strange.add(url)
                if not again or len(strange) == nodes:
                    break
            except (OSError, http.client.HTTPException) as error:
                trouble = f"{url} cannot be reached: {_reason(error)}"
                if not again and not isinstance(error, ConnectionRefusedError):
                    break
        if deadline.expired and not trouble:
            raise TimeoutExceeded(deadline.message)
        # To ask for less would not help: it is the cluster that takes so long.
        kind = TimeoutExceeded if deadline.expired else Busy if is_busy else Unavailable
        raise kind(f"{trouble}; look at the cluster's health, then ask again")

    def close(self) -> None:
        with self._lock:
            for idle in self._idle.values():
                while idle:
                    idle.pop().close()

    def _pause(self, attempt: int, deadline: Deadline) -> None:
        left = deadline.remaining_seconds
        pause = _PAUSE_SECONDS * 2**attempt
        self._sleep(pause if left is None else min(pause, left / 2))

    def _seconds(self, deadline: Deadline, may_move_on: bool, are_others: bool) -> float:
        """So long one node may take to answer."""
        left = deadline.remaining_seconds
        if left is None:
            left = LONGEST_SECONDS
        if not may_move_on:
            return left
        return min(self.TRY_SECONDS, left / 2) if are_others else min(left, LONGEST_SECONDS)

    def _send(
        self, url: str, method: str, path: str, data: bytes | None, seconds: float
    ) -> NodeAnswer:
        whole = self._prefixes[url] + path
        until = time.monotonic() + seconds
        kept = self._taken(url)
        if kept is not None:
            # The other side may have closed what was kept: then it never saw the request.
            with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError):
                return self._exchange(kept, url, method, whole, data, until)
        return self._exchange(self._opened(url), url, method, whole, data, until)

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
            if len(idle) < _MAX_IDLE and answer.may_be_kept:
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


def _checked(answer: NodeAnswer, url: str) -> dict[str, Any]:
    """What was answered, where it is what was asked for.

    Raises:
        StrangeAnswer: OpenSearch says nothing like it.
    """
    status, body = answer.status, answer.body
    if status < 300 and isinstance(body, dict):
        return body
    said = _said(answer)
    if status == 401 or (status == 403 and "block" not in said):  # also what stands before it
        raise Unavailable(
            f"{url} refuses these credentials ({status}); "
            "check SAGE_OPENSEARCH_USER, SAGE_OPENSEARCH_PASSWORD or --credentials"
        )
    if 300 <= status < 400:
        raise StrangeAnswer(f"it answers {status}, which leads to another address")
    if not isinstance(body, dict):
        raise StrangeAnswer(f"it answers {status} with something that is no object of JSON")
    if status == 408 and "timed_out" in body:
        return body  # that what it waited for did not come is an answer
    if not _gives_reason(status, body):
        raise StrangeAnswer(f"it answers {status} without a reason")
    if is_disk_full(said):
        raise DiskFull(said)
    if status == 404:
        raise NotThere(f"the cluster does not have it, or not any more ({said}); ask again")
    if status == 409 or "already_exists" in said:
        raise Conflict(f"somebody else changed it, or it exists already ({said}); ask again")
    if status == 403:
        raise Unavailable(
            f"the cluster takes no writes: {said}; remove the block, then publish again"
        )
    raise Unavailable(f"{url} says {status}: {said}")


def _gives_reason(status: int, body: Mapping[str, Any]) -> bool:
    """Whether OpenSearch says so: what is not there, others do not have either."""
    error = body.get("error")
    if isinstance(error, dict):
        return "type" in error
    if status == 404:
        is_absent = body.get("found") is False or body.get("result") == "not_found"
        return is_absent or body.get("status") == 404
    return error is not None


def _said(answer: NodeAnswer) -> str:
    """What the cluster gives as its reason, as far as it can be shown."""
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    if isinstance(error, dict):
        words = [error.get(one) for one in ("type", "reason")]
        error = ": ".join(one for one in words if isinstance(one, str))
    said = error if isinstance(error, str) else answer.text[:300].decode("utf-8", "replace")
    return "".join(one if one.isprintable() else " " for one in said[:300])


def _is_full(answer: NodeAnswer) -> bool:
    return is_disk_full(_said(answer))


def is_disk_full(said: str) -> bool:
    """Whether that is what a cluster says whose disk is full, with one status or another."""
    return "cluster_block_exception" in said and "read-only" in said and "delete" in said


def _reason(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "it left in the middle of its answer"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
