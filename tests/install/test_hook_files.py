"""Hooks in a host's file: written beside those of others, and taken out without a trace."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from sage.errors import ConfigError, InvalidInput
from sage.install.backups import Backups
from sage.install.clients import Machine
from sage.install.hook_files import carry_out, hooks_in, is_ours, plan_hooks, plan_unhook
from sage.install.hook_hosts import HookHost, hook_command, hook_host, hook_hosts
from tests.install.test_registration import NOW

HOSTS = hook_hosts()
MACHINE = Machine("linux", {}, PurePosixPath("/home/u"))
THEIRS = {"type": "command", "command": "lint --fix", "timeout": 5}


def by_name(host: HookHost) -> str:
    return host.name


def event_of(host: HookHost) -> str:
    return host.occasions[-1].event


def backups(path: Path) -> Backups:
    return Backups(path.parent.parent / "cache of the test", "hooks")


def write(path: Path, host: HookHost, command: str = "sage hook --host x") -> bytes:
    plan = plan_hooks(host, path, command, None)
    carry_out(plan, backups(path), NOW)
    return path.read_bytes()


def remove(path: Path, host: HookHost) -> None:
    plan = plan_unhook(host, path, None, backups(path).original(path))
    carry_out(plan, backups(path), NOW)


def files_of_others(host: HookHost) -> list[str]:
    event = event_of(host)
    group = {"matcher": "Bash", "hooks": [THEIRS]}
    tree: dict[str, Any] = {"model": "x", "hooks": {event: [group], "Stop": [group]}}
    spread = json.dumps(tree, indent=2)
    return [
        spread,
        spread + "\n",
        json.dumps(tree, indent="\t"),
        json.dumps(tree),
        spread.replace("\n", "\r\n"),
        json.dumps({"hooks": {"Stop": [group]}, "z": 1}, indent=4),
        json.dumps({"permissions": {"allow": ["Read"]}}, indent=2) + "\n",
        f'{{\n  "hooks": {{ "{event}": [ {json.dumps(group)} , {json.dumps(group)} ] }}\n}}',
        '{"a": "é\\u00e9"}',
        "\ufeff" + spread,
    ]


@pytest.mark.parametrize("host", HOSTS, ids=by_name)
def test_what_was_written_goes_without_a_trace(host: HookHost, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for text in files_of_others(host):
        for name, value in host.beside.items():
            text = text.replace("{", f'{{"{name}": {json.dumps(value)}, ', 1)
        before = text.encode()
        path.write_bytes(before)
        after = write(path, host)
        assert after != before
        assert set(hooks_in(host, path)) == {one.event for one in host.occasions}
        remove(path, host)
        assert path.read_bytes() == before


@pytest.mark.parametrize("host", HOSTS, ids=by_name)
def test_hooks_of_others_stay_as_they_are(host: HookHost, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(files_of_others(host)[0])
    tree = json.loads(write(path, host))
    assert tree["hooks"][event_of(host)][0] == {"matcher": "Bash", "hooks": [THEIRS]}
    assert tree["hooks"]["Stop"] == [{"matcher": "Bash", "hooks": [THEIRS]}]
    assert tree["model"] == "x"


@pytest.mark.parametrize("host", HOSTS, ids=by_name)
def test_writing_twice_changes_nothing_and_another_command_replaces_ours(
    host: HookHost, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    first = write(path, host)
    assert not plan_hooks(host, path, "sage hook --host x", None).changes
    second = write(path, host, "/opt/py -P -m sage hook --host x")
    assert first != second
    assert all(len(commands) == 1 for commands in hooks_in(host, path).values())


def test_a_file_that_was_only_ours_goes_with_the_hooks(tmp_path: Path) -> None:
    host, path = hook_host("vscode"), tmp_path / "sage.json"
    write(path, host)
    remove(path, host)
    assert not path.exists()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sage hook --host codex", True),
        ("/opt/py3 -P -m sage hook --host codex", True),
        ('"C:\\Program Files\\py.exe" -P -m sage hook --host codex', True),
        ("/usr/local/bin/sage hook --host=codex", False),
        ("sage hooks", False),
        ("message hook --host x", False),
        ("git hook run", False),
    ],
)
def test_only_a_command_that_runs_sage_hook_is_ours(command: str, expected: bool) -> None:
    assert is_ours({"command": command}) == expected
    assert is_ours({"hooks": [{"command": command}]}) == expected
    assert not is_ours({"hooks": [{"command": command}, {"command": "lint"}]})


@pytest.mark.parametrize("text", ["[]", '{"hooks": 3}', "{", '{"hooks": {"PreToolUse": {}}}'])
def test_a_file_that_is_not_understood_stays(text: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        plan_hooks(hook_host("claude-code"), path, "sage hook --host x", None)
    assert path.read_text() == text


def test_a_client_without_hooks_is_named() -> None:
    with pytest.raises(InvalidInput, match="zed runs no hooks"):
        hook_host("zed")


def test_the_usual_scope_is_not_committed_and_a_shared_one_is() -> None:
    host = hook_host("claude-code")
    assert host.scope(None, is_shared=False) == "local"
    assert host.scope(None, is_shared=True) == "project"
    root = PurePosixPath("/r")
    assert host.file("project", MACHINE, root) == Path("/r/.claude/settings.json")
    assert host.file("user", MACHINE, root) == Path("/home/u/.claude/settings.json")


def test_a_shared_command_holds_no_path() -> None:
    assert hook_command("codex", MACHINE, is_shared=True) == "sage hook --host codex"
    assert "-P -m sage hook --host codex" in hook_command("codex", MACHINE, is_shared=False)


@pytest.mark.parametrize("host", HOSTS, ids=by_name)
@pytest.mark.parametrize("before", [None, b"", b"{}", b"{ }\n", b'{"hooks": {}}'])
def test_a_file_that_was_absent_or_empty_is_so_again(
    host: HookHost, before: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "made" / "settings.json"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
    write(path, host)
    remove(path, host)
    assert (path.read_bytes() if path.exists() else None) == before
    assert path.parent.exists() is (before is not None)


@pytest.mark.parametrize("host", [one for one in HOSTS if one.end], ids=by_name)
def test_the_reminder_is_written_only_when_asked_for_and_goes_without_a_trace(
    tmp_path: Path, host: HookHost
) -> None:
    for number, text in enumerate(["", "{}\n", *files_of_others(host)]):
        path = tmp_path / str(number) / "hooks.json"
        path.parent.mkdir()
        path.write_text(text, "utf-8", newline="")
        was = path.read_bytes()
        write(path, host)
        assert host.end not in hooks_in(host, path)
        write(path, host.reminding())
        assert host.end in hooks_in(host, path)
        remove(path, host)
        assert path.read_bytes() == was


def test_a_host_that_shows_no_reminder_says_which_do() -> None:
    with pytest.raises(InvalidInput, match="claude-code, codex, gemini, vscode"):
        hook_host("cursor").reminding()
