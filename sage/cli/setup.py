"""The commands that set things up and find out why they do not work.

`init`, `install`, `uninstall` and `doctor`. Imports stand inside the commands: none of them pays
for another's.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli.hooks import install_hooks, uninstall_hooks, user_backups
from sage.cli.options import Json, Quiet, Root, Verbose, settings_at
from sage.cli.setup_output import (
    print_findings,
    print_offer,
    print_plan,
    print_proposal,
    print_steps,
    print_written,
)
from sage.cli.terminal import print_json, print_line, print_note
from sage.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from sage.install.clients import Client as ClientProgram
    from sage.install.clients import ServerList
    from sage.install.entries import Server

Write = Annotated[bool, typer.Option("--write", help="Write it; without this it is only shown.")]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What the client calls the server.",
        show_default="sage, or sage-FOLDER where sage is another repository's",
    ),
]
Scope = Annotated[
    str | None,
    typer.Option(
        metavar="SCOPE",
        help="Whose list of servers: project, user, or Claude Code's local.",
        show_default="project where the client has it",
        autocompletion=lambda: ["project", "user", "local"],
    ),
]


def _client_names() -> list[str]:
    from sage.install.clients import clients

    return [client.name for client in clients()]


Client = Annotated[
    str,
    typer.Argument(
        metavar="CLIENT",
        help="claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf or zed.",
        autocompletion=_client_names,
        show_default=False,
    ),
]


def init(
    agents: Annotated[
        bool, typer.Option("--agents", help="Also tell agents about it in AGENTS.md or CLAUDE.md.")
    ] = False,
    adopt: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Serve pages that are there already: shows which folders become which layers.",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="With --from: write the mapping to sage.yaml.")
    ] = False,
    root: Annotated[
        Path,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="The repository to start in.",
            show_default="the folder you are in",
        ),
    ] = Path(),
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Write a few pages to start from; nothing is overwritten."""
    from sage.install.scaffold import write_agent_section, write_knowledge

    place = root.expanduser().absolute()
    if adopt:
        _adopt(place, adopt, write)
        return
    if write:
        raise InvalidInput("--write belongs to --from FOLDER; sage init alone writes at once")
    steps = list(write_knowledge(place))
    if agents:
        steps += write_agent_section(place)
    print_steps(place, steps)


def _adopt(place: Path, folders: list[str], write: bool) -> None:
    """Show the mapping of a repository's own pages, and write it when told to."""
    from sage.install.adopt import propose, write_config

    proposal = propose(place, folders)
    print_proposal(proposal)
    if write:
        path = write_config(place, proposal)
        print_line(("written  ", "green"), (path.name, ""))
    else:
        print_note("nothing is written yet; add --write")


def install(
    client: Client,
    write: Write = False,
    scope: Scope = None,
    shared: Annotated[
        bool,
        typer.Option("--shared", help="An entry to commit: no path of your machine is in it."),
    ] = False,
    package: Annotated[
        str | None,
        typer.Option(
            "--uvx",
            metavar="PACKAGE",
            help="With --shared: let uvx install it from this wheel, git address or package.",
        ),
    ] = None,
    name: Name = None,
    hooks: Annotated[
        bool,
        typer.Option("--hooks", help="Write the hooks that deliver unasked, not the server."),
    ] = False,
    remind: Annotated[
        bool,
        typer.Option("--remind", help="With --hooks: remind of notes when a session ends."),
    ] = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Connect a client: show what its file gains, or write it."""
    if remind and not hooks:
        raise InvalidInput("--remind adds a hook; use it with --hooks")
    if hooks:
        install_hooks(client, write, scope, shared, root, remind)
    else:
        _install_server(client, write, scope, shared, package, name, root)


def _install_server(
    client: str,
    write: bool,
    scope: str | None,
    shared: bool,
    package: str | None,
    name: str | None,
    root: Path | None,
) -> None:
    from sage.install.clients import Machine, find_client
    from sage.install.entries import server_for, shared_server
    from sage.install.registration import carry_out, free_name, plan_install

    chosen, machine = find_client(client), Machine.here()
    scope = _scope(chosen, scope, shared, package)
    servers = chosen.servers(scope, machine, settings_at(root).root)
    called = name or free_name(servers)
    server = shared_server(chosen, called, package) if shared else server_for(servers.root, called)
    plan = plan_install(servers, server)
    if not plan.changes:
        print_line(("Already registered, nothing to change: ", "green"), (str(plan.path), ""))
        return
    if write:
        print_written(plan.path, carry_out(plan, user_backups("servers"), _now()), "Registered")
        print_line((f"Next: {chosen.next_step}; sage doctor tells whether it starts.", ""))
    else:
        print_plan(plan)
        words = ["--shared"] * shared + (["--uvx", package] if package else [])
        again = _again("install", chosen.name, scope, name, root, *words)
        print_offer(again, plan, server, machine)
    _tell_of(server, servers, shared, name)


def uninstall(
    client: Client,
    write: Write = False,
    scope: Scope = None,
    name: Name = None,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Remove the server and the hooks from a client's files."""
    from sage.install.clients import Machine, find_client
    from sage.install.registration import carry_out, leads_to, plan_uninstall, registered

    chosen, machine, backups = find_client(client), Machine.here(), user_backups("servers")
    place = _place(root)
    changed = had_hooks = uninstall_hooks(chosen.name, write, scope, place)
    known = [one for one in chosen.places if scope in (None, one)]
    for one in known if known or had_hooks else [chosen.scope(scope)]:
        servers = chosen.servers(one, machine, place)
        ours = [key for key, entry in registered(servers).items() if leads_to(entry, servers)]
        plan = plan_uninstall(servers, [name] if name else ours, backups.original(servers.path))
        changed = changed or plan.changes
        if not plan.changes:
            print_line(("Not registered: ", "dim"), (f"{plan.path} ({one} scope)", ""))
        elif write:
            print_written(plan.path, carry_out(plan, backups, _now()), "Removed")
        else:
            print_line(("Would remove ", ""), (plan.fragment, "bold"), (f" from {plan.path}", ""))
    if not write and changed:
        command = _again("uninstall", chosen.name, scope, name, root)
        print_line(("Nothing is written yet. To write it:  ", ""), (f"{command} --write", "bold"))


def doctor(
    start_all: Annotated[
        bool,
        typer.Option(
            "--start-all",
            help="Also start the commands that files of the repository name; read them first.",
        ),
    ] = False,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Find out why something does not work, and what to do."""
    from dataclasses import asdict

    from sage.install.clients import Machine
    from sage.install.doctor import diagnose

    findings = list(diagnose(root, Machine.here(), Path.cwd(), start_all=start_all))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_findings(findings)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)


def _place(root: Path | None) -> Path:
    """The root, or where one would be: what is gone can still be unregistered."""
    try:
        return settings_at(root).root
    except ConfigError:
        return (root or Path()).expanduser().absolute()


def _now() -> "datetime":
    from datetime import datetime

    return datetime.now().astimezone()


def _scope(client: "ClientProgram", scope: str | None, shared: bool, package: str | None) -> str:
    if package and not shared:
        raise InvalidInput("--uvx is for an entry that is shared; add --shared")
    if shared and scope not in (None, "project"):
        raise InvalidInput(f"--shared writes the project's file; leave out --scope {scope}")
    if shared and client.shared_args is None:
        return next(iter(client.places))  # it has no file to share, and will say so
    return client.scope("project" if shared else scope)


def _tell_of(server: "Server", servers: "ServerList", shared: bool, name: str | None) -> None:
    """What is worth knowing of an entry beside what it says."""
    from sage.install.entries import SERVER_NAME, is_fleeting

    if shared:
        needed = "uv" if server.command == "uvx" else "sage"
        print_note(f"commit {servers.path.name}; everyone who uses it needs {needed} on the PATH")
    elif servers.scope == "project":
        print_note(
            "the file holds paths of this machine: let git ignore it, or use --shared and commit it"
        )
    if name is None and server.name != SERVER_NAME:
        print_note(f"the name {SERVER_NAME} is taken there, so this one is called {server.name}")
    if is_fleeting(server.command):
        print_note(
            f"{server.command} is in a temporary place; install sage permanently, then repeat this"
        )


def _again(
    command: str, client: str, scope: str | None, name: str | None, root: Path | None, *more: str
) -> str:
    """The command that was typed, to be repeated."""
    words = ["sage", command, client, *more]
    words += ["--scope", scope] if scope and "--shared" not in more else []
    words += ["--name", name] if name else []
    words += ["--root", str(root)] if root else []
    return shlex.join(words)
