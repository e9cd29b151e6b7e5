"""The page behind the same rules as MCP: who looks, by which token, and what they may see.

A token is shown once, in a form; from then on a cookie stands for it. The pages themselves are
made by `sage.page`; here they are only asked for and sent.
"""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, quote

from starlette.types import ASGIApp, Receive, Scope, Send

from sage.access.auth import ANYBODY, Access
from sage.access.refusals import wrong_method
from sage.access.token_file import Grant
from sage.care.usage import read_usage, summarise
from sage.http.page_sessions import MAX_TOKEN_BYTES, PageSessions
from sage.http.request import HttpRequest
from sage.knowledge import KnowledgeBase
from sage.page.site import PageRequest, PageResponse, Site, Templates, message_page, sign_in_page
from sage.server.async_knowledge import charge

T = TypeVar("T")

SIGN_IN, SIGN_OUT, OPEN, STATIC = "/sign-in", "/sign-out", "/open/", "/static/"
_FORMS = (SIGN_IN, SIGN_OUT)
_MAX_FIELDS = 200
_MAX_ADDRESS = 2_000
_UNANSWERED = 50
_BAD_TOKEN = "This token is not valid here. Ask the person who runs this server for another one."  # noqa: S105 words for a person
_USED = "This address was used already, or never was one. Run sage page again for a new one."
_NO_SESSION = "This page is open for somebody else. Run sage page again for an address of your own."


class PageEndpoint:
    """Signs people in and finds the pages they may see."""

    def __init__(
        self,
        access: Access,
        sessions: PageSessions,
        usage_log: Path | None = None,
        is_personal: bool = False,
    ) -> None:
        """Args:
        is_personal: only whoever opened the address that works once may look.
        """
        self._access = access
        self._sessions = sessions
        self._usage_log = usage_log
        self._is_personal = is_personal
        self._templates = Templates(not is_personal and not access.authenticator.asks_for_nothing)

    def site_of(self, knowledge: KnowledgeBase) -> Site:
        """The pages over a knowledge base."""
        log = self._usage_log
        # What was asked may be about layers that some do not see: only all of them tell it.
        if log is None or knowledge.settings.is_narrowed:
            return Site(knowledge, self._templates)
        return Site(knowledge, self._templates, lambda: _unanswered(log))

    async def admit(self, request: HttpRequest) -> Grant | None:
        """What the person who looks may see; None when they have to sign in first.

        Raises:
            Refused: the request comes through a proxy to a server that asks for no token.
        """
        session = self._sessions.find(request.header("cookie"))
        if self._is_personal:
            return ANYBODY if session is not None else None
        if self._access.authenticator.asks_for_nothing:
            version: str = request.scope.get("http_version", "1.1")
            return await self._access.authenticator.admit(request.headers.items(), b"", version)
        return await self._access.authenticator.verify(session.token) if session else None

    async def enter(self, request: HttpRequest, body: bytes) -> bool:
        """Answer what needs no session: files, the form, the address that works once."""
        path = request.path
        if path.startswith(STATIC):
            await _send(request, self._templates.static(path) or self._message(404, "Not found"))
        elif path.startswith(OPEN):
            await self._open_once(request, path.removeprefix(OPEN))
        elif path == SIGN_IN and request.method == "POST":
            await self._sign_in(request, body)
        elif path == SIGN_OUT and request.method == "POST":
            self._sessions.close(request.header("cookie"))
            await self._redirect(request, SIGN_IN, "")
        else:
            return False
        return True

    async def turn_away(self, request: HttpRequest) -> None:
        """Ask whoever has no session to sign in."""
        if self._is_personal:
            await _send(request, self._message(401, _NO_SESSION))
        else:
            query = request.scope.get("query_string", b"").decode("ascii", "replace")
            wanted = quote(request.path) + (f"?{query}" if query else "")
            await _send(request, sign_in_page(self._templates, wanted=_own(wanted)))

    def check_method(self, request: HttpRequest) -> None:
        """Refuse what no page takes."""
        allowed = "POST, GET, HEAD" if request.path in _FORMS else "GET, HEAD"
        if request.method not in allowed.split(", "):
            raise wrong_method(allowed)

    async def _open_once(self, request: HttpRequest, key: str) -> None:
        cookie = self._sessions.open_once(key)
        if cookie is None:
            await _send(request, self._message(401, _USED))
        else:
            await self._redirect(request, "/", cookie)

    async def _sign_in(self, request: HttpRequest, body: bytes) -> None:
        fields = _fields(body)
        token = (fields.get("token") or [""])[0].strip()
        valid = token.isascii() and token.isprintable() and 0 < len(token) <= MAX_TOKEN_BYTES
        grant = await self._access.authenticator.verify(token) if valid else None
        wanted = _own((fields.get("next") or ["/"])[0])
        if grant is None:
            await _send(request, sign_in_page(self._templates, _BAD_TOKEN, wanted))
        else:
            await self._redirect(request, wanted, self._sessions.open(token))

    async def _redirect(self, request: HttpRequest, path: str, cookie: str) -> None:
        secure = request.scope.get("scheme") == "https"
        headers = {"location": path, "set-cookie": self._sessions.set_cookie(cookie, secure)}
        await _send(request, PageResponse(b"", 303, headers=headers))

    def _message(self, status: int, message: str) -> PageResponse:
        return message_page(self._templates, status, message)


def page_app(site: Site) -> ASGIApp:
    """The pages as an application that the runner of calls can run."""

    async def answer(scope: Scope, _: Receive, send: Send) -> None:
        query = _fields(scope.get("query_string", b""))
        asked = PageRequest(scope["path"], query)
        response, cpu_seconds = await _to_its_end(asyncio.to_thread(_measured, site, asked))
        charge.get()(cpu_seconds)
        headers = {"content-type": response.content_type, **response.all_headers}
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": raw})
        await send({"type": "http.response.body", "body": response.body})

    return answer


def _measured(site: Site, asked: PageRequest) -> tuple[PageResponse, float]:
    """A page, and the processor time that it took."""
    started = time.thread_time()
    return site.answer(asked), time.thread_time() - started


async def _to_its_end(work: Awaitable[T]) -> T:
    """The outcome of work in a thread, which goes on when its client goes: until it has ended the
    call keeps its place, so that nobody can begin more than their share."""
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        raise


async def _send(request: HttpRequest, response: PageResponse) -> None:
    await request.answer(
        response.status, response.body, response.all_headers, response.content_type
    )


def _own(address: str) -> str:
    """An address of this server that shows a page; the first page in place of any other."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    if not plain or not address.startswith("/") or address.startswith(("//", SIGN_IN, SIGN_OUT)):
        return "/"
    return address[:_MAX_ADDRESS]


def _fields(raw: bytes) -> dict[str, list[str]]:
    """The values of a form or of an address; nothing when they are too many to be meant."""
    try:
        return parse_qs(
            raw.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        return {}


def _unanswered(log: Path) -> Sequence[tuple[str, int]]:
    return summarise(read_usage(log), [], _UNANSWERED).empty_queries
