"""The clients that run hooks: where each lists them, and how a hook of ours is written there."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from sage.errors import ConfigError, InvalidInput
from sage.install.clients import Machine, Place
from sage.install.json_parser import Dialect

_SESSION_SECONDS = 20
_EVENT_SECONDS = 10
_EDITS = "Read|Edit|Write|MultiEdit|NotebookEdit"


@dataclass(frozen=True, slots=True)
class Occasion:
    """An event at which a host runs the hook, and the tools it is narrowed to."""

    event: str
    seconds: int = _EVENT_SECONDS
    tools: str = ""


@dataclass(frozen=True, slots=True)
class HookHost:
    """A client that runs hooks: where it lists them, and how one is written."""

    name: str
    dialect: Dialect
    places: Mapping[str, Place]
    """The file of each scope; the first is the usual one."""
    occasions: tuple[Occasion, ...]
    written: Callable[[Occasion, str], dict[str, Any]]
    """A list element from an occasion and a command."""
    beside: Mapping[str, Any]
    """What else a new file needs."""
    next_step: str
    has_own_file: bool = False
    """Whether it reads a file that holds our hooks only."""
    end: str = ""
    """Its event at the end of a turn, where it shows a line to the person; empty for none."""

    def reminding(self) -> "HookHost":
        """The same with the reminder at the end of a session.

        Raises:
            InvalidInput: it has no event for that.
        """
        if not self.end:
            known = ", ".join(host.name for host in hook_hosts() if host.end)
            raise InvalidInput(f"{self.name} shows no reminder at the end; these do: {known}")
        return replace(self, occasions=(*self.occasions, Occasion(self.end)))

    def scope(self, asked: str | None, *, is_shared: bool) -> str:
        """The scope that is meant.

        Raises:
            InvalidInput: the client has no such scope for hooks.
        """
        if asked is None:
            return "project" if is_shared else next(iter(self.places))
        if asked not in self.places:
            known = " and ".join(self.places)
            raise InvalidInput(f"the hooks of {self.name} have only the scopes {known}")
        return asked

    def file(self, scope: str, machine: Machine, root: PurePath) -> Path:
        """The file that lists the hooks of a scope."""
        return Path(self.places[scope](machine, root))


def hook_host(client: str) -> HookHost:
    """The client of that name, if it runs hooks.

    Raises:
        InvalidInput: it does not.
    """
    known = {host.name: host for host in hook_hosts()}
    if client in known:
        return known[client]
    raise InvalidInput(f"{client} runs no hooks that take context; use one of {', '.join(known)}")


def hook_command(host: str, machine: Machine, *, is_shared: bool) -> str:
    """The line that a host runs: this interpreter's, or one that works where `sage` is installed.

    Raises:
        ConfigError: the interpreter is unknown.
    """
    words = ["hook", "--host", host]
    if is_shared:
        return " ".join(["sage", *words])
    if not sys.executable:
        raise ConfigError("the path of the Python interpreter is unknown; use --shared")
    return machine.command_line([sys.executable, "-P", "-m", "sage", *words])


def _group(occasion: Occasion, command: str) -> dict[str, Any]:
    hook = {"type": "command", "command": command, "timeout": occasion.seconds}
    matcher = {"matcher": occasion.tools} if occasion.tools else {}
    return {**matcher, "hooks": [hook]}


def _gemini_group(occasion: Occasion, command: str) -> dict[str, Any]:
    group = _group(occasion, command)
    hook = {"name": "sage", **group["hooks"][0], "timeout": occasion.seconds * 1_000}
    return {**group, "hooks": [hook]}


def _flat(occasion: Occasion, command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": occasion.seconds}


def _cursor_hook(occasion: Occasion, command: str) -> dict[str, Any]:
    matcher = {"matcher": occasion.tools} if occasion.tools else {}
    return {"command": command, **matcher, "timeout": occasion.seconds}


def _at_root(path: str) -> Place:
    return lambda _, root: root / path


def _at_home(variable: str, folder: str, name: str) -> Place:
    def place(machine: Machine, _: PurePath) -> PurePath:
        home = machine.home / folder
        return (machine.folder(variable, home) if variable else home) / name

    return place


def hook_hosts() -> tuple[HookHost, ...]:
    """Every client that runs hooks, in alphabetical order."""
    session = Occasion("SessionStart", _SESSION_SECONDS)
    return (
        HookHost(
            "claude-code",
            "json",
            {
                "local": _at_root(".claude/settings.local.json"),
                "project": _at_root(".claude/settings.json"),
                "user": _at_home("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            },
            (session, Occasion("UserPromptSubmit"), Occasion("PreToolUse", tools=_EDITS)),
            _group,
            {},
            "start claude in the repository; /hooks lists them",
            end="Stop",
        ),
        HookHost(
            "codex",
            "json",
            {
                "project": _at_root(".codex/hooks.json"),
                "user": _at_home("CODEX_HOME", ".codex", "hooks.json"),
            },
            (
                session,
                Occasion("UserPromptSubmit"),
                Occasion("PreToolUse", tools="apply_patch|Edit|Write"),
            ),
            _group,
            {},
            "start codex in the repository and trust them under /hooks",
            end="Stop",
        ),
        HookHost(
            "cursor",
            "json",
            {
                "project": _at_root(".cursor/hooks.json"),
                "user": _at_home("", ".cursor", "hooks.json"),
            },
            (
                Occasion("sessionStart", _SESSION_SECONDS),
                Occasion("postToolUse", tools="Read|Write|Edit"),
            ),
            _cursor_hook,
            {"version": 1},
            "open the repository in it; Settings, Hooks lists them",
        ),
        HookHost(
            "gemini",
            "commented",
            {
                "project": _at_root(".gemini/settings.json"),
                "user": _at_home("", ".gemini", "settings.json"),
            },
            (
                session,
                Occasion("BeforeAgent"),
                Occasion("AfterTool", tools="read_file|write_file|replace"),
            ),
            _gemini_group,
            {},
            "start gemini in the repository; /hooks lists them",
            end="AfterAgent",
        ),
        HookHost(
            "vscode",
            "json",
            {
                "project": _at_root(".github/hooks/sage.json"),
                "user": _at_home("", ".copilot", "hooks/sage.json"),
            },
            (session, Occasion("PreToolUse")),
            _flat,
            {},
            "open the repository in it; the output channel of hooks shows them run",
            has_own_file=True,
            end="Stop",
        ),
    )
