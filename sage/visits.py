"""One HTTP request from its first header to the last byte of its answer.

Reads headers, writes answers, and keeps what the log and the metrics want to know. What is
answered is decided in `front`.
"""

import json
import time
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from sage.hosts import parse_authority
from sage.logs import request_id_from
from sage.refusals import Refused

# An answer goes out in parts of this size, so that no more of it lies in buffers than one part
# while a slow client fetches the rest.
PART_BYTES = 64 * 1024

_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_EXPOSED = "Retry-After, WWW-Authenticate, X-Request-Id"


class Visit:
    """A request and its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope = scope
        self.started = time.perf_counter()
        self.headers = Headers(scope=scope)
        self.id = request_id_from(self.headers.get("x-request-id", ""))
        self.method: str = scope["method"]
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
        self, status: int, body: bytes, headers: Mapping[str, str], content_type: str = ""
    ) -> None:
        """Send an answer of known length."""
        lines = {"content-length": str(len(body)), **headers}
        if content_type:
            lines["content-type"] = content_type
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in lines.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        for start in range(0, max(len(body), 1), PART_BYTES):
            part, more = body[start : start + PART_BYTES], start + PART_BYTES < len(body)
            await self.send({"type": "http.response.body", "body": part, "more_body": more})

    async def refuse(self, refused: Refused) -> None:
        """Send what a refusal says, unless an answer has begun."""
        if not self.status:
            await self.answer(refused.status, refused.body, refused.headers, "application/json")

    async def answer_json(self, status: int, value: object) -> None:
        """Send an object."""
        await self.answer(status, json.dumps(value).encode(), {}, "application/json")

    async def send(self, message: Message) -> None:
        """Pass a part of an answer on, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [*_ALWAYS, (b"x-request-id", self.id.encode()), *self._sharing()]
            message = {**message, "headers": [*message.get("headers", []), *own]}
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


def _target(path: str) -> tuple[str | None, str]:
    """The authority and path of a target; no authority unless it is written as a whole URL."""
    scheme, mark, rest = path.partition("://")
    if path.startswith("/") or not mark or scheme.lower() not in ("http", "https"):
        return None, path
    authority, _, inner = rest.partition("/")
    # What cannot be an authority is kept as one that no rule allows.
    return authority if parse_authority(authority) else "", f"/{inner}"
