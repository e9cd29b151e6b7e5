"""The one way to the cluster: plain requests over kept connections, within a deadline.

A node that does not answer is left for the next one. What cannot be answered is an error that says
what is wrong with the cluster and what to do; credentials are in no message and no log.
"""

import base64
import contextlib
import http.client
import json
import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sage.deadline import Deadline
from sage.errors import ConfigError, SageError, TimeoutExceeded, Unavailable

logger = logging.getLogger("sage.cluster")

MAJORS = (2, 3)
"""The versions of OpenSearch whose plain interface is used; see docs/scaling.md."""
STEP_SECONDS = 120.0
"""For one step of a publish."""
LONGEST_SECONDS = 30.0
"""For a request whose caller sets no limit."""
_BASE = re.compile(r"[a-z0-9][a-z0-9_]{0,99}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ROUNDS = 3
_PAUSE_SECONDS = 0.1
_MAX_IDLE = 16
_WHOLE_BYTES = 100_000
_BUSY = (429, 502, 503, 504)
_LONG_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)


class NotThere(SageError):
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


class Conflict(SageError):
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


def cluster_options(
    urls: Iterable[str],
    base: str,
    environment: Mapping[str, str],
    credentials: Path | None = None,
    ca_file: Path | None = None,
) -> ClusterOptions:
    """The options, checked.

    Args:
        credentials: a file with `user:password` in its first line; without it they are taken from
            `SAGE_OPENSEARCH_USER` and `SAGE_OPENSEARCH_PASSWORD`.

    Raises:
        ConfigError: an address, a name or a file is wrong.
    """
    given = tuple(part.strip().rstrip("/") for url in urls for part in url.split(","))
    given = tuple(url for url in given if url)
    if not given:
        raise ConfigError("--url is missing; name the cluster: --url https://search.example.com")
    user = environment.get("SAGE_OPENSEARCH_USER", "")
    password = environment.get("SAGE_OPENSEARCH_PASSWORD", "")
    if credentials is not None:
        try:
            first = credentials.read_text("utf-8").splitlines()[0]
        except (OSError, UnicodeDecodeError, IndexError) as error:
            raise ConfigError(f"--credentials {credentials} cannot be read") from error
        user, _, password = first.strip().partition(":")
        if not user or not password:
            raise ConfigError(f"--credentials {credentials}: its first line is not user:password")
    elif user and not password:
        raise ConfigError("SAGE_OPENSEARCH_USER is set and SAGE_OPENSEARCH_PASSWORD is not")
    for url in given:
        _check_url(url, has_credentials=bool(user))
    if not _BASE.fullmatch(base):
        raise ConfigError(
            f"--base {base!r}: use at most 100 lower-case letters, digits and underscores, "
            "a letter or digit first"
        )
    return ClusterOptions(given, base, user, password, ca_file)


def _check_url(url: str, *, has_credentials: bool) -> None:
    try:
        parts = urlsplit(url)
        is_address = parts.port != 0 and bool((parts.hostname or "").encode("idna"))
    except ValueError:  # a port that is no number, half of an IPv6 address, a name of no host
        is_address = False
    if not is_address or not url.isprintable() or any(one in url for one in " ?#"):
        # What is wrong with it is not repeated: it may hold credentials.
        raise ConfigError("--url is no address; write it as https://search.example.com:9200")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("--url must begin with https:// and name a host")
    if parts.username or parts.password:
        raise ConfigError(
            "--url must not hold credentials, which would be logged; "
            "use --credentials or SAGE_OPENSEARCH_USER and SAGE_OPENSEARCH_PASSWORD"
        )
    if parts.scheme == "http" and has_credentials and parts.hostname not in _LOOPBACK:
        raise ConfigError(f"{url} would carry credentials in the clear; use https://")


class Connection:
    """Asks the nodes of one cluster. Thread-safe."""

    TRY_SECONDS = 3.0
    """So long a node may be silent while there are others that were not asked yet."""

    def __init__(
        self, options: ClusterOptions, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.options = options
        self._sleep = sleep
        self._lock = threading.Lock()
        self._idle: dict[str, list[http.client.HTTPConnection]] = {url: [] for url in options.urls}
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
        version = answer.get("version", {})
        number, kind = str(version.get("number", "")), version.get("distribution", "another kind")
        if kind != "opensearch" or not number.startswith(tuple(f"{one}." for one in MAJORS)):
            raise Unavailable(
                f"{self.options.shown} runs {kind} {number}; "
                f"SAGE needs OpenSearch {' or '.join(map(str, MAJORS))}"
            )
        self._known_version = number

    def get(self, path: str, deadline: Deadline) -> dict[str, Any]:
        """What is there; asked again if a node fails."""
        return self.request("GET", path, None, deadline)

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
        trouble, is_busy = "", False
        first, nodes = self._first, len(self.options.urls)
        for attempt in range(_ROUNDS * nodes):
            if deadline.expired:
                break
            if attempt and attempt % nodes == 0:
                left = deadline.remaining_seconds
                pause = _PAUSE_SECONDS * 2**attempt
                self._sleep(pause if left is None else min(pause, left / 2))
            number = (first + attempt) % nodes
            url = self.options.urls[number]
            is_busy = False
            seconds = self._seconds(deadline, may_ask_others=again and attempt + 1 < nodes)
            try:
                status, answer = self._send(url, method, path, data, seconds)
            except ssl.SSLCertVerificationError as error:
                raise Unavailable(
                    f"the certificate of {url} is not trusted: {error.verify_message}; "
                    "name its authority with --ca-file"
                ) from error
            except TimeoutError:
                trouble = f"{url} did not answer in time"
                self._first = (number + 1) % nodes  # nobody else need wait for it
                if not again:
                    break
            except (OSError, http.client.HTTPException) as error:
                trouble = f"{url} cannot be reached: {_reason(error)}"
                if not again and not isinstance(error, ConnectionRefusedError):
                    break
            else:
                if status not in _BUSY or _is_full(answer):
                    self._first = number
                    return _checked(status, answer, url)
                is_busy = True
                trouble = f"{url} says {status}: {_said(answer)}"
                if status == 503 and _is_red(answer):
                    trouble = f"the cluster is red, a part of the index is gone: {_said(answer)}"
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

    def _seconds(self, deadline: Deadline, may_ask_others: bool) -> float:
        """So long one node may take to answer."""
        left = deadline.remaining_seconds
        seconds = LONGEST_SECONDS if left is None else min(left, LONGEST_SECONDS)
        if may_ask_others:
            seconds = min(self.TRY_SECONDS, seconds / 2)
        return max(seconds, 0.05)

    def _send(
        self, url: str, method: str, path: str, data: bytes | None, seconds: float
    ) -> tuple[int, Any]:
        kept = self._taken(url)
        if kept is not None:
            # The other side may have closed what was kept: then it never saw the request.
            with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError):
                return self._exchange(kept, url, method, path, data, seconds)
        return self._exchange(self._opened(url), url, method, path, data, seconds)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        url: str,
        method: str,
        path: str,
        data: bytes | None,
        seconds: float,
    ) -> tuple[int, Any]:
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        try:
            connection.request(method, self._prefixes[url] + path, data, self._headers)
            response = connection.getresponse()
            text = response.read()
        except BaseException:  # an answer may be half read: nobody may use this connection again
            connection.close()
            raise
        with self._lock:
            idle = self._idle[url]
            if len(idle) < _MAX_IDLE and not response.will_close:
                idle.append(connection)
            else:
                connection.close()
        try:
            return response.status, json.loads(text) if text else {}
        except ValueError:
            return response.status, {"error": text[:200].decode("utf-8", "replace")}

    def _taken(self, url: str) -> http.client.HTTPConnection | None:
        with self._lock:
            idle = self._idle[url]
            return idle.pop() if idle else None

    def _opened(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return WholeSecureConnection(parts.hostname or "", parts.port, context=self._tls)
        return WholeConnection(parts.hostname or "", parts.port)


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


class WholeConnection(http.client.HTTPConnection):
    """Sends the head of a request together with its body: a node would wake up for each."""

    _held: list[bytes] | None = None

    def request(self, *given: Any, **more: Any) -> None:
        self._held = []
        try:
            super().request(*given, **more)
        finally:
            held, self._held = self._held, None
        if sum(map(len, held)) <= _WHOLE_BYTES:
            held = [b"".join(held)]
        for part in held:
            self.send(part)

    def send(self, data: Any) -> None:
        if self._held is None:
            super().send(data)
        else:
            self._held.append(data)


class WholeSecureConnection(WholeConnection, http.client.HTTPSConnection):
    """The same over TLS."""


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca-file {ca_file} holds no certificates") from error


def _checked(status: int, answer: Any, url: str) -> dict[str, Any]:
    has_waited = status == 408 and isinstance(answer, dict) and "timed_out" in answer
    if (status < 300 or has_waited) and isinstance(answer, dict):
        return answer  # that what it waited for did not come is an answer
    if _is_full(answer):
        raise DiskFull(_said(answer))
    if status == 404:
        raise NotThere(f"not there: {_said(answer)}")
    if status == 409 or "already_exists" in _said(answer):
        raise Conflict(_said(answer))
    if status == 401 or (status == 403 and "block" not in _said(answer)):
        raise Unavailable(
            f"{url} refuses these credentials ({status}); "
            "check SAGE_OPENSEARCH_USER, SAGE_OPENSEARCH_PASSWORD or --credentials"
        )
    if status == 403:
        raise Unavailable(
            f"the cluster takes no writes: {_said(answer)}; remove the block, then publish again"
        )
    raise Unavailable(f"{url} says {status}: {_said(answer)}")


def _said(answer: Any) -> str:
    """What the cluster gives as its reason."""
    error = answer.get("error", answer) if isinstance(answer, Mapping) else answer
    if isinstance(error, Mapping):
        words = f"{error.get('type', '')}: {error.get('reason', '')}"
    else:
        words = str(error)
    return words[:300]


def _is_full(answer: Any) -> bool:
    return is_disk_full(_said(answer))


def is_disk_full(said: str) -> bool:
    """Whether that is what a cluster says whose disk is full, with one status or another."""
    return "cluster_block_exception" in said and "read-only" in said and "delete" in said


def _is_red(answer: Any) -> bool:
    return "shard" in json.dumps(answer)[:2_000]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
