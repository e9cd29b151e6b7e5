"""The doctor looks at everything, and at the clients as they really are."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sage.clients import Machine, clients, find_client
from sage.diagnosis import Finding, diagnose
from sage.greeting import Greeting
from sage.registration import Server, carry_out, plan_install, server_for
from tests.conftest import Base

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Doctor:
    """A machine with an empty home; the servers it starts are noted."""

    def __init__(self, base: Base, home: Path) -> None:
        self.base = base
        self.machine = Machine("linux", base.environment, home)
        self.started: list[tuple[list[str], Mapping[str, str]]] = []
        base.write({"core/a.md": "# A\n\nText.\n"})

    def greet(self, words: list[str], variables: Mapping[str, str]) -> Greeting:
        self.started.append((words, variables))
        return Greeting(True, "starts")

    def look(self, working_dir: Path | None = None) -> dict[str, Finding]:
        found = diagnose(None, self.machine, working_dir or self.base.root, self.greet)
        return {finding.name: finding for finding in found}

    def file(self, client: str, scope: str) -> Path:
        return Path(find_client(client).file(scope, self.machine, self.base.root))

    def register(self, client: str, scope: str, server: Server) -> None:
        carry_out(plan_install(find_client(client), self.file(client, scope), server), NOW)


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
    assert f"{sys.executable}" in found["python"].message
    scopes = [f"{client.name} ({scope})" for client in clients() for scope in client.places]
    assert all(found[name].state == "absent" for name in scopes)
    assert doctor.started == []


def test_the_settings_and_the_counter_in_force_are_named(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert "there is no sage.yaml" in doctor.look()["settings"].message
    doctor.base.write({"sage.yaml": "encoding: p50k_base\n"})
    found = doctor.look()
    assert found["settings"].message == str(doctor.base.path("sage.yaml"))
    assert found["tokenizer"].state == "problem"
    assert "estimates" in found["tokenizer"].mend


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
    assert "sage init" in doctor.look()["documents"].mend


def test_registered_servers_are_started(doctor: Doctor) -> None:
    server = server_for(doctor.base.root)
    doctor.register("claude-code", "project", server)
    doctor.register("zed", "user", server_for(Path("/other")))
    found = doctor.look()
    assert found["claude-code (project)"].state == found["zed (user)"].state == "ok"
    assert [words for words, _ in doctor.started] == [
        server.words,
        server_for(Path("/other")).words,
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"command": "/repo/evil"},
        {"args": ["-m", "sage", "serve", "--root", "/elsewhere"]},
        {"env": {"PYTHONPATH": "/repo/evil"}},
        {"env": {"LD_PRELOAD": "/repo/evil.so"}},
    ],
)
def test_a_repository_cannot_make_the_doctor_start_its_program(
    doctor: Doctor, change: dict[str, object]
) -> None:
    server = server_for(doctor.base.root)
    record = {**server.fields(find_client("cursor")), **change}
    file = doctor.file("cursor", "project")
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"sage": record}}), "utf-8")
    finding = doctor.look()["cursor (project)"]
    assert finding.state == "problem"
    assert "not started" in finding.message
    assert doctor.started == []


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


def test_a_real_registration_really_starts(doctor: Doctor) -> None:
    doctor.register("claude-code", "project", server_for(doctor.base.root))
    found = {f.name: f for f in diagnose(None, doctor.machine, doctor.base.root)}
    assert found["claude-code (project)"].state == "ok"
    assert "answers in" in found["claude-code (project)"].message


def test_a_registration_whose_root_is_gone_says_so(doctor: Doctor, tmp_path: Path) -> None:
    doctor.register("codex", "user", server_for(tmp_path / "gone"))
    found = {f.name: f for f in diagnose(None, doctor.machine, doctor.base.root)}
    assert found["codex (user)"].state == "problem"
    assert "exit code 4" in found["codex (user)"].message
    assert "not a folder" in found["codex (user)"].message
