"""Every answer to a request that does not reach a tool: its status, its headers and its words.

The words say what to do about it and repeat nothing that was sent.
"""

import json
import math
from collections.abc import Mapping

INVALID_REQUEST = -32600
UNAVAILABLE = -32000

_CHALLENGE = 'Bearer realm="sage"'


class Refused(Exception):
    """A request is not served; the application answers with what this holds."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        code: int = INVALID_REQUEST,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self._code = code

    @property
    def body(self) -> bytes:
        """The answer as the protocol's own kind of error, which belongs to no request."""
        error = {"code": self._code, "message": str(self)}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


def wrong_host() -> Refused:
    """Host is missing, or not a name of this server."""
    return Refused(421, "Host is not a name of this server; allow it with --allow-host")


def wrong_origin() -> Refused:
    """Origin is a page that may not ask."""
    return Refused(403, "this Origin may not ask; allow it with --allow-origin")


def unknown_path(path: str) -> Refused:
    """There is nothing there."""
    return Refused(404, f"nothing is here; MCP is at {path}")


def wrong_method(allowed: str) -> Refused:
    """The path does not take this method."""
    return Refused(405, f"use {allowed}", {"Allow": allowed})


def through_proxy() -> Refused:
    """A server without tokens is asked from further away than its own machine."""
    return Refused(
        403,
        "this server asks for no token and answers its own machine only; behind a proxy start it "
        "with --require-token",
    )


def no_token() -> Refused:
    """A token is needed and none was sent."""
    return Refused(
        401, "send a token: Authorization: Bearer TOKEN", {"WWW-Authenticate": _CHALLENGE}
    )


def bad_token() -> Refused:
    """A token that never was, is revoked or has expired: which of them is not said."""
    challenge = f'{_CHALLENGE}, error="invalid_token"'
    return Refused(401, "the token is not valid (any more)", {"WWW-Authenticate": challenge})


def bad_credentials(message: str) -> Refused:
    """The token came in a way that cannot be read safely."""
    challenge = f'{_CHALLENGE}, error="invalid_request"'
    return Refused(400, message, {"WWW-Authenticate": challenge})


def out_of_scope(message: str) -> Refused:
    """The token is good, but not for this."""
    challenge = f'{_CHALLENGE}, error="insufficient_scope"'
    return Refused(403, message, {"WWW-Authenticate": challenge})


def too_large(limit_bytes: int) -> Refused:
    """The body of the request is longer than any call needs."""
    return Refused(
        413, f"a request may have at most {limit_bytes // 1024} KB", {"Connection": "close"}
    )


def too_slow(limit_seconds: float) -> Refused:
    """The body of the request did not arrive in time."""
    return Refused(
        408, f"the request did not arrive within {limit_seconds:g} s", {"Connection": "close"}
    )


def too_many(wait_seconds: float) -> Refused:
    """The caller asks more often than allowed."""
    seconds = max(1, math.ceil(wait_seconds))
    return Refused(
        429, f"too many requests; wait {seconds} s", {"Retry-After": str(seconds)}, UNAVAILABLE
    )


def busy() -> Refused:
    """The server has more to do than it can hold."""
    return Refused(503, "the server is busy; try again", {"Retry-After": "2"}, UNAVAILABLE)


def starting() -> Refused:
    """What is served is not there yet."""
    return Refused(
        503,
        "the server is starting and waits for what it serves; try again",
        {"Retry-After": "2"},
        UNAVAILABLE,
    )


def closing() -> Refused:
    """The server is about to end."""
    return Refused(
        503,
        "the server is shutting down; try again",
        {"Retry-After": "2", "Connection": "close"},
        UNAVAILABLE,
    )
