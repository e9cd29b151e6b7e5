"""The doctor runs the hooks that a host would run, and shows what they bring."""

import json
from pathlib import Path

from sage.install.hook_trial import try_hook
from tests.commands import Run, run
from tests.conftest import Base

__all__ = ["run"]
SCOPED = "---\napplies_to: ['db/**/*.sql']\n---\n# Migrations\n\nNullable first.\n"


def test_each_event_brings_something_of_the_base(base: Base) -> None:
    knowledge = base.open({"core/a.md": SCOPED})
    documents = knowledge.documents()
    trial = try_hook("PreToolUse", "x -m sage hook", "claude-code", base.root, documents)
    assert "Nullable first." in trial.text
    assert trial.in_short.startswith("PreToolUse brings ")


def test_the_words_of_a_file_are_never_run(base: Base, tmp_path: Path) -> None:
    base.write({"core/a.md": SCOPED})
    trap = tmp_path / "trap"
    trial = try_hook("SessionStart", f"touch {trap}", "claude-code", base.root, ())
    assert not trap.exists()
    assert not trial.failure


def test_the_doctor_shows_what_an_agent_would_receive(base: Base, run: Run) -> None:
    path = base.root / ".codex" / "hooks.json"
    assert run("install", "codex", "--hooks", "--write")[0] == 0
    assert path.exists()
    out = run("doctor")[1]
    assert "SessionStart brings" in out
    assert "| This repository has a knowledge base of 2 pages." in out
    findings = json.loads(run("doctor", "--json")[1])
    assert [one["state"] for one in findings if one["name"].startswith("hooks")] == ["ok"] * 3
    run("uninstall", "codex", "--write")
    assert not path.exists()


def test_nothing_is_written_before_it_is_asked_for(base: Base, run: Run) -> None:
    code, out, _ = run("install", "claude-code", "--hooks", "--shared")
    assert code == 0
    assert '"command": "sage hook --host claude-code"' in out
    assert not (base.root / ".claude").exists()
