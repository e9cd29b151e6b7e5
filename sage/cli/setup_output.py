"""What a person sees of `init`, `install` and `doctor`: steps, plans and findings."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sage.cli.output import BLANK
from sage.cli.terminal import is_quiet, print_line
from sage.errors import counted

if TYPE_CHECKING:
    from sage.install.adopt import Proposal
    from sage.install.client_check import Finding
    from sage.install.clients import Machine
    from sage.install.entries import Server
    from sage.install.registration import RegistrationPlan
    from sage.install.scaffold import Step

_STATE_STYLES = {"ok": "green", "problem": "bold red", "absent": "dim", "unchecked": "yellow"}
_STATE_WORDS = {"ok": "ok", "problem": "PROBLEM", "absent": "-", "unchecked": "not run"}
_ADVICE = {"problem": "to fix it", "unchecked": "to go on"}


def print_steps(root: Path, steps: Iterable["Step"]) -> None:
    """What `sage init` wrote and kept, and what to do next."""
    if is_quiet():
        return
    for step in steps:
        reason = f" ({step.reason})" if step.reason else ""
        style = "dim" if step.action == "kept" else "green"
        print_line((f"{step.action:<9}", style), (step.path + reason, ""), indent=9)
    at_root = f" --root {root}" if root != Path.cwd() else ""
    print_line(BLANK)
    print_line(("Next:", "bold"))
    print_line((f'  sage search "how do we decide"{at_root}', ""))
    print_line((f"  sage install claude-code --write{at_root}", ""))


def print_proposal(proposal: "Proposal") -> None:
    """Which folders `sage init --from` would map to which layers, with their pages."""
    for one in proposal.folders:
        count = f" ({counted(one.pages, 'page')})"
        print_line((f"{one.layer:<12}", "bold"), (one.folder, ""), (count, "dim"))
    if proposal.other_pages:
        others = counted(proposal.other_pages, "page")
        print_line((f"not served: {others} of kinds that are not read (.rst, .txt, …)", "yellow"))
    if proposal.host_places:
        more = " ".join(f"--from {one}" for one in proposal.host_places)
        print_line((f"not mapped: what agents' hosts read by themselves; add {more}", "yellow"))
    print_line(BLANK)
    for line in proposal.config.splitlines():
        print_line((line, ""))


def print_plan(plan: "RegistrationPlan") -> None:
    """What `sage install` would write, without anything else that the file holds."""
    state = "new file" if plan.before is None else "only this is added or changed"
    print_line(
        (f"{plan.client.title}, {plan.servers.scope} scope: ", "bold"),
        (str(plan.path), ""),
        (f" ({state})", "dim"),
        indent=2,
    )
    print_line(BLANK)
    for line in plan.fragment.splitlines():
        print_line((f"  {line}", "cyan"), indent=2)
    print_line(BLANK)


def print_offer(
    command: str, plan: "RegistrationPlan", server: "Server", machine: "Machine"
) -> None:
    """How to go on after a look: our own command, and the client's where it has one."""
    print_line(("Nothing is written yet. To write it:  ", ""), (f"{command} --write", "bold"))
    make = plan.client.own_command
    own = make(server.name, plan.servers.scope, server.words) if make else []
    if own:
        print_line(
            (f"Or with {plan.client.title}'s own command:  ", ""),
            (machine.command_line(own), "bold"),
        )
        if plan.client.own_caution:
            print_line((f"  (beware: {plan.client.own_caution})", "yellow"), indent=2)


def print_written(path: Path, copy: Path | None, done: str) -> None:
    """That a file was changed, and where its old bytes are."""
    before = f" (as it was: {copy})" if copy else ""
    print_line((f"{done}: ", "green"), (f"{path}{before}", ""))


def print_findings(findings: Sequence["Finding"]) -> None:
    """What the doctor looked at, and what to do about what is wrong."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print_line(
            (f"{_STATE_WORDS[finding.state]:<8}", _STATE_STYLES[finding.state]),
            (f"{finding.name:<{width}}  ", "bold"),
            (finding.message, "dim" if finding.state == "absent" else ""),
            indent=10,
        )
        if finding.fix and finding.state in ("problem", "unchecked"):
            print_line((f"          {_ADVICE[finding.state]}: {finding.fix}", "yellow"), indent=12)
        for line in finding.shown:
            print_line((f"          | {line}", "dim"), indent=12)
