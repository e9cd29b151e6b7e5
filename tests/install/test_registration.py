"""Eight clients' files as people have them: only our server comes and goes."""

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sage.errors import ConfigError
from sage.install import json_edit
from sage.install.backups import Backups
from sage.install.clients import Client, ServerList, clients, find_client
from sage.install.entries import Server, server_for
from sage.install.registration import (
    carry_out,
    free_name,
    plan_install,
    plan_uninstall,
    registered,
)

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ROOT = Path("/repos/my team")
SERVER = server_for(ROOT, interpreter="/opt/py/bin/python3")
EVERY = pytest.mark.parametrize("client", clients(), ids=lambda client: client.name)
JSON_CLIENTS = [client for client in clients() if client.notation != "toml"]
EVERY_JSON = pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
STRICT = [client for client in clients() if client.notation == "json"]

OTHER = {
    "github": {
        "command": "npx",
        "args": ["-y", "server-github"],
        "env": {"GITHUB_TOKEN": "keep \u2603 me"},
    },
    "files": {"command": "uvx", "args": [], "disabled": False, "timeout": 1.50},
}
CODEX = """\
model = "o4"  # the fast one
notify = ["a",   "b"]

[mcp_servers.github]
command = 'npx'
args = [
  "-y", # yes
  "server-github",
]
[mcp_servers.github.env]
GITHUB_TOKEN = "keep \u2603 me"

[profiles."my profile"]
model="x"
"""


def real_text(client: Client) -> str:
    """A file with other servers, other settings, and for editors comments and odd commas."""
    if client.notation == "toml":
        return CODEX
    tree = {"theme": "dark", client.holder: OTHER, "numStartups": 12345678901234567890}
    text = json.dumps(tree, indent=2, ensure_ascii=False)
    if client.notation != "json":
        text = "// my settings\n" + text.replace('"dark",', '"dark", /* not light */')
    if client.notation == "jsonc":
        text = text.replace("1.5\n    }\n", "1.50, // seconds\n    }, // last\n")
    return text + "\n"


def read(client: Client, file: Path) -> dict[str, Any]:
    text = file.read_bytes().decode("utf-8-sig")
    if client.notation == "toml":
        return tomllib.loads(text)
    return json_edit.load_json(text, client.notation)


def servers(client: Client, file: Path, root: Path = ROOT, scope: str = "user") -> ServerList:
    return ServerList(client, scope, file, (client.holder,), root)


def backups(file: Path) -> Backups:
    return Backups(file.parent / "cache of the test")


def install(client: Client, file: Path, server: Server = SERVER, root: Path = ROOT) -> None:
    carry_out(plan_install(servers(client, file, root), server), backups(file), NOW)


def uninstall(client: Client, file: Path, *names: str) -> None:
    known = backups(file).original(file)
    plan = plan_uninstall(servers(client, file), names or ("sage",), known)
    carry_out(plan, backups(file), NOW)


def is_kept(before: bytes, after: bytes) -> bool:
    """Whether every old byte is still there, in order."""
    rest = iter(after)
    return all(byte in rest for byte in before)


@EVERY
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_lived_in_file_gains_one_server_and_loses_it_again(
    client: Client, ends: str, mark: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    before = mark + real_text(client).replace("\n", ends).encode()
    file.write_bytes(before)
    old = read(client, file)
    install(client, file)
    after = file.read_bytes()
    assert is_kept(before, after)
    assert after.count(b"\n") == after.count(b"\r\n") or ends == "\n"
    new = read(client, file)
    assert new[client.holder].pop("sage") == SERVER.fields(client)
    assert repr(new) == repr(old)
    uninstall(client, file)
    assert file.read_bytes() == before


@EVERY
def test_a_second_install_changes_nothing(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(real_text(client), "utf-8")
    install(client, file)
    assert not plan_install(servers(client, file), SERVER).changes


@EVERY
@pytest.mark.parametrize("text", [None, "", " \n", "\ufeff"])
def test_a_missing_or_empty_file_is_filled(
    client: Client, text: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "config"
    if text is not None:
        file.parent.mkdir()
        file.write_text(text, "utf-8")
    install(client, file)
    assert read(client, file) == {client.holder: {"sage": SERVER.fields(client)}}
    assert file.read_bytes().endswith(b"\n")


@EVERY_JSON
@pytest.mark.parametrize(
    "text", ["{}", "{\n}\n", '{"a":1}', '{"HOLDER":{}}', '{\n\t"HOLDER": {\n\t}\n}', "{ }"]
)
def test_odd_formatting_is_kept(client: Client, text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    before = text.replace("HOLDER", client.holder).encode()
    file.write_bytes(before)
    install(client, file)
    assert is_kept(before, file.read_bytes())
    assert read(client, file)[client.holder] == {"sage": SERVER.fields(client)}


@EVERY
def test_a_moved_root_changes_the_arguments_only(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(real_text(client), "utf-8")
    install(client, file, server_for(Path("/old"), interpreter=SERVER.command), Path("/old"))
    before = file.read_bytes()
    install(client, file)
    assert file.read_bytes() == before.replace(b"/old", b"/repos/my team")


@EVERY_JSON
def test_what_a_person_added_to_our_server_stays(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    ours = {"env": {"SAGE_LOG_LEVEL": "debug"}, **SERVER.fields(client), "disabled": True}
    ours["command"] = "/old/python"
    file.write_text(json.dumps({client.holder: {"sage": ours}}), "utf-8")
    install(client, file)
    assert read(client, file)[client.holder]["sage"] == {**ours, "command": SERVER.command}


@EVERY
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]x",
        '{"a": }',
        "\x00",
        '{"a" 1}',
        "{'a': 1}",
        '{"HOLDER": {"a": {}',
    ],
)
def test_what_cannot_be_parsed_is_refused_and_untouched(
    client: Client, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(text.replace("HOLDER", client.holder), "utf-8")
    before = file.read_bytes()
    with pytest.raises(ConfigError, match="cannot be parsed"):
        plan_install(servers(client, file), SERVER)
    with pytest.raises(ConfigError, match="cannot be parsed"):
        plan_uninstall(servers(client, file), ["sage"])
    assert file.read_bytes() == before


@EVERY_JSON
@pytest.mark.parametrize("value", ["null", "[]", "3", '"x"', "true"])
def test_servers_that_are_no_object_are_refused(client: Client, value: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(f'{{"{client.holder}": {value}}}', "utf-8")
    with pytest.raises(ConfigError, match=f"{client.holder} is"):
        plan_install(servers(client, file), SERVER)


@EVERY
def test_text_that_is_not_utf8_is_refused(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes("{}".encode("utf-16"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        plan_install(servers(client, file), SERVER)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((client.name, '{"a": 1,}') for client in STRICT),
        *((client.name, '// no\n{"a": 1}') for client in STRICT),
        ("gemini", '// yes\n{"a": 1,}'),
    ],
)
def test_a_file_that_its_client_could_not_read_is_refused(
    name: str, text: str, tmp_path: Path
) -> None:
    client, file = find_client(name), tmp_path / "config"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="cannot be parsed: a com"):
        plan_install(servers(client, file), SERVER)


@EVERY
def test_a_server_of_the_same_name_that_is_not_ours_is_left_alone(
    client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    theirs = {"command": "sagemath", "args": ["--mcp"]}
    text = json.dumps({client.holder: {"sage": theirs}})
    if client.notation == "toml":
        text = f'[{client.holder}.sage]\ncommand = "sagemath"\nargs = ["--mcp"]\n'
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="starts something else; choose another name"):
        plan_install(servers(client, file), SERVER)
    with pytest.raises(ConfigError, match="by hand"):
        plan_uninstall(servers(client, file), ["sage"])
    install(client, file, server_for(ROOT, "team-sage"))
    assert set(read(client, file)[client.holder]) == {"sage", "team-sage"}


def test_a_server_reached_over_http_is_not_turned_into_a_command(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text('{"mcpServers": {"sage": {"httpUrl": "http://127.0.0.1/mcp"}}}', "utf-8")
    with pytest.raises(ConfigError, match="over HTTP"):
        plan_install(servers(find_client("gemini"), file), SERVER)


@EVERY
def test_removing_what_is_not_registered_is_no_change(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    assert not plan_uninstall(servers(client, tmp_path / "missing"), ["sage"]).changes
    file.write_text(real_text(client), "utf-8")
    assert not plan_uninstall(servers(client, file), ["sage"]).changes


def test_our_servers_are_read_back_by_their_names(tmp_path: Path) -> None:
    client, file = find_client("zed"), tmp_path / "config"
    assert registered(servers(client, file)) == {}
    file.write_text(real_text(client), "utf-8")
    install(client, file)
    install(client, file, server_for(Path("/b"), "second"), Path("/b"))
    assert list(registered(servers(client, file))) == ["sage", "second"]
    assert registered(servers(client, file))["sage"] == SERVER.fields(client)


@EVERY
def test_what_is_shown_is_what_is_written(client: Client, tmp_path: Path) -> None:
    plan = plan_install(servers(client, tmp_path / "config"), SERVER)
    assert plan.fragment.encode() == plan.after


ORIGINALS = [None, b"", b" \n", b"\xef\xbb\xbf", b"\n\n"]


@EVERY
@pytest.mark.parametrize("before", ORIGINALS)
def test_an_uninstall_leaves_a_file_that_was_absent_or_empty_as_it_was(
    client: Client, before: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "made" / "below" / "config"
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_bytes(before)
    kept = Backups(tmp_path / "cache")
    carry_out(plan_install(servers(client, file), SERVER), kept, NOW)
    second = server_for(ROOT, "second", SERVER.command)
    carry_out(plan_install(servers(client, file), second), kept, NOW)
    for name in ("sage", "second"):
        plan = plan_uninstall(servers(client, file), [name], kept.original(file))
        carry_out(plan, kept, NOW)
    assert (file.read_bytes() if file.exists() else None) == before
    assert (tmp_path / "made").exists() is (before is not None)
    assert kept.original(file) is None


@EVERY_JSON
@pytest.mark.parametrize(
    "before", ["{}", "{\n}\n", '{"a":1}', '{"HOLDER":{}}', "{ }", '{"a": 1}\n']
)
def test_an_uninstall_leaves_odd_formatting_as_it_was(
    client: Client, before: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(before.replace("HOLDER", client.holder), "utf-8")
    data = file.read_bytes()
    install(client, file)
    uninstall(client, file)
    assert file.read_bytes() == data


def test_what_a_person_wrote_since_stays(tmp_path: Path) -> None:
    client, file = find_client("cursor"), tmp_path / "config"
    install(client, file)
    file.write_text(file.read_text("utf-8").replace("{\n", "{\n  // mine\n", 1), "utf-8")
    uninstall(client, file)
    assert file.read_text("utf-8") == "{\n  // mine\n}\n"


def test_copies_lie_in_the_cache_and_nobody_else_reads_them(tmp_path: Path) -> None:
    client, file = find_client("codex"), tmp_path / "config"
    file.write_text('token = "secret"\n', "utf-8")
    kept = Backups(tmp_path / "cache")
    copy = carry_out(plan_install(servers(client, file), SERVER), kept, NOW)
    assert copy is not None
    assert copy.read_text("utf-8") == 'token = "secret"\n'
    assert copy.stat().st_mode & 0o077 == copy.parent.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "config"]


def test_a_second_repository_gets_a_name_of_its_own(tmp_path: Path) -> None:
    client, file = find_client("codex"), tmp_path / "config"
    first, second, third = (tmp_path / name for name in ("one", "My Repo!", "x/my-repo"))
    for root in (first, second, third):
        root.mkdir(parents=True)
    names = []
    for root in (first, second, third, second):
        name = free_name(servers(client, file, root))
        install(client, file, server_for(root, name, SERVER.command), root)
        names.append(name)
    assert names == ["sage", "sage-my-repo", "sage-my-repo-2", "sage-my-repo"]


def test_the_entry_of_another_repository_is_not_replaced_under_its_name(tmp_path: Path) -> None:
    client, file = find_client("codex"), tmp_path / "config"
    install(client, file, server_for(tmp_path, interpreter=SERVER.command), tmp_path)
    with pytest.raises(ConfigError, match=r"serves .*; choose another name with --name"):
        plan_install(servers(client, file), SERVER)


def test_claude_code_keeps_one_persons_servers_of_a_repository_apart(tmp_path: Path) -> None:
    client, file = find_client("claude-code"), tmp_path / "config"
    before = '{"projects": {"/elsewhere": {"mcpServers": {}}}}\n'
    file.write_text(before, "utf-8")
    local = ServerList(client, "local", file, ("projects", str(ROOT), "mcpServers"), ROOT)
    kept = backups(file)
    carry_out(plan_install(local, SERVER), kept, NOW)
    assert list(registered(local)) == ["sage"]
    assert registered(servers(client, file)) == {}
    carry_out(plan_uninstall(local, ["sage"], kept.original(file)), kept, NOW)
    assert file.read_text("utf-8") == before
