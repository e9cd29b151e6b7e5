"""The text of a client's file: where our entry stands in it, and edits that change nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from sage.errors import ConfigError
from sage.install import json_edit, toml_edit
from sage.install.clients import ServerList
from sage.install.entries import Entry
from sage.install.json_parser import JsonTextError


def entry_named(tree: Mapping[str, Any], servers: ServerList, name: str) -> Entry | None:
    """The entry of that name.

    Raises:
        ConfigError: something else has the name.
    """
    holder = holder_in(tree, servers)
    entry = holder.get(name)
    if name in holder and not isinstance(entry, dict):
        where = f"{servers.path}: {'.'.join(servers.holder)}.{name}"
        raise ConfigError(f"{where} is not a server; remove it by hand")
    return entry


def holder_in(tree: Mapping[str, Any], servers: ServerList) -> dict[str, Any]:
    """The entries of a list by their names.

    Raises:
        ConfigError: something else stands where the list would be.
    """
    found: Any = tree
    for depth, key in enumerate(servers.holder, start=1):
        found = found.get(key, {})
        if not isinstance(found, dict):
            kind = "null" if found is None else f"a {type(found).__name__}"
            names = ".".join(servers.holder[:depth])
            raise ConfigError(
                f"{servers.path}: {names} is {kind}, expected servers by name; fix it"
            )
    return dict(found)


def entries_of(tree: object, holder: str) -> list[Entry]:
    """The entries below a name, as far as there are any."""
    found = tree.get(holder) if isinstance(tree, dict) else None
    return (
        [one for one in found.values() if isinstance(one, dict)] if isinstance(found, dict) else []
    )


def edited(servers: ServerList, text: str, name: str, fields: dict[str, Any] | None) -> str:
    """The text with an entry's fields, or without it for None; proved to change nothing else.

    Raises:
        ConfigError: it cannot be edited with certainty; the message says why.
    """
    keys, notation = (*servers.holder, name), servers.client.notation
    try:
        if notation == "toml":
            after = (
                toml_edit.remove_table(text, keys)
                if fields is None
                else toml_edit.put_fields(text, keys, fields)
            )
        elif fields is None:
            after = json_edit.remove_member(text, keys, notation)
        else:
            after = json_edit.put_fields(text, keys, fields, notation)
    except (JsonTextError, toml_edit.TomlTextError) as error:
        raise ConfigError(f"{servers.path}: {error}; edit it by hand") from error
    _prove(servers, text, after, name, fields)
    return after


def _prove(
    servers: ServerList, before: str, after: str, name: str, fields: dict[str, Any] | None
) -> None:
    old, new = load(servers, before), load(servers, after)
    entry: Any = holder_in(new, servers).get(name)
    if fields is None:
        right = entry is None
    else:
        right = all(entry.get(key) == value for key, value in fields.items())
    keys = (*servers.holder, name)
    if not right or _others(old, keys) != _others(new, keys):
        raise ConfigError(
            f"{servers.path} cannot be edited without touching the rest; edit it by hand"
        )


def _others(tree: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Everything but one entry, as a text that also tells order and types apart."""
    return repr(_without(tree, keys))


def _without(tree: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """A tree without the value at a path, and without what is empty then."""
    rest = {key: value for key, value in tree.items() if key != keys[0]}
    inner = tree.get(keys[0])
    if len(keys) == 1 or not isinstance(inner, dict):
        return rest
    kept = _without(inner, keys[1:])
    return {**rest, keys[0]: kept} if kept else rest


def load(servers: ServerList, text: str) -> dict[str, Any]:
    """The values of a file's text.

    Raises:
        ConfigError: it cannot be parsed.
    """
    notation = servers.client.notation
    try:
        if notation == "toml":
            return toml_edit.load_toml(text)
        return json_edit.load_json(text, notation)
    except JsonTextError as error:
        place = f"{servers.path}:{error.line}" if error.line else str(servers.path)
        raise ConfigError(f"{place}: cannot be parsed: {error}; fix it first") from error
    except toml_edit.TomlTextError as error:
        raise ConfigError(f"{servers.path}: cannot be parsed: {error}; fix it first") from error
