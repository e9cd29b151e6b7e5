"""The programs that can use a server, and where each keeps its list of servers.

Platform, environment and home are given, so every system's paths can be told on any of them.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Literal

from sage.errors import InvalidInput, did_you_mean
from sage.install.json_parser import Dialect

WORKSPACE = "${workspaceFolder}"
"""What editors replace by the folder that is open."""

Notation = Dialect | Literal["toml"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What the places depend on."""

    platform: str
    environment: Mapping[str, str]
    home: PurePath

    @classmethod
    def here(cls) -> "Machine":
        """The machine this runs on."""
        return cls(sys.platform, dict(os.environ), Path.home())

    def path(self, text: str) -> PurePath:
        """A path in the way of this platform."""
        return PureWindowsPath(text) if self.platform == "win32" else PurePosixPath(text)

    def folder(self, variable: str, otherwise: PurePath) -> PurePath:
        """The folder that a variable names, if it is absolute."""
        given = self.path(self.environment.get(variable, ""))
        return given if given.is_absolute() else otherwise

    @property
    def settings(self) -> PurePath:
        """Where programs with windows keep a user's settings."""
        if self.platform == "win32":
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    def command_line(self, words: Sequence[str]) -> str:
        """Words as one would type them."""
        if self.platform == "win32":
            return subprocess.list2cmdline(words)
        return shlex.join(words)


Place = Callable[[Machine, PurePath], PurePath]


@dataclass(frozen=True, slots=True)
class Client:
    """A program that starts servers: where it lists them, in which form."""

    name: str
    title: str
    notation: Notation
    holder: str
    """The member of the file that holds the servers by name."""
    places: Mapping[str, Place]
    """The file of each scope; the first is the usual one."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """What it wants of every server besides command and arguments."""
    own_command: Callable[[str, str, Sequence[str]], list[str]] | None = None
    """Its own way to do this, from a name, a scope and a command."""
    own_caution: str = ""
    """What its own command was seen to do wrong."""
    next_step: str = ""
    shared_args: tuple[str, ...] | None = None
    """How an entry without paths tells the root; None where no file in a repository is read."""
    starts_in_root: bool = False
    """Whether it starts servers in the repository, so that they find the root by themselves."""

    def scope(self, asked: str | None) -> str:
        """The scope that is meant.

        Raises:
            InvalidInput: the client has no such scope.
        """
        if asked is None:
            return next(iter(self.places))
        if asked not in self.places:
            raise InvalidInput(
                f"{self.title} has no scope {asked!r}; use --scope {' or '.join(self.places)}"
            )
        return asked

    def file(self, scope: str, machine: Machine, root: PurePath) -> PurePath:
        """The file that lists the servers of a scope."""
        return self.places[scope](machine, root)

    def servers(self, scope: str, machine: Machine, root: Path) -> "ServerList":
        """The list of servers of a scope."""
        # Claude Code keeps what is one person's in one repository below `projects`.
        above = ("projects", str(root)) if scope == "local" else ()
        path = Path(self.file(scope, machine, root))
        return ServerList(self, scope, path, (*above, self.holder), root)


@dataclass(frozen=True, slots=True)
class ServerList:
    """The servers that a client has in one scope."""

    client: Client
    scope: str
    path: Path
    holder: tuple[str, ...]
    """The names that lead to the list in the file."""
    root: Path
    """The repository that it is looked at from."""

    @property
    def repository(self) -> Path | None:
        """The repository that the file belongs to; None for a file of the user's own."""
        return self.root if self.scope == "project" else None

    @property
    def is_for_root(self) -> bool:
        """Whether only sessions in the repository see the list."""
        return self.scope != "user"


def find_client(name: str) -> Client:
    """The client of that name.

    Raises:
        InvalidInput: there is none; the message names the nearest.
    """
    known = {client.name: client for client in clients()}
    if name.casefold() in known:
        return known[name.casefold()]
    raise InvalidInput(
        f"{name!r} is not a client; use one of {', '.join(known)}{did_you_mean(name, known)}"
    )


def clients() -> tuple[Client, ...]:
    """Every client, in alphabetical order."""
    restart = "restart it; the tools are then listed under sage"
    return (
        Client(
            "claude-code",
            "Claude Code",
            "json",
            "mcpServers",
            {"project": _in_root(".mcp.json"), "user": _claude_user, "local": _claude_user},
            {"type": "stdio"},
            lambda name, scope, words: ["claude", "mcp", "add", "-s", scope, name, "--", *words],
            next_step="start claude in the repository and approve the server once; /mcp lists it",
            shared_args=(),
            starts_in_root=True,
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "json",
            "mcpServers",
            {"user": lambda machine, _: machine.settings / "Claude/claude_desktop_config.json"},
            next_step="quit it and " + restart,
        ),
        Client(
            "codex",
            "Codex",
            "toml",
            "mcp_servers",
            {"user": lambda m, _: m.folder("CODEX_HOME", m.home / ".codex") / "config.toml"},
            own_command=lambda name, _, words: ["codex", "mcp", "add", name, "--", *words],
            next_step="start codex; /mcp lists it",
            starts_in_root=True,
        ),
        Client(
            "cursor",
            "Cursor",
            "jsonc",
            "mcpServers",
            {"project": _in_root(".cursor/mcp.json"), "user": _in_home(".cursor/mcp.json")},
            next_step="open the repository in it and switch the server on under Settings, MCP",
            shared_args=("--root", WORKSPACE),
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "commented",
            "mcpServers",
            {
                "project": _in_root(".gemini/settings.json"),
                "user": _in_home(".gemini/settings.json"),
            },
            own_command=lambda name, scope, words: (
                ["gemini", "mcp", "add", "-s", scope, name, words[0], "--", *words[1:]]
            ),
            own_caution="version 0.61 dropped the other servers of a folder that it did not trust",
            next_step="start gemini in the repository; /mcp lists it",
            shared_args=(),
            starts_in_root=True,
        ),
        Client(
            "vscode",
            "VS Code",
            "jsonc",
            "servers",
            {
                "project": _in_root(".vscode/mcp.json"),
                "user": lambda machine, _: machine.settings / "Code/User/mcp.json",
            },
            {"type": "stdio"},
            _add_to_code,
            next_step="open the repository in it, run MCP: List Servers and start the server",
            shared_args=("--root", WORKSPACE),
        ),
        Client(
            "windsurf",
            "Windsurf",
            "json",
            "mcpServers",
            {"user": _in_home(".codeium/windsurf/mcp_config.json")},
            next_step="refresh the servers in the Cascade panel, or " + restart,
        ),
        Client(
            "zed",
            "Zed",
            "jsonc",
            "context_servers",
            {"user": _zed_user},
            next_step="the agent panel's settings list the server at once",
        ),
    )


def _in_root(path: str) -> Place:
    return lambda _, root: root / path


def _in_home(path: str) -> Place:
    return lambda machine, _: machine.home / path


def _claude_user(machine: Machine, _: PurePath) -> PurePath:
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


def _zed_user(machine: Machine, _: PurePath) -> PurePath:
    if machine.platform == "win32":
        return machine.settings / "Zed" / "settings.json"
    if machine.platform == "darwin":
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.settings / "zed" / "settings.json"


def _add_to_code(name: str, scope: str, words: Sequence[str]) -> list[str]:
    if scope != "user":
        return []  # `code --add-mcp` knows the user's profile only
    server = {"name": name, "command": words[0], "args": list(words[1:])}
    return ["code", "--add-mcp", json.dumps(server, ensure_ascii=False)]
