"""The commands for a team: init, install, uninstall, check and doctor.

Imports stand inside the commands, as in `cli`: none of them pays for another's.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli_options import Json, Root, command, settings_at
from sage.console import print_note
from sage.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

_LEVELS = ("note", "warning", "error")
_FORMATS = ("text", "json", "sarif", "github")

Write = Annotated[bool, typer.Option("--write", help="Write it; without this it is only shown.")]
Name = Annotated[str, typer.Option(help="The name of the server in the client.")]
Scope = Annotated[
    str | None,
    typer.Option(
        help="Whose list of servers: project or user.",
        show_default="project where the client has it",
        autocompletion=lambda: ["project", "user"],
    ),
]


def _client_names() -> list[str]:
    from sage.clients import clients

    return [client.name for client in clients()]


Client = Annotated[
    str,
    typer.Argument(
        help="claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf or zed.",
        autocompletion=_client_names,
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for function in (init, install, uninstall, check, doctor):
        app.command()(command(function))


def init(
    agents: Annotated[
        bool, typer.Option("--agents", help="Also tell agents of it in AGENTS.md or CLAUDE.md.")
    ] = False,
    root: Annotated[
        Path, typer.Option("--root", help="The repository to start in.", show_default="here")
    ] = Path(),
) -> None:
    """Write a small knowledge base to start from; nothing is overwritten."""
    from sage.console_team import print_steps
    from sage.scaffold import write_agent_section, write_knowledge

    place = root.expanduser().absolute()
    steps = list(write_knowledge(place))
    if agents:
        steps += write_agent_section(place)
    print_steps(place, steps)


def install(
    client: Client,
    write: Write = False,
    scope: Scope = None,
    name: Name = "sage",
    root: Root = None,
) -> None:
    """Register the server in a client's own file; shows what it would write first."""
    from sage.clients import Machine, find_client
    from sage.console_team import print_line, print_offer, print_plan, print_written
    from sage.registration import carry_out, is_fleeting, plan_install, server_for

    chosen, machine = find_client(client), Machine.here()
    scope = chosen.scope(scope)
    place = settings_at(root).root
    server = server_for(place, name)
    plan = plan_install(chosen, Path(chosen.file(scope, machine, place)), server)
    if not plan.changes:
        print_line(("Already registered, nothing to change: ", "green"), (str(plan.path), ""))
        return
    if not write:
        print_plan(plan, scope)
        print_offer(_again("install", chosen.name, scope, name, root), plan, scope, server, machine)
    else:
        print_written(plan.path, carry_out(plan, _now()), "Registered")
        print_line((f"Next: {chosen.next_step}; sage doctor tells whether it starts.", ""))
    if scope == "project":
        print_note(
            "the file holds paths of this machine: let git ignore it, each person installs it"
        )
    if is_fleeting(server.command):
        print_note(f"{server.command} may be cleaned away; install sage for good, then repeat this")


def uninstall(
    client: Client,
    write: Write = False,
    scope: Scope = None,
    name: Name = "sage",
    root: Root = None,
) -> None:
    """Take the server out of a client's file again."""
    from sage.clients import Machine, find_client
    from sage.console_team import print_line, print_written
    from sage.registration import carry_out, plan_uninstall

    chosen, machine = find_client(client), Machine.here()
    scopes = [chosen.scope(scope)] if scope else list(chosen.places)
    place = _place(root)
    plans = [plan_uninstall(chosen, Path(chosen.file(s, machine, place)), name) for s in scopes]
    for plan in plans:
        if not plan.changes:
            print_line(("Not registered: ", "dim"), (str(plan.path), ""))
        elif write:
            print_written(plan.path, carry_out(plan, _now()), "Removed")
        else:
            print_line(("Would remove ", ""), (plan.fragment, "bold"), (f" from {plan.path}", ""))
    if not write and any(plan.changes for plan in plans):
        command = _again("uninstall", chosen.name, scope, name, root)
        print_line(("Nothing is written yet. To write it:  ", ""), (f"{command} --write", "bold"))


def check(
    level: Annotated[
        str, typer.Option(help="Show this level and above: note, warning or error.")
    ] = "warning",
    fail_on: Annotated[
        str | None,
        typer.Option(help="Exit with 1 for this level and above, or never.", show_default="error"),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="text, json, sarif or github.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    stale_months: Annotated[
        int | None,
        typer.Option(help="Report pages older than this; 0 for none.", show_default="12"),
    ] = None,
    max_page_tokens: Annotated[
        int | None, typer.Option(help="Largest good page.", show_default="8000")
    ] = None,
    max_section_tokens: Annotated[
        int | None, typer.Option(help="Largest good section.", show_default="1500")
    ] = None,
    list_rules: Annotated[bool, typer.Option("--rules", help="List the rules instead.")] = False,
    root: Root = None,
) -> None:
    """Find what is wrong with the knowledge base: links, names, front matter, secrets, age."""
    from datetime import date

    from sage.checking import check_knowledge
    from sage.console_team import print_report, print_rules
    from sage.reports import render, repository_prefix
    from sage.rules import level_named

    if list_rules:
        print_rules()
        return
    least = level_named(_one_of("--level", level, _LEVELS))
    form = "json" if as_json else _one_of("--format", form, _FORMATS)
    flags = {
        "check.stale_months": stale_months,
        "check.max_page_tokens": max_page_tokens,
        "check.max_section_tokens": max_section_tokens,
        "check.fail_on": fail_on,
    }
    settings = settings_at(root, **flags)
    report = check_knowledge(settings, date.today())  # noqa: DTZ011 - the user's own day
    if form == "text":
        print_report(report, least)
    else:
        prefix = repository_prefix(settings.root, os.environ)
        sys.stdout.write(render(report, form, least, prefix) + "\n")
    failing = settings.check.fail_on
    if failing != "never" and report.at_least(level_named(failing)):
        raise typer.Exit(1)


def doctor(as_json: Json = False, root: Root = None) -> None:
    """Find out why it does not work: root, settings, index, and each client's command."""
    from dataclasses import asdict

    from sage.clients import Machine
    from sage.console import print_json
    from sage.console_team import print_findings
    from sage.diagnosis import diagnose

    findings = list(diagnose(root, Machine.here(), Path.cwd()))
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


def _again(command: str, client: str, scope: str | None, name: str, root: Path | None) -> str:
    """The command that was typed, to be repeated."""
    words = ["sage", command, client]
    words += ["--scope", scope] if scope else []
    words += ["--name", name] if name != "sage" else []
    words += ["--root", str(root)] if root else []
    return " ".join(words)


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value in choices:
        return value
    from sage.schema import nearest

    close = nearest(value, choices)
    raise InvalidInput(f"{option} is {value!r}; use one of {', '.join(choices)}{close}")
