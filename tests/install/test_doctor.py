"""The doctor looks at everything, and at the clients as they really are."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from sage import token_counter
from sage.install.backups import Backups
from sage.install.client_check import Finding
from sage.install.clients import Machine, clients, find_client
from sage.install.doctor import diagnose
from sage.install.entries import Server, server_for, shared_server
from sage.install.handshake import Greeting, greet
from sage.install.registration import carry_out, plan_install
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Doctor:
    """A machine with an empty home; the servers it starts are noted."""

    def __init__(self, base: Base, home: Path) -> None:
        self.base = base
        self.machine = Machine("linux", base.environment, home)
        self.started: list[list[str]] = []
        self.folders: list[Path | None] = []
        base.write({"core/a.md": "# A\n\nText.\n"})

    def greet(self, words: list[str], _: Mapping[str, str], folder: Path | None) -> Greeting:
        self.started.append(words)
        self.folders.append(folder)
        return Greeting(True, "starts")

    def look(self, working_dir: Path | None = None, start_all: bool = False) -> dict[str, Finding]:
        place = working_dir or self.base.root
        found = diagnose(None, self.machine, place, self.greet, start_all)
        return {finding.name: finding for finding in found}

    def write(self, client: str, scope: str, entry: object, name: str = "sage") -> Finding:
        """Let a client's file hold an entry, and look at it."""
        file = self.file(client, scope)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({find_client(client).holder: {name: entry}}), "utf-8")
        title = f"{client} ({scope})" if name == "sage" else f"{client} ({scope}, {name})"
        return self.look()[title]

    def file(self, client: str, scope: str) -> Path:
        return Path(find_client(client).file(scope, self.machine, self.base.root))

    def register(self, client: str, scope: str, server: Server) -> None:
        root = Path(server.args[-1])
        servers = find_client(client).servers(scope, self.machine, root)
        carry_out(plan_install(servers, server), Backups(self.base.root.parent / "kept"), NOW)


@pytest.fixture
def doctor(base: Base, tmp_path: Path) -> Doctor:
    return Doctor(base, tmp_path / "home")


def test_everything_is_looked_at(doctor: Doctor) -> None:
    found = doctor.look()
    assert found["root"].message == f"{doctor.base.root} (by the working directory)"
    assert found["layer core"].message == "1 document"
    assert found["layer practices"].state == "absent"
    assert found["tokenizer"].message == "cl100k_base"
    assert found["index"].state == "ok"
    assert found["index"].message.endswith(" on disk")
    assert f"{sys.executable}" in found["python"].message
    scopes = [f"{client.name} ({scope})" for client in clients() for scope in client.places]
    assert all(found[name].state == "absent" for name in scopes)
    assert doctor.started == []


def test_the_settings_and_the_counter_in_force_are_named(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_counter, "bundled", lambda: None)
    assert "there is no sage.yaml" in doctor.look()["settings"].message
    doctor.base.write({"sage.yaml": "ignore: []\n"})
    found = doctor.look()
    assert found["settings"].message == str(doctor.base.path("sage.yaml"))
    assert found["tokenizer"].state == "problem"
    assert "estimates" in found["tokenizer"].fix


def test_a_recipe_that_no_server_starts_with_is_a_problem(doctor: Doctor) -> None:
    doctor.base.write({"sage.yaml": "recipes: {onboarding: {extends: planning}}\n"})
    found = doctor.look()["settings"]
    assert found.state == "problem"
    assert "recipes.onboarding.extends" in found.message
    assert "correct" in found.fix


def test_without_a_root_the_clients_are_still_looked_at(doctor: Doctor, tmp_path: Path) -> None:
    doctor.register("codex", "user", server_for(doctor.base.root))
    found = doctor.look(tmp_path)
    assert found["root"].state == "problem"
    assert "sage init" in found["root"].message
    assert found["codex (user)"].state == "ok"


def test_an_empty_base_and_a_broken_page_are_problems(doctor: Doctor) -> None:
    doctor.base.write({"core/a.md": b"\xff\xff"})
    assert doctor.look()["problems"].state == "problem"
    doctor.base.path("core/a.md").unlink()
    assert "sage init" in doctor.look()["documents"].fix


def test_registered_servers_are_started(doctor: Doctor, tmp_path: Path) -> None:
    server = server_for(doctor.base.root)
    doctor.register("claude-code", "project", server)
    doctor.register("zed", "user", server_for(tmp_path))
    found = doctor.look()
    assert found["claude-code (project)"].state == found["zed (user)"].state == "ok"
    assert f"it serves {tmp_path}" in found["zed (user)"].message
    assert doctor.started == [server.words, server_for(tmp_path).words]


@pytest.mark.parametrize(
    "change",
    [
        {"command": sys.executable, "args": ["-c", "evil", "-m", "sage", "serve"]},
        {"args": ["-m", "sage", "serve"]},
        {"env": {"PYTHONPATH": "/repo/evil"}},
        {"env": {"LD_PRELOAD": "/repo/evil.so"}},
        {"env": {"SAGE_CONFIG": "/repo/evil.yaml"}},
    ],
)
def test_a_repository_cannot_make_the_doctor_start_its_program(
    doctor: Doctor, change: dict[str, object]
) -> None:
    server = server_for(doctor.base.root)
    entry = {**server.fields(find_client("cursor")), **change}
    finding = doctor.write("cursor", "project", entry)
    assert finding.state == "unchecked"
    assert "not started" in finding.message
    assert "--start-all" in finding.fix
    assert doctor.started == []
    assert doctor.look(start_all=True)["cursor (project)"].state == "ok"


def test_a_program_in_the_repository_is_not_one_that_we_would_write(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = doctor.base.root / "bin" / "sage"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    entry = shared_server(find_client("cursor")).fields(find_client("cursor"))
    assert doctor.write("cursor", "project", entry).state == "unchecked"
    assert doctor.started == []


@pytest.mark.parametrize("client", ["claude-code", "vscode"])
def test_a_shared_entry_is_started_as_its_client_does(
    doctor: Doctor, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "sage"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    entry = shared_server(find_client(client)).fields(find_client(client))
    assert doctor.write(client, "project", entry).state == "ok"
    root = str(doctor.base.root)
    named = ["--root", root] if client == "vscode" else []
    assert doctor.started == [[str(program), "serve", *named]]
    assert doctor.folders == [None if named else doctor.base.root]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"command": "/gone/python", "args": ["-m", "sage", "serve"]},
            "/gone/python does not exist",
        ),
        ({"command": "sage-kb", "args": ["serve"]}, "sage-kb is not on the PATH"),
        ({"command": "sh", "args": ["-c", "sage serve", "--root", "/gone"]}, "root /gone is not a"),
        ({"command": "sh", "args": ["-c", "sage serve"]}, "Windsurf does not start it in a repo"),
    ],
)
def test_a_cause_is_named_with_its_fix(
    doctor: Doctor, entry: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    finding = doctor.write("windsurf", "user", entry)
    assert finding.state == "problem"
    assert words in finding.message
    assert finding.fix == "sage install windsurf --scope user --write"
    assert doctor.started == []


def test_what_claude_mcp_add_writes_is_seen(doctor: Doctor) -> None:
    words = {"type": "stdio", "command": "sh", "args": ["-c", "sage serve"], "env": {}}
    projects = {str(doctor.base.root): {"mcpServers": {"kb": words}}}
    file = doctor.file("claude-code", "local")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"projects": projects}), "utf-8")
    assert doctor.look()["claude-code (local, kb)"].state == "ok"
    assert doctor.folders == [doctor.base.root]


def test_an_entry_that_only_another_folder_sees_is_named(doctor: Doctor) -> None:
    entry = server_for(doctor.base.root).fields(find_client("claude-code"))
    file = doctor.file("claude-code", "local")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"projects": {"/else": {"mcpServers": {"sage": entry}}}}), "utf-8")
    finding = doctor.look()["claude-code (local)"]
    assert finding.state == "unchecked"
    assert "sessions that start in /else only" in finding.message


def test_a_server_over_http_is_named_and_not_tried(doctor: Doctor) -> None:
    finding = doctor.write("gemini", "user", {"httpUrl": "https://kb.example/mcp"}, "team-sage")
    assert finding.state == "unchecked"
    assert "https://kb.example/mcp" in finding.message


@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_a_large_file_of_a_client_is_read_at_once(doctor: Doctor, client: str) -> None:
    entry = server_for(doctor.base.root).fields(find_client(client))
    history = [{"display": "x" * 90, "at": number} for number in range(250_000)]
    file = doctor.file(client, "user")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"history": history, "mcpServers": {"sage": entry}}), "utf-8")
    assert file.stat().st_size > 30_000_000
    assert doctor.look()[f"{client} (user)"].state == "ok"


def test_a_large_file_with_comments_is_refused_at_once(doctor: Doctor) -> None:
    file = doctor.file("cursor", "user")
    file.parent.mkdir(parents=True)
    file.write_text("// mine\n[" + "1," * 10_000_000 + "1]", "utf-8")
    finding = doctor.look()["cursor (user)"]
    assert finding.state == "problem"
    assert "larger than 8 MB" in finding.message


def test_a_file_that_cannot_be_parsed_is_a_problem(doctor: Doctor) -> None:
    file = doctor.file("windsurf", "user")
    file.parent.mkdir(parents=True)
    file.write_text("{", "utf-8")
    finding = doctor.look()["windsurf (user)"]
    assert finding.state == "problem"
    assert "cannot be parsed" in finding.message


def test_another_program_of_our_name_is_not_started(doctor: Doctor) -> None:
    file = doctor.file("gemini", "user")
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {"sage": {"command": "sagemath"}}}', "utf-8")
    assert doctor.look()["gemini (user)"].state == "absent"
    assert doctor.started == []


def test_a_server_of_another_name_is_started_too(doctor: Doctor) -> None:
    doctor.register("zed", "user", server_for(doctor.base.root, "second"))
    assert doctor.look()["zed (user, second)"].state == "ok"


def test_a_real_registration_really_starts(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = partial(greet, timeout_seconds=PATIENCE_SECONDS)
    monkeypatch.setattr("sage.install.doctor.greet", patient)
    doctor.register("claude-code", "project", server_for(doctor.base.root))
    found = {f.name: f for f in diagnose(None, doctor.machine, doctor.base.root)}
    assert found["claude-code (project)"].state == "ok"
    assert "answers in" in found["claude-code (project)"].message


def test_a_registration_whose_root_is_gone_says_so(doctor: Doctor, tmp_path: Path) -> None:
    doctor.register("codex", "user", server_for(tmp_path / "gone"))
    found = {f.name: f for f in diagnose(None, doctor.machine, doctor.base.root)}
    assert found["codex (user)"].state == "problem"
    assert "gone is not a folder; was the repository moved?" in found["codex (user)"].message


def test_a_server_that_fails_says_what_it_said(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    doctor.register("codex", "user", server_for(tmp_path / "empty"))
    found = {f.name: f for f in diagnose(None, doctor.machine, doctor.base.root)}
    assert found["codex (user)"].state == "problem"
    assert "exit code 4" in found["codex (user)"].message
    assert "holds no .knowledge" in found["codex (user)"].message
