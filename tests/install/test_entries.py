"""What an entry of ours is, whoever wrote it."""

from pathlib import Path
from typing import Any

import pytest

from sage.errors import InvalidInput
from sage.install.clients import clients, find_client
from sage.install.entries import is_ours, root_of, server_for, shared_server

ROOT = Path("/repos/my team")
SERVER = server_for(ROOT, interpreter="/opt/py/bin/python3")


def test_the_server_does_not_depend_on_where_it_is_started() -> None:
    assert SERVER.words == [
        "/opt/py/bin/python3", "-P", "-m", "sage", "serve", "--root", str(ROOT),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ключ", 'x"'])
def test_a_name_that_a_client_may_refuse_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a server"):
        server_for(ROOT, name)


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "/usr/bin/python3", "args": ["-m", "sage", "serve"]}, True),
        ({"command": r"C:\tools\sage.exe", "args": ["serve"]}, True),
        ({"command": "uvx", "args": ["--from", "sage-kb", "sage", "serve"]}, True),
        ({"command": "uvx", "args": ["sage-kb", "serve", "--root", "/a"]}, True),
        ({"command": "env", "args": ["SAGE_LOG_LEVEL=info", "sage", "serve"]}, True),
        ({"command": "sh", "args": ["-c", "cd /repo && exec sage serve"]}, True),
        ({"command": "sh", "args": ["-c", ".venv/bin/python -m sage serve"]}, True),
        ({"command": {"path": "sage", "args": ["serve"]}}, True),
        ({"command": "python", "args": ["-m", "sagemath", "serve"]}, False),
        ({"command": "sage", "args": ["-n", "jupyter"]}, False),
        ({"command": "serve", "args": ["sage"]}, False),
        ({"command": "python", "args": "-m sage serve"}, False),
        ({"url": "https://sage.example/mcp"}, False),
    ],
)
def test_our_server_is_told_from_others(entry: dict[str, Any], ours: bool) -> None:
    assert is_ours(entry) is ours


@pytest.mark.parametrize(
    ("entry", "root"),
    [
        ({"command": "sage", "args": ["serve", "--root", "/a b"]}, "/a b"),
        ({"command": "sage", "args": ["serve", "--root=/a"]}, "/a"),
        ({"command": "sage", "args": ["serve"], "env": {"SAGE_ROOT": "/e"}}, "/e"),
        ({"command": "sage", "args": ["serve"]}, None),
        ({"command": "sage", "args": ["serve", "--root"]}, None),
    ],
)
def test_the_root_of_an_entry_is_read(entry: dict[str, Any], root: str | None) -> None:
    assert root_of(entry) == root


def test_a_shared_entry_holds_no_path_of_a_machine() -> None:
    able = [client for client in clients() if client.shared_args is not None]
    assert [client.name for client in able] == ["claude-code", "cursor", "gemini", "vscode"]
    for client in able:
        words = shared_server(client).words
        assert not any(Path(word).is_absolute() for word in words)
        assert words[:2] == ["sage", "serve"]
    assert shared_server(find_client("cursor")).args[-1] == "${workspaceFolder}"


def test_a_shared_entry_can_come_through_uvx() -> None:
    server = shared_server(find_client("gemini"), package="git+https://git.example/sage")
    assert server.words == ["uvx", "--from", "git+https://git.example/sage", "sage", "serve"]


def test_a_client_without_a_file_in_the_repository_says_which_have_one() -> None:
    with pytest.raises(InvalidInput, match=r"Zed reads no file in the repository.*claude-code"):
        shared_server(find_client("zed"))
