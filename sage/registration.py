"""One server in one client's file: what would change, and the change itself.

Only the member of that name is touched. What cannot be parsed, or edited with certainty, is
refused with the reason, and the file stays as it is.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sage import jsonedit, tomltext
from sage.clients import Client
from sage.errors import ConfigError, InvalidInput
from sage.jsontext import JsonTextError
from sage.replacement import read_bytes, replace_bytes

SERVER_NAME = "sage"
_BOM = b"\xef\xbb\xbf"
_REMOTE = ("url", "httpUrl", "serverUrl")


@dataclass(frozen=True, slots=True)
class Server:
    """A server as a client starts it."""

    name: str
    command: str
    args: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The command with its arguments."""
        return [self.command, *self.args]

    def fields(self, client: Client) -> dict[str, Any]:
        """What a client's file says of it."""
        return {**client.fixed, "command": self.command, "args": list(self.args)}


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of one file: its bytes before and after."""

    client: Client
    path: Path
    before: bytes | None
    after: bytes
    fragment: str
    """What will stand in the file, or stands there and goes."""

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return (self.before or b"") != self.after


def server_for(root: Path, name: str = SERVER_NAME, interpreter: str | None = None) -> Server:
    """The server of a root, started by the interpreter that runs this.

    Raises:
        ConfigError: the interpreter is unknown.
        InvalidInput: the name has characters that a client may refuse.
    """
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidInput(f"{name!r} cannot name a server; use letters, digits, - and _")
    interpreter = sys.executable if interpreter is None else interpreter
    if not interpreter:
        raise ConfigError("the path of the Python interpreter is unknown; write the file by hand")
    # Without -P a folder named sage where the client happens to start would be run instead of us.
    return Server(name, interpreter, ("-P", "-m", "sage", "serve", "--root", str(root)))


def registered(client: Client, path: Path) -> dict[str, dict[str, Any]]:
    """What a client's file says of our servers, by their names there.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    data = read_bytes(path)
    if data is None:
        return {}
    holder = _holder(_load(client, path, _decoded(path, data)), client, path)
    return {name: one for name, one in holder.items() if isinstance(one, dict) and is_ours(one)}


def plan_install(client: Client, path: Path, server: Server) -> Plan:
    """What registering a server would change.

    Raises:
        ConfigError: the file cannot be edited with certainty; the message says why.
    """
    before = read_bytes(path)
    text = _decoded(path, before or b"")
    known = _record(_load(client, path, text), client, path, server.name)
    if known is not None:
        _refuse_others(client, path, server.name, known)
    fields = server.fields(client)
    after = _edited(client, path, text, server.name, fields)
    return Plan(client, path, before, _encoded(before, after), fragment(client, server))


def plan_uninstall(client: Client, path: Path, name: str = SERVER_NAME) -> Plan:
    """What removing a server would change.

    Raises:
        ConfigError: the file cannot be edited with certainty; the message says why.
    """
    before = read_bytes(path)
    if before is None:
        return Plan(client, path, None, b"", "")
    text = _decoded(path, before)
    known = _record(_load(client, path, text), client, path, name)
    if known is None:
        return Plan(client, path, before, before, "")
    if not is_ours(known):
        raise ConfigError(_not_ours(path, client, name, "remove it by hand if you mean it"))
    after = _edited(client, path, text, name, None)
    return Plan(client, path, before, _encoded(before, after), f"{client.holder}.{name}")


def carry_out(plan: Plan, now: datetime) -> Path | None:
    """Write the change; the path of the dated copy, if there was a file before."""
    return replace_bytes(plan.path, plan.before, plan.after, now)


def fragment(client: Client, server: Server) -> str:
    """What the client's file holds for a server, in the file's own notation."""
    if client.notation == "toml":
        return tomltext.put_fields("", (client.holder, server.name), server.fields(client))
    tree = {client.holder: {server.name: server.fields(client)}}
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def is_ours(record: Mapping[str, Any]) -> bool:
    """Whether a record starts this program's server."""
    command, args = record.get("command"), record.get("args")
    if not isinstance(command, str) or not isinstance(args, list):
        return False
    words = [part for part in args if isinstance(part, str)]
    by_name = Path(command.replace("\\", "/")).stem == "sage" or "sage-kb" in words
    by_module = any(words[at : at + 2] == ["-m", "sage"] for at in range(len(words)))
    return "serve" in words and (by_name or by_module)


def is_fleeting(interpreter: str) -> bool:
    """Whether an interpreter lies where caches are cleaned: of `uvx`, or a temporary one."""
    parts = Path(interpreter).parts
    temporary = Path(interpreter).is_relative_to(tempfile.gettempdir())
    return temporary or "archive-v0" in parts or "environments-v2" in parts


def _refuse_others(client: Client, path: Path, name: str, record: Mapping[str, Any]) -> None:
    if any(key in record for key in _REMOTE):
        reason = "connects to a server over HTTP; remove it there first, or use --name"
        raise ConfigError(f"{path}: {client.holder}.{name} {reason}")
    if not is_ours(record):
        advice = "choose another name with --name, or remove it by hand"
        raise ConfigError(_not_ours(path, client, name, advice))


def _not_ours(path: Path, client: Client, name: str, advice: str) -> str:
    return f"{path}: {client.holder}.{name} starts something else; {advice}"


def _record(
    tree: Mapping[str, Any], client: Client, path: Path, name: str
) -> dict[str, Any] | None:
    holder = _holder(tree, client, path)
    record = holder.get(name)
    if name in holder and not isinstance(record, dict):
        raise ConfigError(f"{path}: {client.holder}.{name} is not a server; remove it by hand")
    return record


def _holder(tree: Mapping[str, Any], client: Client, path: Path) -> dict[str, Any]:
    holder = tree.get(client.holder, {})
    if isinstance(holder, dict):
        return holder
    kind = "null" if holder is None else f"a {type(holder).__name__}"
    raise ConfigError(f"{path}: {client.holder} is {kind}, expected servers by name; mend it")


def _edited(client: Client, path: Path, text: str, name: str, fields: dict[str, Any] | None) -> str:
    """The text with a server's fields, or without it for None; proved to change nothing else."""
    keys = (client.holder, name)
    try:
        if client.notation == "toml":
            after = (
                tomltext.remove_table(text, keys)
                if fields is None
                else tomltext.put_fields(text, keys, fields)
            )
        elif fields is None:
            after = jsonedit.remove_member(text, keys, client.notation)
        else:
            after = jsonedit.put_fields(text, keys, fields, client.notation)
    except (JsonTextError, tomltext.TomlTextError) as error:
        raise ConfigError(f"{path}: {error}; edit it by hand") from error
    _prove(client, path, text, after, name, fields)
    return after


def _prove(
    client: Client, path: Path, before: str, after: str, name: str, fields: dict[str, Any] | None
) -> None:
    old, new = _load(client, path, before), _load(client, path, after)
    record = new.get(client.holder, {}).get(name)
    if fields is None:
        right = record is None
    else:
        right = all(record.get(key) == value for key, value in fields.items())
    if not right or _others(old, client.holder, name) != _others(new, client.holder, name):
        raise ConfigError(f"{path} cannot be edited without touching the rest; edit it by hand")


def _others(tree: dict[str, Any], holder: str, name: str) -> str:
    """Everything but one server, as a text that also tells order and types apart."""
    servers = {key: value for key, value in tree.get(holder, {}).items() if key != name}
    rest = {key: value for key, value in tree.items() if key != holder or servers}
    return repr({**rest, holder: servers} if servers else rest)


def _load(client: Client, path: Path, text: str) -> dict[str, Any]:
    try:
        if client.notation == "toml":
            return tomltext.load_toml(text)
        return jsonedit.load_json(text, client.notation)
    except JsonTextError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(f"{place}: cannot be parsed: {error}; mend it first") from error
    except tomltext.TomlTextError as error:
        raise ConfigError(f"{path}: cannot be parsed: {error}; mend it first") from error


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text at byte {error.start}; edit it by hand"
        ) from error


def _encoded(before: bytes | None, text: str) -> bytes:
    return (_BOM if before and before.startswith(_BOM) else b"") + text.encode("utf-8")
