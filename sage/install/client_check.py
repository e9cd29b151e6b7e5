"""Whether the entries of one client's list really start our server, and if not, why.

What the user's own files say is started. A command in a repository's file is started only when it
is one that we would write, or when the user says so: a cloned repository must not run code.
"""

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sage.errors import ConfigError
from sage.install.clients import WORKSPACE, ServerList
from sage.install.entries import (
    SERVER_NAME,
    Entry,
    address_of,
    is_ours,
    root_of,
    server_for,
    shared_server,
    variables_of,
    words_of,
)
from sage.install.handshake import Greeting
from sage.install.registration import entries_in, leads_to, other_projects

State = Literal["ok", "problem", "absent", "unchecked"]
Greet = Callable[[list[str], Mapping[str, str], Path | None], Greeting]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    message: str
    fix: str = ""
    shown: tuple[str, ...] = ()
    """Lines that a reader should see as they are."""


def check_client(servers: ServerList, start: Greet, start_all: bool) -> Iterator[Finding]:
    """Look at every entry of a list that leads to us."""
    client, path = servers.client, servers.path
    name = f"{client.name} ({servers.scope})"
    install = f"sage install {client.name} --scope {servers.scope} --write"
    try:
        entries = entries_in(servers)
        elsewhere = other_projects(servers)
    except ConfigError as error:
        yield Finding(name, "problem", str(error))
        return
    found = 0
    for key, entry in entries.items():
        if not is_ours(entry) and not (SERVER_NAME in key and address_of(entry)):
            continue
        found += 1
        title = name if key == SERVER_NAME else f"{client.name} ({servers.scope}, {key})"
        again = install if key == SERVER_NAME else f"{install} --name {key}"
        yield _check(title, servers, entry, again, start, start_all)
    for folder in elsewhere:
        yield Finding(
            f"{client.name} ({servers.scope})",
            "unchecked",
            f"{path}: registered for sessions that start in {folder} only",
            f"for sessions in this repository: {install}",
        )
    if not found and not elsewhere:
        yield Finding(name, "absent", f"not registered in {path}", install)


def _check(
    title: str, servers: ServerList, entry: Entry, again: str, start: Greet, start_all: bool
) -> Finding:
    path = servers.path
    if address_of(entry):
        where = f"{path}: connects to {address_of(entry)}"
        return Finding(title, "unchecked", f"{where}; a server over HTTP is not tried from here")
    cause = _cause(servers, entry)
    if cause:
        return Finding(title, "problem", f"{path}: {cause}", again)
    if servers.repository is not None and not start_all and not _is_as_written(servers, entry):
        said = shlex.join(words_of(entry))
        return Finding(
            title,
            "unchecked",
            f"{path}: not started, as the command of a repository's file can do anything: {said}",
            "look at the command; if you trust it: sage doctor --start-all",
        )
    answer = _started(servers, entry, start)
    if not answer.is_ready:
        return Finding(title, "problem", f"{path}: {answer.message}", again)
    root = root_of(entry)
    other = "" if leads_to(entry, servers) or root is None else f"; it serves {root}"
    return Finding(title, "ok", f"{path}: {answer.message}{other}")


def _started(servers: ServerList, entry: Entry, start: Greet) -> Greeting:
    """Start a server as its client does."""
    root = str(servers.root)
    words = [word.replace(WORKSPACE, root) for word in words_of(entry)]
    words[0] = shutil.which(words[0]) or words[0]
    variables = {
        name: value.replace(WORKSPACE, root) for name, value in variables_of(entry).items()
    }
    folder = servers.root if servers.client.starts_in_root and servers.root.is_dir() else None
    return start(words, variables, folder)


def _cause(servers: ServerList, entry: Entry) -> str:
    """Why a server cannot start, as far as that is seen without starting it."""
    command, root = words_of(entry)[0], root_of(entry)
    if shutil.which(command) is None:
        if "/" not in command and "\\" not in command:
            return f"the command {command} is not on the PATH"
        if not Path(command).exists():
            return f"{command} does not exist; was its environment moved or removed?"
        return f"{command} is not a program that can be run"
    if root is not None and root != WORKSPACE and not Path(root).expanduser().is_dir():
        return f"its root {root} is not a folder; was the repository moved?"
    if root is None and not servers.is_for_root and not servers.client.starts_in_root:
        return f"it names no root, and {servers.client.title} does not start it in a repository"
    return ""


def _is_as_written(servers: ServerList, entry: Entry) -> bool:
    """Whether a repository's file holds our own words: anything else could start any program."""
    ours = [server_for(servers.root).words]
    if servers.client.shared_args is not None:
        ours.append(shared_server(servers.client).words)
    if words_of(entry) not in ours or variables_of(entry):
        return False
    program = shutil.which(words_of(entry)[0])
    return program is not None and not Path(program).is_relative_to(servers.root)
