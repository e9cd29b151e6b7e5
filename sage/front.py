"""The ASGI application: who may ask what, in which order it is decided, and what is kept of it.

Each rule lives in a module of its own: hosts, doorkeeper, limits, admission. MCP itself is
`exchange`'s; here a request is only let through to it.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from sage.access import Grant
from sage.delivery import GONE, Delivery, Request
from sage.doorkeeper import ANYBODY, Doorkeeper
from sage.exchange import peek
from sage.health import Health
from sage.hosts import HostRules, is_loopback
from sage.limits import Limits, RateLimit, Room, caller_of, held_body
from sage.logs import request_id
from sage.metrics import CONTENT_TYPE, Meters, gauge, process_families, rendered
from sage.refusals import (
    Refused,
    closing,
    out_of_scope,
    too_many,
    unknown_path,
    wrong_host,
    wrong_method,
    wrong_origin,
)
from sage.scopes import Scopes
from sage.tracing import Tracing
from sage.visits import Visit

logger = logging.getLogger("sage.requests")

PROBES = ("/healthz", "/readyz", "/metrics")
_HEADER_NAMES = re.compile(r"[A-Za-z0-9-]+(?: *, *[A-Za-z0-9-]+)*")


@dataclass(frozen=True)
class Setting:
    """What a front is made of."""

    path: str
    rules: HostRules
    doorkeeper: Doorkeeper
    scopes: Scopes
    health: Health
    meters: Meters
    tracing: Tracing
    limits: Limits


class Front:
    """Everything that stands before MCP."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        limits = setting.limits
        self._bodies = Room(limits.held_bytes)
        self._delivery = Delivery(limits)
        self._by_address = RateLimit(limits.address_rate, limits.burst)
        self._by_token = RateLimit(limits.token_rate, limits.burst)
        self._endpoints: dict[str, tuple[str, Callable[[Visit, Receive], Awaitable[None]]]] = {
            "/healthz": ("GET, HEAD", self._healthz),
            "/readyz": ("GET, HEAD", self._readyz),
            "/metrics": ("GET, HEAD", self._metrics),
            setting.path: ("POST", self._mcp),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        visit = Visit(scope, send)
        token = request_id.set(visit.id)
        try:
            with self._setting.tracing.span(visit.method, visit.header) as describe:
                try:
                    await self._serve(visit, receive)
                except Refused as refused:
                    await visit.refuse(refused)
                except asyncio.CancelledError:
                    # The time that running calls have at the end is over.
                    await visit.refuse(closing())
                describe(visit.status >= 500, **_attributes(visit))
        finally:
            self._keep(visit)
            request_id.reset(token)

    def close(self) -> None:
        """Be ready no longer and end what would go on for ever."""
        self._delivery.close()

    async def _serve(self, visit: Visit, receive: Receive) -> None:
        self._check_names(visit)
        path = visit.path.removesuffix("/") or "/"
        if path not in self._endpoints:
            raise unknown_path(self._setting.path)
        visit.endpoint = path
        methods, endpoint = self._endpoints[path]
        if visit.method == "OPTIONS" and visit.shared_with:
            endpoint = self._preflight
        elif visit.method not in methods.split(", "):
            raise wrong_method(methods)
        if not is_loopback(visit.address):
            _spend(self._by_address, caller_of(visit.address))
        await endpoint(visit, receive)

    def _check_names(self, visit: Visit) -> None:
        rules, hosts = self._setting.rules, visit.all("host")
        if visit.authority is not None:
            hosts.append(visit.authority)  # the one that counts when both are there
        if not hosts or not all(rules.allow_host(host, visit.local_address) for host in hosts):
            raise wrong_host()
        origins = visit.all("origin")
        if len(origins) > 1 or not all(rules.allow_origin(one, hosts[-1]) for one in origins):
            raise wrong_origin()
        if origins and rules.named_origin(origins[0]):
            visit.shared_with = origins[0]

    async def _preflight(self, visit: Visit, _: Receive) -> None:
        methods, _endpoint = self._endpoints[visit.endpoint]
        asked = visit.header("access-control-request-headers")
        headers = {"Access-Control-Allow-Methods": methods, "Access-Control-Max-Age": "600"}
        if _HEADER_NAMES.fullmatch(asked):
            headers["Access-Control-Allow-Headers"] = asked
        await visit.answer(204, b"", headers)

    async def _enter(self, visit: Visit) -> Grant:
        """Let the sender in and charge the request to it."""
        query: bytes = visit.scope.get("query_string", b"")
        grant = await self._setting.doorkeeper.admit(visit.all, query)
        visit.caller = grant.name if grant is not ANYBODY else caller_of(visit.address)
        if grant is not ANYBODY:
            _spend(self._by_token, grant.name)
        return grant

    async def _healthz(self, visit: Visit, _: Receive) -> None:
        await visit.answer(200, b"ok\n", {}, "text/plain; charset=utf-8")

    async def _readyz(self, visit: Visit, _: Receive) -> None:
        trouble = "closing" if self._delivery.is_closing else await self._setting.health.trouble()
        await visit.answer_json(503 if trouble else 200, {"ready": not trouble})
        if trouble:
            logger.info("not ready: %s", trouble)

    async def _metrics(self, visit: Visit, _: Receive) -> None:
        grant = await self._enter(visit)
        if grant.layers is not None:
            raise out_of_scope("metrics are about every layer; use a token for all layers")
        setting = self._setting
        families = [
            *await setting.health.families(),
            *setting.meters.families(),
            *self._delivery.families(),
            gauge("sage_scopes", "Sets of layers in use.", setting.scopes.open),
            *process_families(),
        ]
        await visit.answer(200, rendered(families), {}, CONTENT_TYPE)

    async def _mcp(self, visit: Visit, receive: Receive) -> None:
        grant = await self._enter(visit)
        if self._delivery.is_closing:
            raise closing()
        declared = visit.header("content-length")
        async with held_body(receive, declared, self._setting.limits, self._bodies) as body:
            if body is None:
                visit.status = GONE
                return
            message = peek(body)
            visit.tool = message.tool or message.method
            async with self._setting.scopes.endpoint(grant.layers) as app:
                await self._delivery.serve(visit, app, Request(message, body, receive))

    def _keep(self, visit: Visit) -> None:
        status = str(visit.status or 500)
        self._setting.meters.requests.add(visit.endpoint, status)
        level = logging.ERROR if visit.status >= 500 and visit.status != 503 else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "request", extra={"fields": _fields(visit)})


def _spend(limit: RateLimit, caller: str) -> None:
    wait_seconds = limit.wait_seconds(caller)
    if wait_seconds:
        raise too_many(wait_seconds)


def _attributes(visit: Visit) -> dict[str, str | int]:
    return {
        "http__request__method": visit.method,
        "http__response__status_code": visit.status,
        "url__path": visit.endpoint,
        "sage__request_id": visit.id,
        "sage__tool": visit.tool[:64],
    }


def _fields(visit: Visit) -> dict[str, object]:
    return {
        "method": visit.method,
        "path": visit.path[:200],
        "status": visit.status,
        "ms": round(visit.seconds * 1000, 1),
        "bytes": visit.sent_bytes,
        "address": visit.address,
        "caller": visit.caller,
        "tool": visit.tool[:64],
    }
