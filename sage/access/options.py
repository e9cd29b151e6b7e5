"""What an operator decides about a team's server.

It comes from flags and the environment, never from `sage.yaml`: whoever may change the documents
must not be able to open the server to others.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sage.access.limits import Limits

PROBES = ("/healthz", "/readyz", "/metrics")
LAYERS_CLAIM = "sage_layers"
SOURCES_CLAIM = "sage_sources"


@dataclass(frozen=True, slots=True)
class JwtOptions:
    """How tokens of the company's single sign-on are checked."""

    issuer: str
    audience: str
    jwks_uri: str = ""
    public_key: str = ""
    algorithm: str = "RS256"
    layers_claim: str = ""
    """The claim that every token must have; empty: `sage_layers`, and without it all layers."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The decisions, one by one."""

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
    page: bool = False
    """Whether people may look at the knowledge base with a browser."""
    page_key: str = ""
    """What the address ends with that opens the page once, for one person; then there is no MCP."""
    workers: int = 1
    grace_seconds: float = 10.0
    limits: Limits = field(default_factory=Limits)
