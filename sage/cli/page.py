"""The command `page`: the knowledge base in a browser, for one person on this machine."""

import secrets
import webbrowser
from typing import Annotated

import typer

from sage.cli.options import Quiet, Root, Verbose, settings_at, wanted_log_level

_KEY_BYTES = 24


def page(
    root: Root = None,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="NUMBER", min=0, max=65_535, help="Port; 0 takes a free one."
        ),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser.")
    ] = True,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Look at the knowledge base in a browser, on this machine only."""
    settings = settings_at(root, log_level=wanted_log_level())
    from sage.access.options import HttpOptions
    from sage.http.run import serve_http

    key = secrets.token_urlsafe(_KEY_BYTES)

    def tell(origin: str) -> None:
        address = f"{origin}/open/{key}"
        typer.echo(f"The page of {settings.root} is at {address}")
        typer.echo("The address works once; Ctrl-C ends the page.", err=True)
        if browser and not webbrowser.open(address):
            typer.echo("No browser could be opened: open the address yourself.", err=True)

    serve_http(settings, HttpOptions(port=port, page=True, page_key=key), tell)
