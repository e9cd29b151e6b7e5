"""Hooks on the command line: the command that hosts run, and how it gets into their files.

`sage.__main__` answers `sage hook` before anything here is imported; what stands here is its help,
and its way when the application is called from Python.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli.options import Quiet, Root, Verbose, settings_at
from sage.cli.setup_output import print_written
from sage.cli.terminal import print_line, print_note
from sage.paths import find_cache_dir

if TYPE_CHECKING:
    from sage.install.backups import Backups


def hook(
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="Who asks: claude-code, codex, cursor, gemini or vscode."
        ),
    ],
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Answer one event of a host, read from stdin.

    It prints the host's envelope with what the event needs, or nothing. It always ends with 0:
    what went wrong is in hooks/hooks.log of the cache folder.
    """
    from sage.hooks.command import main

    main(["--host", host, *(["--root", str(root)] if root else [])])


def user_backups(kind: str) -> "Backups":
    """Where copies of clients' files are kept."""
    from sage.install.backups import Backups

    return Backups(find_cache_dir(os.environ), kind)


def install_hooks(
    client: str,
    write: bool,
    scope: str | None,
    shared: bool,
    root: Path | None,
    remind: bool = False,
) -> None:
    """Show what a host's file gains, or write it."""
    from datetime import datetime

    from sage.install.clients import Machine, find_client
    from sage.install.hook_files import carry_out, plan_hooks
    from sage.install.hook_hosts import hook_command, hook_host

    title, host, machine = find_client(client).title, hook_host(client.casefold()), Machine.here()
    host = host.reminding() if remind else host
    place = settings_at(root).root
    scope = host.scope(scope, is_shared=shared)
    command = hook_command(host.name, machine, is_shared=shared)
    file = host.file(scope, machine, place)
    plan = plan_hooks(host, file, command, None if scope == "user" else place)
    if not plan.changes:
        print_line(("Already there, nothing to change: ", "green"), (str(plan.path), ""))
        return
    if write:
        print_written(
            plan.path,
            carry_out(plan, user_backups("hooks"), datetime.now().astimezone()),
            "Written",
        )
        print_line((f"Next: {host.next_step}; sage doctor shows what they deliver.", ""))
    else:
        print_line((f"{title}, hooks, {scope} scope: ", "bold"), (str(plan.path), ""))
        print_line(("", ""))
        for line in plan.fragment.splitlines():
            print_line((f"  {line}", "cyan"))
        print_line(("", ""))
        print_line(("Nothing is written yet; --write writes it.", ""))
    if scope == "project" and not shared:
        print_note("the file holds paths of this machine: let git ignore it, or use --shared")
    if shared:
        print_note(
            "once it is committed, sage runs for everybody who works here; see docs/hooks.md"
        )


def uninstall_hooks(client: str, write: bool, scope: str | None, place: Path) -> bool:
    """Take our hooks out of a client's files; whether there were any."""
    from datetime import datetime

    from sage.install.clients import Machine
    from sage.install.hook_files import carry_out, plan_unhook
    from sage.install.hook_hosts import hook_hosts

    machine = Machine.here()
    found = False
    for host in hook_hosts():
        scopes = host.places if host.name == client else ()
        for one in scopes:
            if scope not in (None, one):
                continue
            root = None if one == "user" else place
            file = host.file(one, machine, place)
            plan = plan_unhook(host, file, root, user_backups("hooks").original(file))
            if not plan.changes:
                continue
            found = True
            if write:
                print_written(
                    plan.path,
                    carry_out(plan, user_backups("hooks"), datetime.now().astimezone()),
                    "Removed",
                )
            else:
                print_line(
                    ("Would remove ", ""), (plan.fragment, "bold"), (f" from {plan.path}", "")
                )
    return found
