"""The command `serve`: on stdio for one client, or over HTTP for a team.

What an operator decides comes from flags and from variables of the environment, never from the
repository: whoever may change the documents must not be able to open the door.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sage.cli.options import (
    Quiet,
    Root,
    Verbose,
    refuse_options,
    settings_at,
    tokens_option,
    wanted_log_level,
)
from sage.cli.publish import BaseName, CaFile, Credentials, Urls, cluster_at
from sage.cli.terminal import say_less
from sage.errors import ConfigError, InvalidInput, WrongOption
from sage.paths import find_token_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from sage.access.options import JwtOptions
    from sage.knowledge import KnowledgeBase
    from sage.settings import Settings

_RUNNING = 8
ENGINES = ("embedded", "opensearch")

_FOR_FILES = ("root", "source")
_FOR_BOTH = {*_FOR_FILES, "http", "_quiet", "_verbose"}
_FOR_CLUSTER = ("url", "base", "credentials", "ca_file")
_ISSUER = ("jwt_issuer", "jwt_audience", "jwt_jwks", "jwt_public_key")
_OF_ISSUER = ("jwt_algorithm", "jwt_layers_claim")


def _flag(name: str, value: str | None, about: str, **more: Any) -> Any:
    """An option of HTTP with its variable; `value` names what follows it in the help."""
    variable = "SAGE_HTTP_" + name.removeprefix("--").replace("-", "_").upper()
    return typer.Option(name, envvar=variable, metavar=value, help=about, **more)


def serve(
    context: typer.Context,
    root: Root = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="NAME=FOLDER",
            help="A further repository, read beside this one: a folder that holds .knowledge, or "
            "a sage.yaml that maps layers; repeat it.",
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve a team; all that follows is for this.")
    ] = False,
    host: Annotated[str, _flag("--host", "ADDRESS", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, _flag("--port", "NUMBER", "Port to listen on; 0 takes a free one.", min=0, max=65_535)
    ] = 8000,
    path: Annotated[str, _flag("--path", "PATH", "The path of MCP.")] = "/mcp",
    allow_host: Annotated[
        list[str] | None,
        _flag("--allow-host", "NAME", "A name that clients call this server by; repeat it."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        _flag("--allow-origin", "ORIGIN", "The origin of a web page that may call; repeat it."),
    ] = None,
    tokens: Annotated[Path | None, tokens_option()] = None,
    require_token: Annotated[
        bool,
        _flag("--require-token", None, "Ask for a token on this machine too, as behind a proxy."),
    ] = False,
    jwt_issuer: Annotated[str, _flag("--jwt-issuer", "URL", "Accept tokens of this issuer.")] = "",
    jwt_audience: Annotated[
        str, _flag("--jwt-audience", "NAME", "The audience they are for.")
    ] = "",
    jwt_jwks: Annotated[str, _flag("--jwt-jwks", "URL", "URL of the issuer's keys.")] = "",
    jwt_public_key: Annotated[
        Path | None,
        _flag("--jwt-public-key", "FILE", "File with the issuer's key, in place of a URL."),
    ] = None,
    jwt_algorithm: Annotated[
        str, _flag("--jwt-algorithm", "NAME", "How they are signed.")
    ] = "RS256",
    jwt_layers_claim: Annotated[
        str,
        _flag(
            "--jwt-layers-claim",
            "NAME",
            "The claim that names the layers a caller may see; each token must have it. "
            "Not given: sage_layers, and a token without it sees all.",
        ),
    ] = "",
    trust_proxy: Annotated[
        list[str] | None,
        _flag(
            "--trust-proxy",
            "ADDRESS",
            "Address or network of a proxy that says who asks; repeat it.",
        ),
    ] = None,
    rate: Annotated[
        float,
        _flag("--rate", "NUMBER", "Requests a second for each token, after a burst.", min=0.01),
    ] = 100.0,
    running: Annotated[
        int | None,
        _flag(
            "--running",
            "NUMBER",
            "Calls that run at the same time; others wait.",
            min=1,
            max=256,
            show_default=f"{_RUNNING}, or as many as --workers",
        ),
    ] = None,
    workers: Annotated[
        int, _flag("--workers", "NUMBER", "Processes that answer; one core each.", min=1, max=64)
    ] = 1,
    grace: Annotated[
        float,
        _flag("--grace", "SECONDS", "Seconds that running calls get at shutdown.", min=1, max=600),
    ] = 10.0,
    usage_log: Annotated[
        Path | None,
        typer.Option(
            "--usage-log",
            envvar="SAGE_USAGE_LOG",
            metavar="FILE",
            help="Write to this file which pages are read.",
            show_default="off",
        ),
    ] = None,
    usage_queries: Annotated[
        bool, _flag("--usage-queries", None, "Write the text of searches as well.")
    ] = False,
    page: Annotated[
        bool, _flag("--page", None, "Let people look at it with a browser, too.")
    ] = False,
    engine: Annotated[
        str,
        _flag(
            "--engine", "NAME", "embedded, or opensearch: serve what was published to a cluster."
        ),
    ] = "embedded",
    url: Urls = None,
    base: BaseName = "sage",
    credentials: Credentials = None,
    ca_file: CaFile = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Serve one client on stdio, or a team over HTTP."""
    _check_engine(engine)
    _refuse_idle(context, http, engine)
    level = wanted_log_level()
    if http:
        say_less()  # the log is one JSON object a line; a note between them would break its reader
    open_base = _opener(engine, url, base, credentials, ca_file) if http else None
    if open_base is None:
        settings = settings_at(root, log_level=level, sources=source or None)
    else:
        from sage.settings import rootless_settings

        settings = rootless_settings({"log_level": level})
    if http:
        from sage.access.limits import Limits
        from sage.access.options import HttpOptions
        from sage.http.run import serve_http
        from sage.knowledge import open_knowledge

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
            page=page,
            workers=workers,
            grace_seconds=grace,
            limits=Limits(
                token_rate=rate,
                address_rate=2 * rate,
                running=running or max(_RUNNING, workers),
            ),
        )
        serve_http(settings, options, open_base=open_base or open_knowledge)
    else:
        from sage.server.stdio import serve_stdio

        serve_stdio(settings)


def _check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise InvalidInput(f"--engine {engine!r}: use one of {', '.join(ENGINES)}")


def _opener(
    engine: str,
    urls: list[str] | None,
    base: str,
    credentials: Path | None,
    ca_file: Path | None,
) -> "Callable[[Settings], KnowledgeBase] | None":
    """Opens a base in a cluster; None for the one in the files here."""
    if engine == "embedded":
        return None
    options = cluster_at(urls, base, credentials, ca_file)
    from sage.cluster.backend import wait_for_cluster

    return lambda settings: wait_for_cluster(options, settings)


def _jwt(
    issuer: str, audience: str, jwks: str, public_key: Path | None, algorithm: str, claim: str
) -> "JwtOptions | None":
    from sage.access.options import JwtOptions

    if not (issuer or audience or jwks or public_key):
        return None
    if not (issuer and audience):
        raise WrongOption("single sign-on needs both --jwt-issuer and --jwt-audience")
    try:
        key = public_key.read_text("utf-8") if public_key else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--jwt-public-key {public_key} cannot be read") from error
    return JwtOptions(issuer, audience, jwks, key, algorithm, claim)


def _listed(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for part in given or [] for name in part.split(",") if name.strip())


def _refuse_idle(context: typer.Context, http: bool, engine: str) -> None:
    """Refuse what would be silently without effect beside the other options."""
    given = context.params
    if not http:
        others = [name for name in given if name not in _FOR_BOTH]
        refuse_options(context, others, "is for HTTP; add --http")
    elif engine == "embedded":
        refuse_options(context, _FOR_CLUSTER, "is for a cluster; add --engine opensearch")
    else:
        why = f"is for files; leave it out, or --engine {engine}, which serves what is published"
        refuse_options(context, _FOR_FILES, why)
    if not any(given[name] for name in _ISSUER):
        refuse_options(context, _OF_ISSUER, "needs --jwt-issuer and --jwt-audience")
    if given["usage_log"] is None:
        refuse_options(context, ("usage_queries",), "needs --usage-log")
