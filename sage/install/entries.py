"""The entry of a server in a client's file: the one we write, and what others say.

An entry names a command with its arguments, or the address of a server over HTTP. Files differ in
form only; where they lie is in `clients`.
"""

import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from sage.errors import ConfigError, InvalidInput
from sage.install.clients import Client, clients

SERVER_NAME = "sage"
_PROGRAMS = ("sage", "sage-kb")
_REMOTE = ("url", "httpUrl", "serverUrl")
_TYPED = re.compile(r"\bsage(?:-kb)?(?:\.exe)?[\"']? serve\b")

Entry = Mapping[str, Any]


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


def server_for(root: Path, name: str = SERVER_NAME, interpreter: str | None = None) -> Server:
    """The server of a root, started by the interpreter that runs this.

    Raises:
        ConfigError: the interpreter is unknown.
        InvalidInput: the name has characters that a client may refuse.
    """
    interpreter = sys.executable if interpreter is None else interpreter
    if not interpreter:
        raise ConfigError("the path of the Python interpreter is unknown; write the file by hand")
    # Without -P a folder named sage where the client happens to start would be run instead of us.
    args = ("-P", "-m", "sage", "serve", "--root", str(root))
    return Server(_usable(name), interpreter, args)


def shared_server(client: Client, name: str = SERVER_NAME, package: str | None = None) -> Server:
    """The server in an entry that a team can commit: without a path of anybody's machine.

    Args:
        package: what `uvx` installs it from; without one `sage` must be on the PATH.

    Raises:
        InvalidInput: the client reads no file in a repository, or the name may be refused.
    """
    if client.shared_args is None:
        able = ", ".join(one.name for one in clients() if one.shared_args is not None)
        raise InvalidInput(
            f"{client.title} reads no file in the repository, so its entry cannot be shared; "
            f"these do: {able}"
        )
    args = ("serve", *client.shared_args)
    if package:
        return Server(_usable(name), "uvx", ("--from", package, "sage", *args))
    return Server(_usable(name), "sage", args)


def is_ours(entry: Entry) -> bool:
    """Whether an entry starts this program's server, whoever wrote it."""
    words = words_of(entry)
    if "serve" in words:
        before = words[: words.index("serve")]
        if any(_stem(word) in _PROGRAMS for word in before) or before[-2:] == ["-m", "sage"]:
            return True
    return any(_TYPED.search(word) or "-m sage serve" in word for word in words)


def address_of(entry: Entry) -> str:
    """Where an entry connects to over HTTP, or nothing."""
    return next((str(entry[key]) for key in _REMOTE if isinstance(entry.get(key), str)), "")


def words_of(entry: Entry) -> list[str]:
    """The command of an entry with its arguments, or nothing."""
    command: Any = entry.get("command")
    args: Any = entry.get("args", [])
    if isinstance(command, Mapping):  # an older form of Zed's
        command, args = command.get("path"), command.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list):
        return []
    return [command, *(str(word) for word in args)]


def variables_of(entry: Entry) -> dict[str, str]:
    """The variables that an entry sets."""
    given = entry.get("env")
    pairs = given.items() if isinstance(given, Mapping) else ()
    return {str(name): str(value) for name, value in pairs}


def root_of(entry: Entry) -> str | None:
    """The root that an entry names; None when the server finds it where it is started."""
    words = words_of(entry)
    for at, word in enumerate(words):
        if word == "--root" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("--root="):
            return word.removeprefix("--root=")
    return variables_of(entry).get("SAGE_ROOT")


def is_fleeting(interpreter: str) -> bool:
    """Whether an interpreter lies where caches are cleaned: of `uvx`, or a temporary one."""
    parts = Path(interpreter).parts
    temporary = Path(interpreter).is_relative_to(tempfile.gettempdir())
    return temporary or "archive-v0" in parts or "environments-v2" in parts


def _stem(word: str) -> str:
    return PurePath(word.replace("\\", "/")).name.removesuffix(".exe")


def _usable(name: str) -> str:
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidInput(f"{name!r} cannot name a server; use letters, digits, - and _")
    return name
