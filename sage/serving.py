"""A team's server put together: what an operator decides, and the parts that follow from it.

It refuses to be put together so that a door stands open. Sockets and signals are `http`'s.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sage.access import TokenFile
from sage.doorkeeper import LAYERS_CLAIM, Doorkeeper, SingleSignOn
from sage.errors import ConfigError
from sage.exchange import exchanges
from sage.front import PROBES, Front, Setting
from sage.health import Health
from sage.hosts import HostRules, is_loopback
from sage.knowledge import KnowledgeBase
from sage.limits import Limits
from sage.metrics import Meters
from sage.observing import Observation, Observer, observed_by
from sage.scopes import Scopes
from sage.settings import Settings
from sage.tools import all_tools
from sage.tracing import Tracing
from sage.usage import UsageLog

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True)
class JwtOptions:
    """How tokens of the company's single sign-on are checked."""

    issuer: str
    audience: str
    jwks_uri: str = ""
    public_key: str = ""
    algorithm: str = "RS256"
    layers_claim: str = LAYERS_CLAIM


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What an operator decides. It comes from flags and the environment, never from `sage.yaml`:
    whoever may change the documents must not be able to open the door."""

    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    tokens: Path | None = None
    require_token: bool = False
    jwt: JwtOptions | None = None
    trust_proxies: tuple[str, ...] = ()
    usage_log: Path | None = None
    usage_queries: bool = False
    grace_seconds: float = 10.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Door:
    """Who may ask: by which names, from which pages, with which tokens."""

    rules: HostRules
    doorkeeper: Doorkeeper

    @classmethod
    def at(cls, addresses: Sequence[str], options: HttpOptions, settings: Settings) -> "Door":
        """The door of a server at these addresses.

        Raises:
            ConfigError: it would stand open, although others than this machine can reach it.
        """
        _check_path(options.path)
        rules = HostRules.named(options.allow_hosts, options.allow_origins)
        near = all(map(is_loopback, addresses)) and not rules.beyond_this_machine
        if near and not options.require_token and options.jwt is None:
            return cls(rules, Doorkeeper())
        tokens = TokenFile(options.tokens) if options.tokens else None
        if tokens is not None and tokens.path.resolve().is_relative_to(settings.root.resolve()):
            raise ConfigError(f"--tokens {tokens.path} lies in the repository; keep it outside")
        if options.jwt is None and not (tokens and tokens.tokens()):
            raise ConfigError(
                "others than this machine could reach this server, and nothing would stop them: "
                "make a token with `sage token create NAME`, or configure --jwt-issuer"
            )
        return cls(rules, Doorkeeper(tokens, _single_sign_on(options.jwt) if options.jwt else None))


@contextlib.asynccontextmanager
async def running_front(
    knowledge: KnowledgeBase, options: HttpOptions, door: Door, tracing: Tracing
) -> AsyncIterator[Front]:
    """The application with everything behind it, following the files until it is left."""
    meters = Meters()
    usage = UsageLog(options.usage_log, options.usage_queries) if options.usage_log else None
    observers: list[Observer] = [meters.observe, *([usage.note] if usage else [])]
    scopes = Scopes(knowledge, _opener(observers))
    health = Health(knowledge)
    setting = Setting(
        options.path, door.rules, door.doorkeeper, scopes, health, meters, tracing, options.limits
    )
    following = asyncio.create_task(health.follow())
    try:
        async with scopes.endpoint(None):
            yield Front(setting)
    finally:
        following.cancel()
        await scopes.close()
        health.close()
        if usage:
            usage.close()


def _opener(
    observers: Sequence[Observer],
) -> Callable[[KnowledgeBase], contextlib.AbstractAsyncContextManager["ASGIApp"]]:
    def observe(seen: Observation) -> None:
        for observer in observers:
            observer(seen)

    @contextlib.asynccontextmanager
    async def opened(knowledge: KnowledgeBase) -> AsyncIterator["ASGIApp"]:
        from sage.server import create_server, lowlevel_of

        server = lowlevel_of(create_server(knowledge))
        tools = all_tools(knowledge.settings.layers, knowledge.task_types)
        server.middleware.insert(0, observed_by(observe, frozenset(tool.name for tool in tools)))
        async with exchanges(server) as app:
            yield app
        await asyncio.to_thread(knowledge.close)

    return opened


def _single_sign_on(options: JwtOptions) -> SingleSignOn:
    from sage.server import jwt_claims

    if bool(options.jwks_uri) == bool(options.public_key):
        raise ConfigError("single sign-on needs --jwt-jwks or --jwt-public-key, one of them")
    verify = jwt_claims(
        issuer=options.issuer,
        audience=options.audience,
        jwks_uri=options.jwks_uri or None,
        public_key=options.public_key or None,
        algorithm=options.algorithm,
    )
    return SingleSignOn(verify, options.layers_claim)


def _check_path(path: str) -> None:
    if not path.startswith("/") or path.endswith("/") or path in PROBES or "?" in path:
        raise ConfigError(
            f"--path {path}: expected a path such as /mcp, not one of {', '.join(PROBES)}"
        )
