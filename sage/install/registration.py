"""Our entry in one client's file: what would change, and the change itself.

Only the entry of one name is touched. What cannot be parsed, or edited with certainty, is refused
with the reason, and the file stays as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sage.atomic import read_bytes, replace_bytes
from sage.errors import ConfigError
from sage.install import json_edit, toml_edit
from sage.install.backups import Backups, Original, remove_empty_folders
from sage.install.client_file import edited, entries_of, entry_named, holder_in, load
from sage.install.clients import WORKSPACE, Client, ServerList
from sage.install.entries import SERVER_NAME, Entry, Server, address_of, is_ours, root_of
from sage.install.file_text import decoded, encoded


@dataclass(frozen=True, slots=True)
class RegistrationPlan:
    """A change of one file: its bytes before and after, None where there is no file."""

    servers: ServerList
    before: bytes | None
    after: bytes | None
    fragment: str
    """What will stand in the file, or stands there and goes."""
    is_first: bool = False
    """Whether no entry of ours is in the file yet."""
    is_last: bool = False
    """Whether none will be there any longer."""

    @property
    def path(self) -> Path:
        return self.servers.path

    @property
    def client(self) -> Client:
        return self.servers.client

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def entries_in(servers: ServerList) -> dict[str, Entry]:
    """Every entry of a list, by its name there.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    data = read_bytes(servers.path, servers.repository)
    if data is None:
        return {}
    holder = holder_in(load(servers, decoded(servers.path, data)), servers)
    return {name: entry for name, entry in holder.items() if isinstance(entry, dict)}


def registered(servers: ServerList) -> dict[str, Entry]:
    """The entries of a list that lead to this program, by their names there.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    return {name: entry for name, entry in entries_in(servers).items() if is_ours(entry)}


def other_projects(servers: ServerList) -> list[str]:
    """The other folders for which Claude Code has an entry that serves this repository.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    if servers.scope != "local":
        return []
    data = read_bytes(servers.path)
    projects = {} if data is None else load(servers, decoded(servers.path, data)).get("projects")
    if not isinstance(projects, dict):
        return []
    return [
        folder
        for folder, project in projects.items()
        if folder != str(servers.root)
        for entry in entries_of(project, servers.client.holder)
        if is_ours(entry) and root_of(entry) is not None and leads_to(entry, servers)
    ]


def leads_to(entry: Entry, servers: ServerList) -> bool:
    """Whether an entry serves the repository that its list is looked at from."""
    root = root_of(entry)
    if root is None or root == WORKSPACE:
        return servers.is_for_root
    with suppress(OSError, ValueError, RuntimeError):
        return Path(root).expanduser().resolve() == servers.root.resolve()
    return False


def free_name(servers: ServerList) -> str:
    """What our entry is called: as it is already, `sage`, or after the repository.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    known = entries_in(servers)
    for name, entry in known.items():
        if is_ours(entry) and leads_to(entry, servers):
            return name
    return next(
        name
        for name in _names(servers.root)
        if name not in known or (is_ours(known[name]) and not _is_alive(known[name]))
    )


def plan_install(servers: ServerList, server: Server) -> RegistrationPlan:
    """What registering a server would change.

    Raises:
        ConfigError: the file cannot be edited with certainty; the message says why.
    """
    before = read_bytes(servers.path, servers.repository)
    text = decoded(servers.path, before or b"")
    tree = load(servers, text)
    known = entry_named(tree, servers, server.name)
    if known is not None:
        _refuse_others(servers, server.name, known)
    after = edited(servers, text, server.name, server.fields(servers.client))
    shown = fragment(servers, server)
    return RegistrationPlan(
        servers, before, encoded(before, after), shown, is_first=not _is_in(tree, servers)
    )


def plan_uninstall(
    servers: ServerList, names: Sequence[str], original: Original | None = None
) -> RegistrationPlan:
    """What removing entries would change.

    Args:
        original: the file as it was before our first entry, where that is known.

    Raises:
        ConfigError: the file cannot be edited with certainty; the message says why.
    """
    before = read_bytes(servers.path, servers.repository)
    if before is None:
        return RegistrationPlan(servers, None, None, "")
    text = decoded(servers.path, before)
    going = []
    for name in names:
        known = entry_named(load(servers, text), servers, name)
        if known is None:
            continue
        if not is_ours(known):
            raise ConfigError(_not_ours(servers, name, "remove it by hand if you mean it"))
        text = edited(servers, text, name, None)
        going.append(f"{'.'.join(servers.holder)}.{name}")
    if not going:
        return RegistrationPlan(servers, before, before, "")
    is_last = not _is_in(load(servers, text), servers)
    after: bytes | None = encoded(before, text)
    if original is not None:
        after = _without_traces(servers, text, before, original)
    return RegistrationPlan(servers, before, after, ", ".join(going), is_last=is_last)


def carry_out(plan: RegistrationPlan, backups: Backups, now: datetime) -> Path | None:
    """Write the change; the path of the dated copy, if there was a file before.

    Raises:
        ConfigError: the file is no longer what it was, or something cannot be written.
    """
    path = plan.path
    copy = None if plan.before is None else backups.copy(path, plan.before, now)
    if plan.is_first:
        backups.remember(path)
    original = backups.original(path)
    replace_bytes(path, plan.before, plan.after, plan.servers.repository)
    if plan.after is None and original is not None:
        remove_empty_folders(path.parent, original.first_folder)
    if plan.is_last:
        backups.forget(path)
    return copy


def fragment(servers: ServerList, server: Server) -> str:
    """What the client's file holds for a server, in the file's own notation."""
    fields = server.fields(servers.client)
    if servers.client.notation == "toml":
        return toml_edit.put_fields("", (*servers.holder, server.name), fields)
    tree: dict[str, Any] = {server.name: fields}
    for name in reversed(servers.holder):
        tree = {name: tree}
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _names(root: Path) -> Iterator[str]:
    yield SERVER_NAME
    folder = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-") or "other"
    yield f"{SERVER_NAME}-{folder}"
    yield from (f"{SERVER_NAME}-{folder}-{number}" for number in range(2, 1000))


def _is_alive(entry: Entry) -> bool:
    """Whether the repository of an entry is still there: one that moved is not served any more."""
    root = root_of(entry)
    if root is None or root == WORKSPACE:
        return True
    try:
        return Path(root).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):
        return False


def _is_in(tree: Mapping[str, Any], servers: ServerList) -> bool:
    """Whether a file has an entry of ours, in this list or in another of the same file."""
    lists = [
        tree,
        *(projects.values() if isinstance(projects := tree.get("projects"), dict) else ()),
    ]
    found = (entry for one in lists for entry in entries_of(one, servers.client.holder))
    return any(map(is_ours, found))


def _without_traces(
    servers: ServerList, text: str, before: bytes, original: Original
) -> bytes | None:
    """The file as it was before us, where an entry that came and went is all that happened to it.

    Otherwise the text without the lists that we made.
    """
    was = decoded(servers.path, original.data or b"")
    left = edited(servers, edited(servers, was, SERVER_NAME, {"command": ""}), SERVER_NAME, None)
    text = _without_our_lists(servers, text, was)
    if text == _without_our_lists(servers, left, was):
        return original.data
    return encoded(before, text)


def _without_our_lists(servers: ServerList, text: str, was: str) -> str:
    """The text without empty lists that were not there before."""
    if servers.client.notation == "toml":
        return text
    tree = load(servers, was)
    for depth in range(len(servers.holder), 0, -1):
        keys = servers.holder[:depth]
        if _at(tree, keys) is None and _at(load(servers, text), keys) == {}:
            text = json_edit.remove_member(text, keys, servers.client.notation)
    return text


def _at(tree: Mapping[str, Any], keys: Sequence[str]) -> Any:
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _refuse_others(servers: ServerList, name: str, entry: Entry) -> None:
    where = f"{servers.path}: {'.'.join(servers.holder)}.{name}"
    if address_of(entry):
        raise ConfigError(
            f"{where} connects to a server over HTTP; remove it there first, or use --name"
        )
    if not is_ours(entry):
        advice = "choose another name with --name, or remove it by hand"
        raise ConfigError(_not_ours(servers, name, advice))
    if not leads_to(entry, servers) and _is_alive(entry):
        served = root_of(entry) or "the folder that the client is started in"
        raise ConfigError(
            f"{where} serves {served}; choose another name with --name, or remove it first: "
            f"sage uninstall {servers.client.name} --scope {servers.scope} --name {name} --write"
        )


def _not_ours(servers: ServerList, name: str, advice: str) -> str:
    return f"{servers.path}: {'.'.join(servers.holder)}.{name} starts something else; {advice}"
