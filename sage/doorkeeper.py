"""Who asks: from the headers of a request to what its sender may see.

A server that only its own machine reaches asks for nothing. Any other asks for a token: one of
ours, or one that the company's single sign-on signed.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from sage.access import Grant, TokenFile
from sage.refusals import bad_credentials, bad_token, no_token, through_proxy

logger = logging.getLogger("sage.access")

LAYERS_CLAIM = "sage_layers"
ANYBODY = Grant("local")

Claims = Mapping[str, object]
Verify = Callable[[str], Awaitable[Claims | None]]

# A proxy on the same machine makes strangers look like neighbours; most say that they are one.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_IN_URL = (b"access_token=", b"token=", b"api_key=", b"key=")
_MAX_VALUE = 8_192


@dataclass(frozen=True, slots=True)
class SingleSignOn:
    """Tokens that somebody else signs."""

    verify: Verify
    """The claims of a token that is valid for this server; None for any other."""
    layers_claim: str = LAYERS_CLAIM


class Doorkeeper:
    """Lets in whoever may in."""

    def __init__(
        self, tokens: TokenFile | None = None, single_sign_on: SingleSignOn | None = None
    ) -> None:
        self._tokens = tokens
        self._single_sign_on = single_sign_on

    @property
    def asks_for_nothing(self) -> bool:
        """Whether everybody who reaches the server may in."""
        return self._tokens is None and self._single_sign_on is None

    async def admit(self, headers: Callable[[str], Sequence[str]], query: bytes) -> Grant:
        """What the sender of a request may see.

        Args:
            headers: every value of a header.

        Raises:
            Refused: nothing.
        """
        if self.asks_for_nothing:
            if any(headers(name) for name in _FORWARDED):
                raise through_proxy()
            return ANYBODY
        if query and any(part.lower().startswith(_IN_URL) for part in query.split(b"&")):
            raise bad_credentials("a token never belongs in a URL: use the Authorization header")
        value = bearer(headers("authorization"))
        grant = await self._grant(value)
        if grant is None:
            raise bad_token()
        return grant

    async def _grant(self, value: str) -> Grant | None:
        sign_on = self._single_sign_on
        if sign_on is None or (self._tokens is not None and value.startswith("sage_")):
            return self._tokens.verify(value) if self._tokens else None
        claims = await sign_on.verify(value)
        return None if claims is None else _granted(claims, sign_on.layers_claim)


def bearer(values: Sequence[str]) -> str:
    """The token in the Authorization headers of a request.

    Raises:
        Refused: there is none, or more than one.
    """
    if not values:
        raise no_token()
    if len(values) > 1:
        # Two parties that read different ones would disagree about who is asking.
        raise bad_credentials("send one Authorization header")
    scheme, _, value = values[0].strip().partition(" ")
    if scheme.lower() != "bearer":
        raise no_token()
    value = value.strip()
    if not value or len(value) > _MAX_VALUE or not value.isascii() or not value.isprintable():
        raise bad_token()
    return value


def _granted(claims: Claims, layers_claim: str) -> Grant:
    name = str(claims.get("sub") or claims.get("client_id") or "sso")[:64]
    given = claims.get(layers_claim)
    if given is None:
        return Grant(name)
    # Anything but a list of names grants nothing: a claim that is there was meant to restrict.
    if isinstance(given, str):
        given = given.replace(",", " ").split()
    layers = given if isinstance(given, list) else []
    return Grant(name, tuple(layer for layer in layers if isinstance(layer, str)))
