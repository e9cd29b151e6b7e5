"""One HTTP request from its first header to the last byte of its answer.

Reads headers, writes answers, and keeps what the log and the metrics want to know. A request that
was let in can be ended from outside: a token that is revoked ends whatever is open with it, and a
caller who holds too much loses what makes no progress. What is answered is decided in `app`.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping

from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from sage.access.hosts import HostRules, parse_authority
from sage.access.refusals import Refused, bad_token, wrong_host, wrong_origin
from sage.access.token_file import Grant
from sage.http.json_logs import request_id_from

# An answer goes out in parts of this size, so that no more of it lies in buffers than one part
# while a slow client fetches the rest.
PART_BYTES = 64 * 1024

# What is revoked ends within a second, on a machine that is busy too.
CHECK_SECONDS = 0.25
# Where a scope carries the connection that it came on.
CONNECTION = "sage.connection"
MAX_METHOD = 20

_ALWAYS = ((b"x-content-type-options", b"nosniff"),)
_UNLESS_SAID = ((b"cache-control", b"no-store"),)
_EXPOSED = "Retry-After, WWW-Authenticate, X-Request-Id"


class HttpRequest:
    """A request and its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope = scope
        self.started = time.perf_counter()
        self.headers = Headers(scope=scope)
        self.id = request_id_from(self.headers.get("x-request-id", ""))
        # Up to 32 KB may be sent as a method, and each line of the log names it.
        self.method = scope["method"] if len(scope["method"]) <= MAX_METHOD else "other"
        self.authority, self.path = _target(scope["path"])
        self.endpoint = "other"
        self.caller = ""
        self.tool = ""
        self.status = 0
        self.is_complete = False
        self.sent_bytes = 0
        self.shared_with = ""
        """The origin whose pages may read the answer."""
        self._send = send

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.started

    @property
    def address(self) -> str:
        """Where the request comes from."""
        client = self.scope.get("client")
        return str(client[0]) if client else ""

    @property
    def local_address(self) -> str:
        """Where it arrived."""
        server = self.scope.get("server")
        return str(server[0]) if server else ""

    def header(self, name: str) -> str:
        """A header; empty when it is not there."""
        return self.headers.get(name, "")

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return self.headers.getlist(name)

    async def answer(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str],
        content_type: str = "",
        on_part: Callable[[], None] | None = None,
    ) -> None:
        """Send an answer of known length.

        Args:
            on_part: called whenever the client has made room for another part.
        """
        lines = {"content-length": str(len(body)), **headers}
        if content_type:
            lines["content-type"] = content_type
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in lines.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        for start in range(0, max(len(body), 1), PART_BYTES):
            part, more = body[start : start + PART_BYTES], start + PART_BYTES < len(body)
            await self.send({"type": "http.response.body", "body": part, "more_body": more})
            if on_part:
                on_part()

    async def abort(self) -> None:
        """End the connection, with an answer that nobody will hear to its end."""
        connection = self.scope.get(CONNECTION)
        if connection is not None:
            connection.abort()
            await asyncio.sleep(0)  # until the server underneath has heard of it

    async def refuse(self, refused: Refused) -> None:
        """Send what a refusal says; an answer that has begun is broken off."""
        if not self.status:
            await self.answer(refused.status, refused.body, refused.headers, "application/json")
        elif not self.is_complete:
            await self.abort()

    async def answer_json(self, status: int, value: object) -> None:
        await self.answer(status, json.dumps(value).encode(), {}, "application/json")

    async def send(self, message: Message) -> None:
        """Pass a part of an answer on, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = list(message.get("headers", []))
            said = {name.lower() for name, _ in given}
            own = [*_ALWAYS, *(one for one in _UNLESS_SAID if one[0] not in said)]
            own += [(b"x-request-id", self.id.encode()), *self._sharing()]
            message = {**message, "headers": [*given, *own]}
        else:
            self.sent_bytes += len(message.get("body", b""))
            self.is_complete = not message.get("more_body")
        await self._send(message)

    def _sharing(self) -> list[tuple[bytes, bytes]]:
        if not self.shared_with:
            return []
        return [
            (b"access-control-allow-origin", self.shared_with.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED.encode()),
            (b"vary", b"origin"),
        ]


class OpenRequest:
    """One request, in the task that serves it."""

    def __init__(self, grant: Grant) -> None:
        self.grant = grant
        self.reason: Refused | None = None
        self._task = asyncio.current_task()

    def end(self, reason: Refused) -> None:
        """Stop serving it; the reason is what it is answered, if no answer has begun."""
        if self.reason is None and self._task is not None:
            self.reason = reason
            self._task.cancel()

    def is_ended(self) -> bool:
        """Whether it was cancelled by `end`, and by nobody else."""
        if self.reason is None or self._task is None:
            return False
        return self._task.uncancel() == 0


class OpenRequests:
    """All of them.

    Args:
        still_admits: whether what was granted to the sender of a request still holds.
    """

    def __init__(self, still_admits: Callable[[Grant], bool]) -> None:
        self._still_admits = still_admits
        self._open: set[OpenRequest] = set()

    @contextlib.contextmanager
    def opened(self, grant: Grant) -> Iterator[OpenRequest]:
        """Serve a request.

        Raises:
            Refused: it was ended.
        """
        request = OpenRequest(grant)
        self._open.add(request)
        try:
            yield request
        except asyncio.CancelledError:
            if request.is_ended() and request.reason:
                raise request.reason from None
            raise
        finally:
            self._open.discard(request)

    def end_revoked(self) -> int:
        """End what is open with a token that is no longer good; how many there were."""
        verdicts: dict[tuple[str, float | None], bool] = {}
        revoked = []
        for request in self._open:
            key = (request.grant.token_id, request.grant.expires)
            if key not in verdicts:
                verdicts[key] = self._still_admits(request.grant)
            if not verdicts[key]:
                revoked.append(request)
        for request in revoked:
            request.end(bad_token())
        return len(revoked)

    async def watch(self) -> None:
        """End what is revoked, for ever."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.end_revoked()


def check_names(request: HttpRequest, rules: HostRules) -> None:
    """Refuse who calls this server by a name that is not its own, or asks from a foreign page."""
    hosts, origins = request.all("host"), request.all("origin")
    if request.authority is not None:
        hosts.append(request.authority)  # the one that counts when both are there
    if not hosts or not all(rules.allow_host(host, request.local_address) for host in hosts):
        raise wrong_host()
    if len(origins) > 1 or not all(rules.allow_origin(one, hosts[-1]) for one in origins):
        raise wrong_origin()
    if origins and rules.named_origin(origins[0]):
        request.shared_with = origins[0]


def _target(path: str) -> tuple[str | None, str]:
    """The authority and path of a target; no authority unless it is written as a whole URL."""
    scheme, mark, rest = path.partition("://")
    if path.startswith("/") or not mark or scheme.lower() not in ("http", "https"):
        return None, path
    authority, _, inner = rest.partition("/")
    # What cannot be an authority is kept as one that no rule allows.
    return authority if parse_authority(authority) else "", f"/{inner}"
