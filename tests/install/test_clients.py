"""Each client's file on each system, told on any system."""

from pathlib import PurePosixPath, PureWindowsPath

import pytest

from sage.errors import InvalidInput
from sage.install.clients import Client, Machine, clients, find_client

LINUX = Machine("linux", {}, PurePosixPath("/home/ada"))
MAC = Machine("darwin", {}, PurePosixPath("/Users/ada"))
WINDOWS = Machine(
    "win32",
    {"APPDATA": r"C:\Users\ada\AppData\Roaming"},
    PureWindowsPath(r"C:\Users\ada"),
)
ROOT = PurePosixPath("/repo")

USER_FILES = [
    ("claude-code", ".claude.json", ".claude.json", ".claude.json"),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        r"AppData\Roaming\Claude\claude_desktop_config.json",
    ),
    ("codex", ".codex/config.toml", ".codex/config.toml", r".codex\config.toml"),
    ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", r".cursor\mcp.json"),
    ("gemini", ".gemini/settings.json", ".gemini/settings.json", r".gemini\settings.json"),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        r"AppData\Roaming\Code\User\mcp.json",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        ".codeium/windsurf/mcp_config.json",
        r".codeium\windsurf\mcp_config.json",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        ".config/zed/settings.json",
        r"AppData\Roaming\Zed\settings.json",
    ),
]


@pytest.mark.parametrize(("name", "linux", "mac", "windows"), USER_FILES)
def test_the_users_file_is_right_on_every_system(
    name: str, linux: str, mac: str, windows: str
) -> None:
    client = find_client(name)
    assert str(client.file("user", LINUX, ROOT)) == f"/home/ada/{linux}"
    assert str(client.file("user", MAC, ROOT)) == f"/Users/ada/{mac}"
    root = PureWindowsPath(r"D:\repo")
    assert str(client.file("user", WINDOWS, root)) == rf"C:\Users\ada\{windows}"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("claude-code", ".mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("vscode", ".vscode/mcp.json"),
    ],
)
def test_the_projects_file_lies_in_the_root_and_is_the_usual_one(name: str, path: str) -> None:
    client = find_client(name)
    assert client.scope(None) == "project"
    assert client.file("project", LINUX, ROOT) == ROOT / path


@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("claude-desktop", "XDG_CONFIG_HOME", "Claude/claude_desktop_config.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ],
)
def test_a_variable_moves_the_file(name: str, variable: str, path: str) -> None:
    moved = Machine("linux", {variable: "/x"}, LINUX.home)
    assert str(find_client(name).file("user", moved, ROOT)) == f"/x/{path}"
    relative = Machine("linux", {variable: "x"}, LINUX.home)
    assert find_client(name).file("user", relative, ROOT).is_relative_to("/home/ada")


def test_windows_without_appdata_falls_back_to_its_usual_place() -> None:
    bare = Machine("win32", {}, PureWindowsPath(r"C:\Users\ada"))
    file = find_client("zed").file("user", bare, PureWindowsPath("D:/repo"))
    assert str(file) == r"C:\Users\ada\AppData\Roaming\Zed\settings.json"


def test_an_unknown_client_names_the_nearest_and_a_scope_it_lacks_is_refused() -> None:
    with pytest.raises(InvalidInput, match="did you mean windsurf"):
        find_client("windsrf")
    with pytest.raises(InvalidInput, match="use --scope user"):
        find_client("codex").scope("project")


@pytest.mark.parametrize("client", clients(), ids=lambda client: client.name)
def test_a_clients_own_command_carries_every_word(client: Client) -> None:
    words = ["/py 3", "-m", "sage", "--root", "/a'b"]
    for scope in client.places:
        own = client.own_command("sage", scope, words) if client.own_command else []
        assert not own or all(word in own or word in own[-1] for word in words)


def test_a_command_line_is_quoted_for_its_system() -> None:
    assert LINUX.command_line(["/py", "a b", "it's"]) == "/py 'a b' 'it'\"'\"'s'"
    assert WINDOWS.command_line([r"C:\py.exe", "a b"]) == r'C:\py.exe "a b"'
