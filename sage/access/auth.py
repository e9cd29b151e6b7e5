"""Who asks: from the headers of a request to what its sender may see.

A server that only its own machine reaches asks for nothing. Any other asks for a bearer token: one
of ours, or one that the company's single sign-on signed. Whatever is missing or cannot be read
counts against the sender.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from sage.access.hosts import HostRules, is_loopback
from sage.access.options import LAYERS_CLAIM, PROBES, SOURCES_CLAIM, HttpOptions, JwtOptions
from sage.access.refusals import bad_credentials, bad_token, no_token, out_of_scope, through_proxy
from sage.access.token_file import Grant, TokenFile
from sage.errors import ConfigError, WrongOption
from sage.settings import Settings
from sage.values import ALL_LAYERS

logger = logging.getLogger("sage.access")

ANYBODY = Grant("local")

Claims = Mapping[str, object]
Verify = Callable[[str], Awaitable[Claims | None]]

# A proxy on the same machine makes strangers look like neighbours. Proxies say in a hundred ways
# that they are one, so what counts is what a client of its own sends: any other header is refused.
_OWN_NAMES = """
    accept accept-charset accept-encoding accept-language authorization baggage b3
    cache-control connection content-encoding content-language content-length content-type
    cookie date dnt expect host if-modified-since if-none-match keep-alive last-event-id
    origin pragma priority range referer sentry-trace te traceparent tracestate trailer
    transfer-encoding upgrade upgrade-insecure-requests user-agent x-request-id
    x-requested-with
"""
_OWN_HEADERS = frozenset(_OWN_NAMES.split())
_OWN_PREFIXES = ("access-control-request-", "mcp-", "sec-")
_NAMING = ("sub", "client_id", "azp")
# Clocks of two machines differ; so far ahead may a token begin.
SKEW_SECONDS = 10.0
_END_OF_TIME = 2.0**40
_IN_URL = (b"access_token=", b"token=", b"api_key=", b"key=")
_MAX_VALUE = 8_192


@dataclass(frozen=True, slots=True)
class SingleSignOn:
    """Tokens that somebody else signs."""

    verify: Verify
    """The claims of a token that is valid for this server; None for any other."""
    layers_claim: str = ""
    """The claim that every token must have; empty: `sage_layers`, and without it all layers."""


class Authenticator:
    """Finds out what the sender of a request may see."""

    def __init__(
        self,
        tokens: TokenFile | None = None,
        single_sign_on: SingleSignOn | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        self._single_sign_on = single_sign_on
        self._now = now

    @property
    def asks_for_nothing(self) -> bool:
        """Whether everybody who reaches the server is answered."""
        return self._tokens is None and self._single_sign_on is None

    async def admit(
        self, headers: Sequence[tuple[str, str]], query: bytes = b"", http_version: str = "1.1"
    ) -> Grant:
        """What the sender of a request may see.

        Args:
            headers: every header, its name in lower case.

        Raises:
            Refused: nothing.
        """
        if self.asks_for_nothing:
            # nginx speaks 1.0 to what is behind it unless told otherwise; no client of MCP does.
            if http_version == "1.0" or not all(_is_own(name) for name, _ in headers):
                raise through_proxy()
            return ANYBODY
        if query and any(part.lower().startswith(_IN_URL) for part in query.split(b"&")):
            raise bad_credentials("a token never belongs in a URL: use the Authorization header")
        value = bearer([value for name, value in headers if name == "authorization"])
        grant = await self.verify(value)
        if grant is None:
            raise bad_token()
        return grant

    def still_admits(self, grant: Grant) -> bool:
        """Whether what was granted once would be granted again, to the same token, now."""
        if grant.expires is not None and grant.expires <= self._now():
            return False
        if not grant.token_id:
            return True
        return self._tokens is not None and self._tokens.holds(grant.token_id)

    async def verify(self, value: str) -> Grant | None:
        """What the bearer of a token may see; None when it is not valid."""
        sign_on = self._single_sign_on
        if sign_on is None or (self._tokens is not None and value.startswith("sage_")):
            return self._tokens.verify(value) if self._tokens else None
        claims = await sign_on.verify(value)
        return None if claims is None else _granted(claims, sign_on.layers_claim, self._now())


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: by which names, from which pages, with which tokens."""

    rules: HostRules
    authenticator: Authenticator

    @classmethod
    def at(cls, addresses: Sequence[str], options: HttpOptions, settings: Settings) -> "Access":
        """The rules of a server at these addresses.

        Raises:
            ConfigError: anybody could ask, although others than this machine can reach it.
        """
        _check_path(options.path)
        rules = HostRules.named(options.allow_hosts, options.allow_origins)
        near = all(map(is_loopback, addresses)) and not rules.beyond_this_machine
        if near and not options.require_token and options.jwt is None:
            return cls(rules, Authenticator())
        tokens = TokenFile(options.tokens) if options.tokens else None
        if tokens is not None and tokens.path.resolve().is_relative_to(settings.root.resolve()):
            raise ConfigError(f"--tokens {tokens.path} lies in the repository; keep it outside")
        if options.jwt is None and not (tokens and tokens.tokens()):
            raise ConfigError(
                "other machines can reach this server, and no token protects it: "
                "make a token with `sage token create NAME`, or configure --jwt-issuer"
            )
        sign_on = _single_sign_on(options.jwt) if options.jwt else None
        return cls(rules, Authenticator(tokens, sign_on))


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


def _is_own(header: str) -> bool:
    return header in _OWN_HEADERS or header.startswith(_OWN_PREFIXES)


def _granted(claims: Claims, layers_claim: str, now: float) -> Grant | None:
    """What the claims of a signed token grant; None unless each of them is there and makes sense.

    Raises:
        Refused: it is a good token, but for no layer.
    """
    name = next((claims[key] for key in _NAMING if claims.get(key)), None)
    expires = _moment(claims, "exp")
    begun = [_moment(claims, key) for key in ("nbf", "iat") if key in claims]
    if not isinstance(name, str) or expires is None or expires <= now:
        return None
    if any(since is None or since > now + SKEW_SECONDS for since in begun):
        return None
    layers = _names(claims, layers_claim or LAYERS_CLAIM, "layers", is_needed=bool(layers_claim))
    sources = _names(claims, SOURCES_CLAIM, "sources", is_needed=False)
    return Grant(name[:64], layers, sources, expires=expires)


def _names(claims: Claims, claim: str, what: str, is_needed: bool) -> tuple[str, ...] | None:
    """The layers or sources that a claim names; None for all.

    Raises:
        Refused: it names none.
    """
    if not is_needed and claim not in claims:
        return None
    names = _listed(claims.get(claim))
    if not names:
        raise out_of_scope(f"the token names no {what} in its claim {claim}")
    return None if ALL_LAYERS in names else names


def _moment(claims: Claims, name: str) -> float | None:
    """A claim that is a point in time; None when it is anything else."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # An integer may be too large for a float, and a float may be no number.
    return float(value) if 0 <= value < _END_OF_TIME else None


def _listed(given: object) -> tuple[str, ...]:
    """The names in a claim; none when any part of it is not a name."""
    if isinstance(given, str):
        given = given.replace(",", " ").split()
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        return ()
    return tuple(given)


def _single_sign_on(options: JwtOptions) -> SingleSignOn:
    if bool(options.jwks_uri) == bool(options.public_key):
        raise WrongOption("single sign-on needs --jwt-jwks or --jwt-public-key, one of them")
    return SingleSignOn(jwt_claims(options), options.layers_claim)


def jwt_claims(options: JwtOptions) -> Verify:
    """A check of tokens that an issuer signed for an audience: their claims, or None."""
    # Only a server behind single sign-on pays for the import of its cryptography.
    from fastmcp.server.auth.providers.jwt import JWTVerifier

    try:
        verifier = JWTVerifier(
            issuer=options.issuer,
            audience=options.audience,
            jwks_uri=options.jwks_uri or None,
            public_key=options.public_key or None,
            algorithm=options.algorithm,
        )
    except ValueError as error:
        raise WrongOption(f"single sign-on: {error}") from error

    async def claims(token: str) -> Claims | None:
        try:
            access = await verifier.verify_token(token)
        except Exception as error:  # a token is foreign text: whatever it breaks, it is not valid
            logger.info("a token could not be read: %s", type(error).__name__)
            return None
        return access.claims if access is not None else None

    return claims


def _check_path(path: str) -> None:
    if not path.startswith("/") or path.endswith("/") or path in PROBES or "?" in path:
        raise WrongOption(
            f"--path {path}: expected a path such as /mcp, not one of {', '.join(PROBES)}"
        )
