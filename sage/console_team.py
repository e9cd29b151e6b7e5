"""What a person sees of the team's commands. In a pipe everything is plain text."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sage.console import is_quiet, print_rows
from sage.problems import Level
from sage.reports import mending, place, summary
from sage.rules import rules
from sage.scrub import clean

# What one command prints about is no reason for another to import it.
if TYPE_CHECKING:
    from sage.checking import Report
    from sage.clients import Machine
    from sage.diagnosis import Finding, State
    from sage.registration import Plan, Server
    from sage.scaffold import Step

_LEVEL_STYLES: dict[Level, str] = {"error": "bold red", "warning": "yellow", "note": "blue"}
_STATE_STYLES: "dict[State, str]" = {"ok": "green", "problem": "bold red", "absent": "dim"}
_STATE_WORDS: "dict[State, str]" = {"ok": "ok", "problem": "PROBLEM", "absent": "-"}
Piece = tuple[str, str]


def print_steps(root: Path, steps: Iterable["Step"]) -> None:
    """What `sage init` wrote and kept, and what to do next."""
    if is_quiet():
        return
    for step in steps:
        reason = f" ({step.reason})" if step.reason else ""
        print_line(
            (f"{step.action:<9}", "dim" if step.action == "kept" else "green"),
            (step.path + reason, ""),
        )
    at_root = f" --root {root}" if root != Path.cwd() else ""
    print_line(("", ""))
    print_line(("Next:", "bold"))
    print_line((f'  sage search "how do we decide"{at_root}', ""))
    print_line((f"  sage install claude-code --write{at_root}", ""))


def print_plan(plan: "Plan", scope: str) -> None:
    """What `sage install` would write, without anything else that the file holds."""
    state = "new file" if plan.before is None else "only this is added or changed"
    print_line(
        (f"{plan.client.title}, {scope} scope: ", "bold"),
        (str(plan.path), ""),
        (f" ({state})", "dim"),
    )
    print_line(("", ""))
    for line in plan.fragment.splitlines():
        print_line((f"  {line}", "cyan"))
    print_line(("", ""))


def print_offer(
    command: str, plan: "Plan", scope: str, server: "Server", machine: "Machine"
) -> None:
    """How to go on after a look: our own command, and the client's where it has one."""
    print_line(("Nothing is written yet. To write it:  ", ""), (f"{command} --write", "bold"))
    make = plan.client.own_command
    own = make(server.name, scope, server.words) if make else []
    if own:
        print_line(
            (f"Or with {plan.client.title}'s own command:  ", ""),
            (machine.command_line(own), "bold"),
        )
        if plan.client.own_caution:
            print_line((f"  (beware: {plan.client.own_caution})", "yellow"))


def print_written(path: Path, copy: Path | None, done: str) -> None:
    """That a file was changed, and where its old bytes are."""
    before = f" (before: {copy.name})" if copy else ""
    print_line((f"{done}: ", "green"), (f"{path}{before}", ""))


def print_report(report: "Report", level: Level) -> None:
    """Problems with their places, how to mend them, and the sums."""
    shown = report.at_least(level)
    for problem in shown:
        print_line(
            (f"{place(problem)}: ", "bold"),
            (problem.level, _LEVEL_STYLES[problem.level]),
            (f": {problem.message} ", ""),
            (f"[{problem.rule}]", "dim"),
        )
    if is_quiet():
        return
    if shown:
        print_line(("", ""))
    for line in mending(shown):
        print_line((line, "dim"))
    print_line((summary(report, shown), "bold"))


def print_rules() -> None:
    """Every rule with its level and meaning."""
    rows = [(name, f"{rule.level}: {rule.about}") for name, rule in sorted(rules().items())]
    print_rows(rows)


def print_findings(findings: Sequence["Finding"]) -> None:
    """What the doctor looked at, and what to do about what is wrong."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print_line(
            (f"{_STATE_WORDS[finding.state]:<8}", _STATE_STYLES[finding.state]),
            (f"{finding.name:<{width}}  ", "bold"),
            (finding.message, "dim" if finding.state == "absent" else ""),
        )
        if finding.mend and finding.state == "problem":
            print_line((" " * (width + 10), ""), (f"to mend it: {finding.mend}", "yellow"))


def print_line(*pieces: Piece) -> None:
    """Pieces of text with their styles in one line; a path is never broken over two."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        sys.stdout.write("".join(clean(text) for text, _ in pieces) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble(*((clean(text), style) for text, style in pieces))
    Console(highlight=False).print(line, soft_wrap=True)
