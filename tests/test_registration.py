"""Eight clients' files as people have them: only our server comes and goes."""

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sage import jsonedit
from sage.clients import Client, clients, find_client
from sage.errors import ConfigError, InvalidInput
from sage.registration import (
    Server,
    carry_out,
    is_ours,
    plan_install,
    plan_uninstall,
    registered,
    server_for,
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
    return jsonedit.load_json(text, client.notation)


def install(client: Client, file: Path, server: Server = SERVER) -> None:
    carry_out(plan_install(client, file, server), NOW)


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
    carry_out(plan_uninstall(client, file), NOW)
    assert file.read_bytes() == before


@EVERY
def test_a_second_install_changes_nothing(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(real_text(client), "utf-8")
    install(client, file)
    assert not plan_install(client, file, SERVER).changes


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
    install(client, file, server_for(Path("/old"), interpreter=SERVER.command))
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
        plan_install(client, file, SERVER)
    with pytest.raises(ConfigError, match="cannot be parsed"):
        plan_uninstall(client, file)
    assert file.read_bytes() == before


@EVERY_JSON
@pytest.mark.parametrize("value", ["null", "[]", "3", '"x"', "true"])
def test_servers_that_are_no_object_are_refused(client: Client, value: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(f'{{"{client.holder}": {value}}}', "utf-8")
    with pytest.raises(ConfigError, match=f"{client.holder} is"):
        plan_install(client, file, SERVER)


@EVERY
def test_text_that_is_not_utf8_is_refused(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes("{}".encode("utf-16"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        plan_install(client, file, SERVER)


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
        plan_install(client, file, SERVER)


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
        plan_install(client, file, SERVER)
    with pytest.raises(ConfigError, match="by hand"):
        plan_uninstall(client, file)
    install(client, file, server_for(ROOT, "team-sage"))
    assert set(read(client, file)[client.holder]) == {"sage", "team-sage"}


def test_a_server_reached_over_http_is_not_turned_into_a_command(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text('{"mcpServers": {"sage": {"httpUrl": "http://127.0.0.1/mcp"}}}', "utf-8")
    with pytest.raises(ConfigError, match="over HTTP"):
        plan_install(find_client("gemini"), file, SERVER)


@EVERY
def test_removing_what_is_not_registered_is_no_change(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "config"
    assert not plan_uninstall(client, tmp_path / "missing").changes
    file.write_text(real_text(client), "utf-8")
    assert not plan_uninstall(client, file).changes


def test_our_servers_are_read_back_by_their_names(tmp_path: Path) -> None:
    client, file = find_client("zed"), tmp_path / "config"
    assert registered(client, file) == {}
    file.write_text(real_text(client), "utf-8")
    install(client, file)
    install(client, file, server_for(Path("/b"), "second"))
    assert list(registered(client, file)) == ["sage", "second"]
    assert registered(client, file)["sage"] == SERVER.fields(client)


@EVERY
def test_what_is_shown_is_what_is_written(client: Client, tmp_path: Path) -> None:
    plan = plan_install(client, tmp_path / "config", SERVER)
    assert plan.fragment.encode() == plan.after


def test_the_server_does_not_depend_on_where_it_is_started() -> None:
    assert SERVER.words == [
        "/opt/py/bin/python3", "-P", "-m", "sage", "serve", "--root", str(ROOT),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ключ", 'x"'])
def test_a_name_that_a_client_may_refuse_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a server"):
        server_for(ROOT, name)


@pytest.mark.parametrize(
    ("command", "args", "ours"),
    [
        ("/usr/bin/python3", ["-m", "sage", "serve"], True),
        (r"C:\tools\sage.exe", ["serve"], True),
        ("uvx", ["--from", "sage-kb", "sage", "serve"], True),
        ("python", ["-m", "sagemath", "serve"], False),
        ("sage", ["-n", "jupyter"], False),
        ("python", "-m sage serve", False),
    ],
)
def test_our_server_is_told_from_others(command: str, args: object, ours: bool) -> None:
    assert is_ours({"command": command, "args": args}) is ours
