"""What a node says in place of what was asked for, as errors and as failures of an attempt."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from sage.cluster.attempts import Failure
from sage.cluster.exchange import NodeAnswer, StrangeAnswer, Unreached
from sage.errors import Unavailable

_BUSY = (429, 502, 503, 504)
_NOT_BEGUN = (
    "cluster_block_exception",
    "cluster_manager_not_discovered_exception",
    "master_not_discovered_exception",
)
"""What a node without a cluster says to what it would have to ask it."""
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL, as it is called by its versions, makes of an answer in the clear."""
_AGAIN = "; look at the cluster's health, then ask again"


class NotThere(Unavailable):
    """The index or document that was asked for does not exist, or not any more."""


class Busy(Unavailable):
    """The cluster has no time or room for the request now, which may be sent again."""


class Misconfigured(Unavailable):
    """The cluster is not one that can be asked, or not by whom it is asked: no time cures that."""


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


def checked(answer: NodeAnswer, url: str) -> dict[str, Any]:
    """What was answered, where it is what was asked for.

    Raises:
        StrangeAnswer: OpenSearch says nothing like it.
    """
    status, body = answer.status, answer.body
    if status < 300 and isinstance(body, dict):
        return body
    said = _said(answer)
    if status == 401 or (status == 403 and "block" not in said):  # also what stands before it
        raise Misconfigured(
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
    if _is_of_path(said, url):
        raise Misconfigured(f"{url} says {status}: {said}; check the path of --url")
    if status == 404:
        raise NotThere(f"the cluster does not have it, or not any more ({said}); ask again")
    if status == 409 or "already_exists" in said:
        raise Conflict(f"somebody else changed it, or it exists already ({said}); ask again")
    if status == 403:
        raise Unavailable(
            f"the cluster takes no writes: {said}; remove the block, then publish again"
        )
    raise Unavailable(f"{url} says {status}: {said}")


def _is_of_path(said: str, url: str) -> bool:
    """Whether OpenSearch takes the path of an address for a request, or for an index."""
    first = urlsplit(url).path.strip("/").partition("/")[0]
    return bool(first) and (" for uri [" in said or f"no such index [{first}]" in said)


def _gives_reason(status: int, body: Mapping[str, Any]) -> bool:
    """Whether OpenSearch says so: what is not there, others do not have either."""
    error = body.get("error")
    if isinstance(error, dict):
        return "type" in error
    if status == 404:
        is_absent = body.get("found") is False or body.get("result") == "not_found"
        return is_absent or body.get("status") == 404
    return error is not None


def failure_of_busy(answer: NodeAnswer, url: str) -> tuple[Failure, str]:
    """What became of an attempt at a node that has no time, and what to say of it."""
    said, error = _said(answer), _error_of(answer)
    is_refused = answer.status == 429 or (
        answer.status == 503 and isinstance(error, dict) and error.get("type") in _NOT_BEGUN
    )
    trouble = f"{url} says {answer.status}: {said}"
    if answer.status == 503 and b"shard" in answer.text[:2_000]:
        trouble = f"the cluster is red, a part of the index is gone: {said}"
    return Failure.REFUSED if is_refused else Failure.BUSY, trouble + _AGAIN


def failure_of(error: Exception, url: str) -> tuple[Failure, str]:
    """What became of an attempt that ended so, and what to say of it."""
    if isinstance(error, StrangeAnswer):
        return Failure.STRANGE, (
            f"{url} does not answer like OpenSearch: {error}; "
            "look whether --url names the nodes of a cluster"
        )
    if isinstance(error, TimeoutError):
        return Failure.SILENT, f"{url} did not answer in time{_AGAIN}"
    if isinstance(error, Unreached):
        if error.was_silent:
            return Failure.UNREACHED_SILENT, f"{url} did not answer in time{_AGAIN}"
        return Failure.UNREACHED, f"{url} cannot be reached: {error}{_remedy(error.__cause__)}"
    return Failure.BROKEN, f"{url} cannot be reached: {_reason(error)}{_AGAIN}"


def _remedy(why: BaseException | None) -> str:
    """What to do where a node cannot be connected to."""
    if isinstance(why, socket.gaierror):
        return "; check the name in --url"
    if isinstance(why, ssl.SSLError) and why.reason in _NO_TLS:
        return "; there is no TLS at this address: write http:// in --url, or another port"
    return _AGAIN


def _error_of(answer: NodeAnswer) -> object:
    return answer.body.get("error") if isinstance(answer.body, dict) else None


def _said(answer: NodeAnswer) -> str:
    """What the cluster gives as its reason, as far as it can be shown."""
    error = _error_of(answer)
    if isinstance(error, dict):
        words = [error.get(one) for one in ("type", "reason")]
        error = ": ".join(one for one in words if isinstance(one, str))
    said = error if isinstance(error, str) else answer.text[:300].decode("utf-8", "replace")
    return "".join(one if one.isprintable() else " " for one in said[:300])


def is_busy(answer: NodeAnswer) -> bool:
    """Whether a node has no time for what it was asked."""
    return answer.status in _BUSY and not is_disk_full(_said(answer))


def is_disk_full(said: str) -> bool:
    """Whether that is what a cluster says whose disk is full, with one status or another."""
    return "cluster_block_exception" in said and "read-only" in said and "delete" in said


def _reason(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "it left in the middle of its answer"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
