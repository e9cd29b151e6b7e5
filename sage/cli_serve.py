"""The command `serve`: on stdio for one client, or over HTTP for a team.

What an operator decides comes from flags and from variables of the environment, never from the
repository: whoever may change the documents must not be able to open the door.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sage.cli_options import Root, settings_at, tokens_option, wanted_log_level
from sage.errors import ConfigError, InvalidInput
from sage.places import find_token_file

if TYPE_CHECKING:
    from sage.serving import JwtOptions

_PANEL = "Over HTTP"
_FOR_BOTH = ("root", "http", "quiet", "verbose")


def _flag(name: str, about: str, **more: Any) -> Any:
    variable = "SAGE_HTTP_" + name.removeprefix("--").replace("-", "_").upper()
    return typer.Option(name, envvar=variable, help=about, rich_help_panel=_PANEL, **more)


def serve(
    context: typer.Context,
    root: Root = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve a team over HTTP.", rich_help_panel=_PANEL)
    ] = False,
    host: Annotated[str, _flag("--host", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, _flag("--port", "Port to listen on; 0 takes a free one.")] = 8000,
    path: Annotated[str, _flag("--path", "Where MCP is.")] = "/mcp",
    allow_host: Annotated[
        list[str] | None,
        _flag("--allow-host", "A name that clients call this server by; repeat it."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, _flag("--allow-origin", "A web page that may ask; repeat it.")
    ] = None,
    tokens: Annotated[Path | None, tokens_option(rich_help_panel=_PANEL)] = None,
    require_token: Annotated[
        bool, _flag("--require-token", "Ask for a token on this machine too, as behind a proxy.")
    ] = False,
    jwt_issuer: Annotated[str, _flag("--jwt-issuer", "Accept tokens of this issuer.")] = "",
    jwt_audience: Annotated[str, _flag("--jwt-audience", "The audience they are for.")] = "",
    jwt_jwks: Annotated[str, _flag("--jwt-jwks", "URL of the issuer's keys.")] = "",
    jwt_public_key: Annotated[
        Path | None, _flag("--jwt-public-key", "File with the issuer's key, in place of a URL.")
    ] = None,
    jwt_algorithm: Annotated[str, _flag("--jwt-algorithm", "How they are signed.")] = "RS256",
    jwt_layers_claim: Annotated[
        str, _flag("--jwt-layers-claim", "The claim that names the layers a caller may see.")
    ] = "sage_layers",
    trust_proxy: Annotated[
        list[str] | None,
        _flag("--trust-proxy", "Address or network of a proxy that says who asks; repeat it."),
    ] = None,
    rate: Annotated[
        float, _flag("--rate", "Requests a second for each token, after a burst.", min=0.01)
    ] = 100.0,
    running: Annotated[
        int, _flag("--running", "Calls that run at a time; others wait.", min=1, max=256)
    ] = 8,
    grace: Annotated[
        float, _flag("--grace", "Seconds that running calls have at the end.", min=1, max=600)
    ] = 10.0,
    usage_log: Annotated[
        Path | None,
        typer.Option(
            "--usage-log",
            envvar="SAGE_USAGE_LOG",
            help="Note in this file which pages are read.",
            show_default="off",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    usage_queries: Annotated[
        bool, _flag("--usage-queries", "Note the text of searches as well.")
    ] = False,
) -> None:
    """Serve the knowledge base over MCP: on stdio for one client, or over HTTP for a team."""
    settings = settings_at(root, log_level=wanted_log_level())
    if http:
        from sage.http import serve_http
        from sage.limits import Limits
        from sage.serving import HttpOptions

        options = HttpOptions(
            host=host,
            port=port,
            path=path,
            allow_hosts=_listed(allow_host),
            allow_origins=_listed(allow_origin),
            tokens=tokens or find_token_file(),
            require_token=require_token,
            jwt=_jwt(
                jwt_issuer, jwt_audience, jwt_jwks, jwt_public_key, jwt_algorithm, jwt_layers_claim
            ),
            trust_proxies=_listed(trust_proxy),
            usage_log=usage_log,
            usage_queries=usage_queries,
            grace_seconds=grace,
            limits=Limits(token_rate=rate, address_rate=2 * rate, running=running),
        )
        serve_http(settings, options)
    else:
        _refuse_flags(context)
        from sage.stdio import serve_stdio

        serve_stdio(settings)


def _jwt(
    issuer: str, audience: str, jwks: str, public_key: Path | None, algorithm: str, claim: str
) -> "JwtOptions | None":
    from sage.serving import JwtOptions

    if not (issuer or audience or jwks or public_key):
        return None
    if not (issuer and audience):
        raise ConfigError("single sign-on needs both --jwt-issuer and --jwt-audience")
    try:
        key = public_key.read_text("utf-8") if public_key else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--jwt-public-key {public_key} cannot be read") from error
    return JwtOptions(issuer, audience, jwks, key, algorithm, claim)


def _listed(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for part in given or [] for name in part.split(",") if name.strip())


def _refuse_flags(context: typer.Context) -> None:
    """A flag of HTTP without --http would be silently without effect."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _FOR_BOTH and source is not None and source.name == "COMMANDLINE":
            raise InvalidInput(f"--{name.replace('_', '-')} is for HTTP; add --http")
