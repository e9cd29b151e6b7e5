"""The ASGI application: who may ask what, in which order it is decided, and what is kept of it.

Each rule lives in a module of its own: hosts, auth, limits, fair_queue. MCP itself is
`mcp_endpoint`'s; here a request is only let through to it.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from sage.access.auth import ANYBODY, Access
from sage.access.hosts import is_loopback
from sage.access.limits import HeldBytes, Limits, RateLimit, caller_of, read_body
from sage.access.options import PROBES, HttpOptions
from sage.access.refusals import (
    Refused,
    busy,
    closing,
    out_of_scope,
    too_many,
    too_slow,
    unknown_path,
    wrong_method,
)
from sage.access.token_file import Grant, TokenScope
from sage.cache import owner as cache_owner
from sage.errors import ConfigError
from sage.http.call_runner import GONE, PAGE, CallRunner, McpCall
from sage.http.health import Health
from sage.http.json_logs import request_id
from sage.http.layer_servers import LayerServers, mcp_opener
from sage.http.mcp_endpoint import Message, peek
from sage.http.metrics import (
    CONTENT_TYPE,
    Observer,
    ServerMetrics,
    gauge,
    process_families,
    rendered,
)
from sage.http.page_sessions import PageSessions
from sage.http.request import HttpRequest, OpenRequests, check_names
from sage.http.tracing import Tracing
from sage.http.usage_log import UsageLog
from sage.http.workers import Siblings
from sage.knowledge import KnowledgeBase

if TYPE_CHECKING:
    from sage.http.page_endpoint import PageEndpoint

logger = logging.getLogger("sage.requests")

HEALTH, READY, METRICS = PROBES
PUBLISH_SECONDS = 0.5
_HEADER_NAMES = re.compile(r"[A-Za-z0-9-]+(?: *, *[A-Za-z0-9-]+)*")


Endpoint = Callable[[HttpRequest, Receive], Awaitable[None]]


@dataclass(frozen=True)
class AppParts:
    """What an application is made of."""

    path: str
    access: Access
    layer_servers: LayerServers
    health: Health
    metrics: ServerMetrics
    tracing: Tracing
    limits: Limits
    page: "PageEndpoint | None" = None
    siblings: Siblings | None = None


class TeamApp:
    """Everything that stands before MCP."""

    def __init__(self, parts: AppParts) -> None:
        self._parts = parts
        limits = parts.limits
        self._bodies = HeldBytes(limits.held_bytes, limits.caller_bytes)
        self._runner = CallRunner(limits)
        self.open_requests = OpenRequests(parts.access.authenticator.still_admits)
        shared = parts.siblings.memory if parts.siblings else None
        self._by_address = RateLimit(
            limits.address_rate, limits.burst, buckets=shared.addresses if shared else None
        )
        self._by_token = RateLimit(
            limits.token_rate, limits.burst, buckets=shared.tokens if shared else None
        )
        self._endpoints: dict[str, tuple[str, Endpoint]] = {
            HEALTH: ("GET, HEAD", self._healthz),
            READY: ("GET, HEAD", self._readyz),
            METRICS: ("GET, HEAD", self._metrics),
        }
        if parts.path:
            self._endpoints[parts.path] = ("POST", self._mcp)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, send)
        token = request_id.set(request.id)
        try:
            with self._parts.tracing.span(request.method, request.header) as describe:
                try:
                    await self._serve(request, receive)
                except Refused as refused:
                    await request.refuse(refused)
                except asyncio.CancelledError:
                    # The time that running calls have at the end is over.
                    await request.refuse(closing())
                describe(request.status >= 500, **_attributes(request))
        finally:
            self._keep(request)
            request_id.reset(token)

    def close(self) -> None:
        """Be ready no longer and end what would go on for ever."""
        self._runner.close()

    async def _serve(self, request: HttpRequest, receive: Receive) -> None:
        check_names(request, self._parts.access.rules)
        path = request.path.removesuffix("/") or "/"
        if not is_loopback(request.address):
            _spend(self._by_address, caller_of(request.address))
        if path not in self._endpoints:
            await self._pages(request, receive)
            return
        request.endpoint = path
        methods, endpoint = self._endpoints[path]
        if request.method == "OPTIONS" and request.shared_with:
            endpoint = self._preflight
        elif request.method not in methods.split(", "):
            raise wrong_method(methods)
        await endpoint(request, receive)

    async def _preflight(self, request: HttpRequest, _: Receive) -> None:
        methods, _endpoint = self._endpoints[request.endpoint]
        asked = request.header("access-control-request-headers")
        headers = {"Access-Control-Allow-Methods": methods, "Access-Control-Max-Age": "600"}
        if _HEADER_NAMES.fullmatch(asked):
            headers["Access-Control-Allow-Headers"] = asked
        await request.answer(204, b"", headers)

    async def _enter(self, request: HttpRequest) -> Grant:
        """Let the sender in and charge the request to it."""
        query: bytes = request.scope.get("query_string", b"")
        version: str = request.scope.get("http_version", "1.1")
        authenticator = self._parts.access.authenticator
        grant = await authenticator.admit(request.headers.items(), query, version)
        self._charge(request, grant)
        return grant

    def _charge(self, request: HttpRequest, grant: Grant) -> None:
        """Count a request, and what is kept because of it, for its sender."""
        request.caller = grant.name if grant is not ANYBODY else caller_of(request.address)
        cache_owner.set(request.caller)
        if grant is not ANYBODY:
            _spend(self._by_token, grant.name)

    async def _healthz(self, request: HttpRequest, _: Receive) -> None:
        await tell_alive(request)

    async def _readyz(self, request: HttpRequest, _: Receive) -> None:
        trouble = "closing" if self._runner.is_closing else await self._parts.health.trouble()
        await tell_ready(request, is_ready=not trouble)
        if trouble:
            logger.info("not ready: %s", trouble)

    async def _metrics(self, request: HttpRequest, _: Receive) -> None:
        grant = await self._enter(request)
        if grant.scope != TokenScope():
            raise out_of_scope("metrics are about every page; use a token for all layers")
        page = await self._counted()
        if self._parts.siblings:
            self._parts.siblings.publish(page)
            page = self._parts.siblings.added_up(page)
        await request.answer(200, page, {}, CONTENT_TYPE)

    async def publish(self) -> None:
        """Show the other workers what this one counts, for ever."""
        siblings = self._parts.siblings
        while siblings:
            siblings.publish(await self._counted())
            await asyncio.sleep(PUBLISH_SECONDS)

    async def until_ready(self) -> None:
        """Wait until calls can be answered without waiting for the index."""
        while await self._parts.health.trouble():
            await asyncio.sleep(PUBLISH_SECONDS / 10)

    async def _counted(self) -> bytes:
        """What this process counts and holds."""
        parts = self._parts
        families = [
            *await parts.health.families(),
            *parts.metrics.families(),
            *self._runner.families(),
            gauge("sage_layer_servers", "Sets of layers in use.", parts.layer_servers.open),
            gauge("sage_workers", "Processes that serve.", 1),
            *process_families(),
        ]
        return rendered(families)

    async def _mcp(self, request: HttpRequest, receive: Receive) -> None:
        grant = await self._enter(request)
        if self._runner.is_closing:
            raise closing()
        async with self._received(request, receive, grant) as (body, give_up):
            if body is None:
                request.status = GONE
                return
            message = peek(body)
            request.tool = message.tool or message.method
            call = McpCall(message, body, receive, give_up)
            async with self._parts.layer_servers.endpoint(grant.scope) as app:
                await self._runner.serve(request, app, call)

    @contextlib.asynccontextmanager
    async def _received(
        self, request: HttpRequest, receive: Receive, grant: Grant
    ) -> AsyncIterator[tuple[bytes | None, Callable[[], None]]]:
        """The body of a request for as long as it is served, and what gives the request up.

        Raises:
            Refused: the body is too long or too slow, or the request was ended meanwhile.
        """
        limits, declared = self._parts.limits, request.header("content-length")
        with self.open_requests.opened(grant) as opened:
            give_up = partial(opened.end, busy())
            too_late = partial(opened.end, too_slow(limits.body_seconds))
            await self._runner.take_in(request.caller)
            with self._bodies.holding(request.caller, too_late) as holding:
                body = await read_body(receive, declared, limits, holding)
                holding.give_up = give_up
                yield body, give_up

    async def _pages(self, request: HttpRequest, receive: Receive) -> None:
        """Answer a browser, when people may look."""
        page = self._parts.page
        if page is None:
            raise unknown_path(self._parts.path)
        request.endpoint = PAGE
        page.check_method(request)
        if self._runner.is_closing:
            raise closing()
        request.caller = caller_of(request.address)
        async with self._received(request, receive, ANYBODY) as (body, _):
            if body is None:
                request.status = GONE
                return
            if await page.enter(request, body):
                return
        grant = await page.admit(request)
        if grant is None:
            await page.turn_away(request)
            return
        self._charge(request, grant)
        await self._show(request, receive, grant)

    async def _show(self, request: HttpRequest, receive: Receive, grant: Grant) -> None:
        from sage.http.page_endpoint import page_app

        with self.open_requests.opened(grant) as opened:
            call = McpCall(Message(method=PAGE), b"", receive, partial(opened.end, busy()))
            async with self._parts.layer_servers.site(grant.scope) as site:
                await self._runner.serve(request, page_app(site), call)

    def _keep(self, request: HttpRequest) -> None:
        status = str(request.status or 500)
        self._parts.metrics.requests.add(request.endpoint, status)
        level = logging.ERROR if request.status >= 500 and request.status != 503 else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "request", extra={"fields": _fields(request)})


async def tell_alive(request: HttpRequest) -> None:
    """The answer to whoever asks whether the process answers."""
    await request.answer(200, b"ok\n", {}, "text/plain; charset=utf-8")


async def tell_ready(request: HttpRequest, *, is_ready: bool) -> None:
    """The answer to whoever asks whether calls should be sent here."""
    await request.answer_json(200 if is_ready else 503, {"ready": is_ready})


def _spend(limit: RateLimit, caller: str) -> None:
    wait_seconds = limit.wait_seconds(caller)
    if wait_seconds:
        raise too_many(wait_seconds)


def _attributes(request: HttpRequest) -> dict[str, str | int]:
    return {
        "http__request__method": request.method,
        "http__response__status_code": request.status,
        "url__path": request.endpoint,
        "sage__request_id": request.id,
        "sage__tool": request.tool[:64],
    }


def _fields(request: HttpRequest) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.path[:200],
        "status": request.status,
        "ms": round(request.seconds * 1000, 1),
        "bytes": request.sent_bytes,
        "address": request.address,
        "caller": request.caller,
        "tool": request.tool[:64],
    }


@contextlib.asynccontextmanager
async def running_app(
    knowledge: KnowledgeBase,
    options: HttpOptions,
    access: Access,
    tracing: Tracing,
    siblings: Siblings | None = None,
    on_warm: Callable[[], None] = lambda: None,
) -> AsyncIterator[TeamApp]:
    """The application with everything behind it, following the files until it is left."""
    metrics = ServerMetrics()
    usage = UsageLog(options.usage_log, options.usage_queries) if options.usage_log else None
    observers: list[Observer] = [metrics.observe, *([usage.note] if usage else [])]
    page = _page_endpoint(options, access, siblings) if options.page else None
    opener = _no_mcp if options.page_key else mcp_opener(observers, tracing.is_on)
    health = Health(knowledge, on_warm=on_warm)
    layer_servers = LayerServers(
        knowledge, opener, page.site_of if page else None, health.watch_over
    )
    parts = AppParts(
        "" if options.page_key else options.path,
        access,
        layer_servers,
        health,
        metrics,
        tracing,
        options.limits,
        page,
        siblings,
    )
    app = TeamApp(parts)
    tasks = [
        asyncio.create_task(health.follow()),
        asyncio.create_task(layer_servers.follow()),
        asyncio.create_task(app.open_requests.watch()),
        asyncio.create_task(app.publish()),
    ]
    try:
        async with layer_servers.endpoint(TokenScope()):
            pass  # what cannot be opened is told now
        yield app
    finally:
        for task in tasks:
            task.cancel()
        await layer_servers.close()
        health.close()
        if usage:
            usage.close()


def _page_endpoint(
    options: HttpOptions, access: Access, siblings: Siblings | None
) -> "PageEndpoint":
    try:
        from sage.http.page_endpoint import PageEndpoint
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise ConfigError("the page needs Jinja2: install SAGE with its extra `page`") from None
    sessions = PageSessions(
        options.page_key,
        port=options.port if options.page_key else 0,
        opened=siblings.memory.sessions if siblings else None,
    )
    return PageEndpoint(access, sessions, options.usage_log, is_personal=bool(options.page_key))


@contextlib.asynccontextmanager
async def _no_mcp(knowledge: KnowledgeBase) -> AsyncIterator[ASGIApp]:
    """A server that only shows the page has no application behind it."""

    async def nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise closing()

    yield nothing
    await asyncio.to_thread(knowledge.close)
