"""Many documents to the cluster: in batches, one under way while the next is made.

What the cluster is too busy for is sent again after a while; while it is, nothing new is made.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from sage.cluster.connection import Connection, taken_apart
from sage.cluster.node_errors import DiskFull, is_disk_full
from sage.cluster.page_record import delete_lines, put_lines
from sage.deadline import Deadline
from sage.errors import Unavailable

BATCH_BYTES = 2_000_000
BATCH_SECONDS = 120.0
_TRIES = 8
_PAUSE_SECONDS = 0.25
_BUSY = 429


class Bulk:
    """Writes into one index."""

    def __init__(
        self, connection: Connection, index: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._connection = connection
        self._index = index
        self._sleep = sleep
        self._lines: list[bytes] = []
        self._bytes = 0
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="sage-bulk")
        self._under_way: Future[None] | None = None

    def put(self, identifier: str, document: Mapping[str, Any]) -> None:
        """Write a document, sooner or later."""
        self.add(put_lines(identifier, document))

    def delete(self, identifier: str) -> None:
        """Remove a document, sooner or later."""
        self.add(delete_lines(identifier))

    def flush(self) -> None:
        """Have everything written.

        Raises:
            Unavailable: the cluster does not take it.
        """
        self._send()
        self._wait()

    def close(self) -> None:
        self._sender.shutdown(wait=True, cancel_futures=True)

    def add(self, lines: bytes) -> None:
        """Have lines taken that write or remove one document, sooner or later."""
        self._lines.append(lines)
        self._bytes += len(lines)
        if self._bytes >= BATCH_BYTES:
            self._send()

    def _send(self) -> None:
        lines, self._lines, self._bytes = self._lines, [], 0
        if lines:
            self._wait()
            self._under_way = self._sender.submit(self._write, lines)

    def _wait(self) -> None:
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None

    @taken_apart("a bulk")
    def _write(self, lines: list[bytes]) -> None:
        for attempt in range(_TRIES):
            deadline = Deadline(BATCH_SECONDS * 1000)
            answer = self._connection.request(
                "POST", f"/{self._index}/_bulk", b"".join(lines), deadline
            )
            if not answer["errors"]:
                return
            results = [next(iter(item.values())) for item in answer["items"]]
            _refuse_full_disk(results)
            bad = [one for one in results if one["status"] not in (200, 201, 404, _BUSY)]
            if bad:
                error = bad[0]["error"]
                raise Unavailable(
                    f"the cluster refuses a document: {error.get('type')}: {error.get('reason')}; "
                    "nothing of it is served"
                )
            lines = [
                line for line, one in zip(lines, results, strict=True) if one["status"] == _BUSY
            ]
            if not lines:
                return
            self._sleep(_PAUSE_SECONDS * 2**attempt)
        raise Unavailable("the cluster stays too busy to take more; publish again later")


def _refuse_full_disk(results: Iterable[Mapping[str, Any]]) -> None:
    """End at once where waiting helps nothing: a full disk looks like a cluster that is busy."""
    for one in results:
        error = one.get("error", {})
        said = f"{error.get('type')}: {error.get('reason')}"
        if is_disk_full(said):
            raise DiskFull(said)


@contextmanager
def bulk_into(connection: Connection, index: str) -> Iterator[Bulk]:
    """Writes into an index; everything is written at the end."""
    bulk = Bulk(connection, index)
    try:
        yield bulk
        bulk.flush()
    finally:
        bulk.close()
