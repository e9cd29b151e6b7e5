"""The commands around a team's server: `token` and `usage`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli.help import Command, examples
from sage.cli.options import Json, Quiet, Root, Verbose, settings_at, tokens_option
from sage.cli.terminal import print_json, print_note, print_rows, print_table
from sage.errors import ConfigError, InvalidInput, counted, did_you_mean
from sage.paths import find_token_file

if TYPE_CHECKING:
    from sage.access.token_file import BearerToken, TokenFile
    from sage.care.usage import UsageSummary

_DURATION = re.compile(r"([0-9]{1,5})([mhdw])")
_MAX_NAME = 200
_UNIT_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

TokensFile = Annotated[Path | None, tokens_option()]
UsageFile = Annotated[
    Path | None,
    typer.Option(
        "--log", envvar="SAGE_USAGE_LOG", metavar="FILE", help="The usage log that a server writes."
    ),
]
Expires = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="How long it is valid: 30m, 12h, 90d, 4w.", show_default="without end"
    ),
]

tokens_app = typer.Typer(
    help="Create, list, replace and revoke tokens for a team's server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@tokens_app.command(
    cls=Command,
    epilog=examples(
        "sage token create alice --expires 90d", "sage token create ci --layers core,practices"
    ),
)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is for.")],
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="LAYERS",
            help="The layers it is for, separated by commas.",
            show_default="all",
        ),
    ] = None,
    sources: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCES",
            help="The sources it is for, separated by commas; own is the repository.",
            show_default="all",
        ),
    ] = None,
    expires: Expires = None,
    tokens: TokensFile = None,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Create a token and print it; it is shown only now."""
    wanted = _named("layer", layers, root)
    from_sources = _named("source", sources, root)
    file = _tokens(tokens)
    value = file.create(name, wanted, parse_duration(expires), from_sources)
    _hand_over(value, name, as_json)


@tokens_app.command("list", cls=Command, epilog=examples("sage token list"))
def list_tokens(
    tokens: TokensFile = None,
    as_json: Json = False,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """List the tokens; their values are not kept."""
    import time

    now = time.time()
    rows = [_described(token, now) for token in _tokens(tokens).tokens()]
    if as_json:
        print_json(rows)
    elif rows:
        heading = ("NAME", "LAYERS", "SOURCES", "CREATED", "EXPIRES", "STATE")
        print_table(heading, [tuple(str(row[key.lower()]) for key in heading) for row in rows])
    else:
        print_note("there are no tokens yet; make one: sage token create NAME")


@tokens_app.command(cls=Command, epilog=examples("sage token rotate alice --overlap 12h"))
def rotate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token to replace.")],
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long it is valid: 30m, 12h, 90d, 4w.",
            show_default="as long as the old one",
        ),
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long the old value still works: 30m, 12h.",
            show_default="not at all",
        ),
    ] = None,
    tokens: TokensFile = None,
    as_json: Json = False,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Replace a token by a new one and print it; it is shown only now."""
    value = _tokens(tokens).rotate(name, parse_duration(expires), parse_duration(overlap) or 0)
    _hand_over(value, name, as_json)


@tokens_app.command(cls=Command, epilog=examples("sage token revoke alice"))
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token to revoke.")],
    tokens: TokensFile = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Revoke a token: every server refuses it from now on."""
    _tokens(tokens).revoke(name)
    print_note(f"{name} is revoked")


def usage(
    log: UsageFile = None,
    top: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many of each to show.", min=1)
    ] = 20,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Show what callers read, did not find, and never read."""
    from dataclasses import asdict

    from sage.care.usage import read_usage, summarise
    from sage.knowledge import open_knowledge

    if log is None or not log.is_file():
        raise ConfigError(
            "there is no usage log; a server writes one with --usage-log FILE, then: "
            "sage usage --log FILE"
        )
    documents = open_knowledge(settings_at(root)).documents()
    summary = summarise(read_usage(log), [document.path for document in documents], top)
    print_json(asdict(summary)) if as_json else _print_usage(summary, top)


def _print_usage(summary: "UsageSummary", top: int) -> None:
    rows = [("since", summary.since or "no call was recorded yet")]
    rows += [("calls", f"{count} {tool}") for tool, count in sorted(summary.calls.items())]
    rows += [
        ("most used", f"{page.path}  read {page.read}, shown {page.shown}")
        for page in summary.most_used
    ]
    rows.append(("found nothing", counted(summary.empty_searches, "search", "searches")))
    rows += [("", f"{count} x {query}") for query, count in summary.empty_queries]
    rows.append(("never read", counted(len(summary.never_read), "page")))
    rows += [("", path) for path in summary.never_read[:top]]
    print_rows(rows)


def _hand_over(value: str, name: str, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "token": value})
        return
    typer.echo(value)
    print_note("this is the only time it is shown; clients send it as Authorization: Bearer TOKEN")


def _described(token: "BearerToken", now: float) -> dict[str, object]:
    from sage.access.token_file import moment

    return {
        "name": token.name,
        "layers": ",".join(token.layers) if token.layers else "all",
        "sources": ",".join(token.sources) if token.sources else "all",
        "created": moment(token.created),
        "expires": moment(token.expires) if token.expires else "never",
        "state": "expired" if token.has_expired(now) else "valid",
    }


def _named(what: str, given: str | None, root: Path | None) -> list[str] | None:
    """The layers or sources that a flag names; each must be one of a root that is named too.

    Elsewhere the server may serve another base, or what was published to a cluster.
    """
    if given is None:
        return None
    wanted = [name.strip() for name in given.split(",") if name.strip()]
    if not wanted:
        raise InvalidInput(f"--{what}s names no {what}; leave it out for a token for all {what}s")
    from sage.sources import is_name
    from sage.values import ALL_LAYERS

    for name in wanted:
        if not is_name(name) or len(name) > _MAX_NAME or name.casefold() == ALL_LAYERS:
            raise InvalidInput(
                f"{name[:_MAX_NAME]!r} cannot name a {what}; use letters, digits, - and _, and "
                f"leave --{what}s out for all"
            )
    served = _served(what, root)
    unknown = [name for name in wanted if served is not None and name not in served]
    if served is not None and unknown:
        known = f"the {what}s are {', '.join(served)}{did_you_mean(unknown[0], served)}"
        if root is not None:
            raise InvalidInput(f"there is no {what} {unknown[0]}; {known}")
        print_note(
            f"there is no {what} {', '.join(unknown)} here ({known}); the token is for what "
            "its server has under that name"
        )
    return wanted


def _served(what: str, root: Path | None) -> tuple[str, ...] | None:
    """The layers or sources here; None away from any, where a name cannot be checked."""
    try:
        settings = settings_at(root)
    except ConfigError:
        if root is not None:
            raise
        return None
    return settings.layers if what == "layer" else tuple(one.name for one in settings.served)


def parse_duration(text: str | None) -> int | None:
    """The seconds of a duration such as 90d; None when none is given.

    Raises:
        InvalidInput: it is none.
    """
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise InvalidInput(
            f"{text!r} is not a duration; use a number and a unit: 30m, 12h, 90d, 4w"
        )
    return int(match[1]) * _UNIT_SECONDS[match[2]]


def _tokens(given: Path | None) -> "TokenFile":
    from sage.access.token_file import TokenFile

    return TokenFile(given or find_token_file())
