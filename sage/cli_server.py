"""The commands around a server for others: `token` and `usage`; `serve` has a module of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli_options import Json, Root, command, settings_at, tokens_option
from sage.cli_serve import serve
from sage.console import print_json, print_note, print_rows, print_table
from sage.errors import ConfigError, InvalidInput
from sage.places import find_token_file

if TYPE_CHECKING:
    from sage.access import Token, TokenFile
    from sage.usage import UsageSummary

TokensFile = Annotated[Path | None, tokens_option()]
UsageFile = Annotated[
    Path | None,
    typer.Option("--log", envvar="SAGE_USAGE_LOG", help="The usage log that a server writes."),
]
Expires = Annotated[
    str | None,
    typer.Option(help="How long it is valid: 30m, 12h, 90d, 4w.", show_default="for ever"),
]

tokens_app = typer.Typer(help="Make and take back tokens for a server.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(command(serve))
    app.command()(command(usage))
    app.add_typer(tokens_app, name="token")


@tokens_app.command()
@command
def create(
    name: Annotated[str, typer.Argument(help="Who it is for.")],
    layers: Annotated[
        str | None,
        typer.Option(help="The layers it is for, separated by commas.", show_default="all"),
    ] = None,
    expires: Expires = None,
    tokens: TokensFile = None,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Make a token and print it, this once."""
    wanted = _layers(layers, root)
    file = _tokens(tokens)
    value = file.create(name, wanted, _seconds(expires))
    _hand_over(value, name, as_json)


@tokens_app.command("list")
@command
def list_tokens(tokens: TokensFile = None, as_json: Json = False) -> None:
    """Show which tokens there are; their values are nowhere."""
    import time

    now = time.time()
    rows = [_described(token, now) for token in _tokens(tokens).tokens()]
    if as_json:
        print_json(rows)
    elif rows:
        heading = ("NAME", "LAYERS", "CREATED", "EXPIRES", "STATE")
        print_table(heading, [tuple(str(row[key.lower()]) for key in heading) for row in rows])
    else:
        print_note("there are no tokens yet; make one: sage token create NAME")


@tokens_app.command()
@command
def rotate(
    name: Annotated[str, typer.Argument(help="The token to replace.")],
    expires: Annotated[
        str | None,
        typer.Option(
            help="How long it is valid: 30m, 12h, 90d, 4w.", show_default="as long as the old one"
        ),
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(
            help="How long the old value still works: 30m, 12h.", show_default="not at all"
        ),
    ] = None,
    tokens: TokensFile = None,
    as_json: Json = False,
) -> None:
    """Replace a token by a new one for the same layers, and print it, this once."""
    value = _tokens(tokens).rotate(name, _seconds(expires), _seconds(overlap) or 0)
    _hand_over(value, name, as_json)


@tokens_app.command()
@command
def revoke(
    name: Annotated[str, typer.Argument(help="The token to take back.")], tokens: TokensFile = None
) -> None:
    """Take a token back: every server that shares the file refuses it from now on."""
    _tokens(tokens).revoke(name)
    print_note(f"{name} is revoked")


def usage(
    log: UsageFile = None,
    top: Annotated[int, typer.Option(help="How many of each to show.", min=1)] = 20,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Show what a server's callers read, looked for in vain, and never read."""
    from dataclasses import asdict

    from sage.knowledge import open_knowledge
    from sage.usage import read_usage, summarise

    if log is None or not log.is_file():
        raise ConfigError(
            "there is no usage log; a server writes one with --usage-log FILE, then: "
            "sage usage --log FILE"
        )
    documents = open_knowledge(settings_at(root)).documents()
    summary = summarise(read_usage(log), [document.path for document in documents], top)
    print_json(asdict(summary)) if as_json else _print_usage(summary, top)


def _print_usage(summary: "UsageSummary", top: int) -> None:
    rows = [("since", summary.since or "nothing was noted yet")]
    rows += [("calls", f"{count} {tool}") for tool, count in sorted(summary.calls.items())]
    rows += [
        ("most used", f"{page.path}  read {page.read}, shown {page.shown}")
        for page in summary.most_used
    ]
    rows.append(("found nothing", f"{summary.empty_searches} searches"))
    rows += [("", f"{count} x {query}") for query, count in summary.empty_queries]
    rows.append(("never read", f"{len(summary.never_read)} pages"))
    rows += [("", path) for path in summary.never_read[:top]]
    print_rows(rows)


def _hand_over(value: str, name: str, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "token": value})
        return
    typer.echo(value)
    print_note("this is the only time it is shown; clients send it as Authorization: Bearer TOKEN")


def _described(token: "Token", now: float) -> dict[str, object]:
    from sage.access import moment

    return {
        "name": token.name,
        "layers": ",".join(token.layers) if token.layers else "all",
        "created": moment(token.created),
        "expires": moment(token.expires) if token.expires else "never",
        "state": "expired" if token.has_expired(now) else "valid",
    }


def _layers(given: str | None, root: Path | None) -> list[str] | None:
    if given is None:
        return None
    wanted = [name.strip() for name in given.split(",") if name.strip()]
    if not wanted:
        raise InvalidInput("--layers names no layer; leave it out for a token for all layers")
    served = _served(root)
    for name in wanted:
        if served is not None and name not in served:
            raise InvalidInput(f"there is no layer {name}; the layers are {', '.join(served)}")
    return wanted


def _served(root: Path | None) -> tuple[str, ...] | None:
    """The layers of the repository; None away from any, where a name cannot be checked."""
    try:
        return settings_at(root).layers
    except ConfigError:
        if root is not None:
            raise
        return None


def _seconds(duration: str | None) -> int | None:
    from sage.access import parse_duration

    return None if duration is None else parse_duration(duration)


def _tokens(given: Path | None) -> "TokenFile":
    from sage.access import TokenFile

    return TokenFile(given or find_token_file())
