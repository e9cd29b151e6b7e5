"""Sessions of people who look at the page: a cookie that stands for a token, kept in memory only.

The token behind a session is checked again on every request, so one that is revoked ends its
sessions at once. A server that is opened for one person has an address that works once instead.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_SESSIONS = 1_000
MAX_SESSIONS_EACH = 20
"""Of one token: whoever signs in again and again signs nobody else out."""
LIFETIME_SECONDS = 12 * 3600.0
_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Session:
    """Who looks: the token that was shown, or nobody in particular."""

    token: str
    expires: float


class PageSessions:
    """The sessions of one server."""

    def __init__(
        self, once: str = "", now: Callable[[], float] = time.monotonic, port: int = 0
    ) -> None:
        """Args:
        once: what the address that works once ends with; empty for none.
        port: sets the cookies of several servers of one machine apart, which browsers do not.
        """
        self.cookie = f"sage_page_{port}" if port else "sage_page"
        self._once = once
        self._now = now
        self._open: dict[str, Session] = {}

    def open(self, token: str = "") -> str:
        """Begin a session; the value of its cookie."""
        now = self._now()
        ended = [key for key, session in self._open.items() if session.expires <= now]
        for key in ended:
            del self._open[key]
        own = [key for key, session in self._open.items() if session.token == token]
        if len(own) >= MAX_SESSIONS_EACH:
            del self._open[own[0]]
        elif len(self._open) >= MAX_SESSIONS:
            del self._open[next(iter(self._open))]
        key = secrets.token_urlsafe(_LENGTH)
        self._open[key] = Session(token, now + LIFETIME_SECONDS)
        return key

    def open_once(self, secret: str) -> str | None:
        """Begin the session of whoever has the address that works once."""
        given, known = secret.encode(), self._once.encode()
        if not known or not hmac.compare_digest(given, known):
            return None
        self._once = ""
        return self.open()

    def find(self, cookies: str) -> Session | None:
        """The session of a Cookie header."""
        session = self._open.get(_value(cookies, self.cookie))
        return session if session is not None and session.expires > self._now() else None

    def close(self, cookies: str) -> None:
        """End the session of a Cookie header."""
        self._open.pop(_value(cookies, self.cookie), None)

    def set_cookie(self, key: str, secure: bool) -> str:
        """The header that hands a browser its session."""
        lasting = f"; Max-Age={int(LIFETIME_SECONDS)}" if key else "; Max-Age=0"
        return f"{self.cookie}={key}; Path=/; HttpOnly; SameSite=Strict{lasting}" + (
            "; Secure" if secure else ""
        )


def _value(cookies: str, name: str) -> str:
    for part in cookies.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
