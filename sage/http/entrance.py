"""What stands before the application while what it serves is being opened.

A replica may wait a minute for its cluster. Meanwhile whoever looks after the process is told that
it lives and is not ready, and calls wait a moment before they are turned away.
"""

import asyncio

from starlette.types import Receive, Scope, Send

from sage.access.hosts import HostRules
from sage.access.refusals import Refused, starting
from sage.http.app import HEALTH, READY, TeamApp, tell_alive, tell_ready
from sage.http.request import HttpRequest, check_names

# Files are opened before this has passed: nobody is turned away from a server of files.
MOMENT_SECONDS = 5.0


class Entrance:
    """Answers until the application is there, then leaves everything to it."""

    def __init__(self, rules: HostRules) -> None:
        self._rules = rules
        self._app: TeamApp | None = None
        self._is_open = asyncio.Event()

    def open(self, app: TeamApp) -> None:
        """Let everybody through from now on."""
        self._app = app
        self._is_open.set()

    def close(self) -> None:
        """Begin nothing new, and end what would go on for ever."""
        if self._app is not None:
            self._app.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None and await self._answers(HttpRequest(scope, send)):
            return
        if self._app is not None:
            await self._app(scope, receive, send)

    async def _answers(self, request: HttpRequest) -> bool:
        """Answer a request, unless the application is there before a moment has passed."""
        try:
            check_names(request, self._rules)
            path = request.path if request.method in ("GET", "HEAD") else ""
            if path == HEALTH:
                await tell_alive(request)
            elif path == READY:
                await tell_ready(request, is_ready=False)
            else:
                await self._wait()
                return False
        except Refused as refused:
            await request.refuse(refused)
        return True

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(MOMENT_SECONDS):
                await self._is_open.wait()
        except TimeoutError:
            raise starting() from None
