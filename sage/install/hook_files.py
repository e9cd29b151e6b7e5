"""The hooks of SAGE in a host's own file: what would change, and what is there.

A hook of ours is one whose command runs `sage hook`; every other byte of the file stays. What
cannot be parsed, or edited with certainty, is refused with the reason.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sage.atomic import read_bytes, replace_bytes
from sage.errors import ConfigError
from sage.install import json_edit
from sage.install.backups import Backups, Original, remove_empty_folders
from sage.install.file_text import decoded, encoded
from sage.install.hook_hosts import HookHost
from sage.install.json_parser import JsonTextError


@dataclass(frozen=True, slots=True)
class HookPlan:
    """A change of one file: its bytes before and after, None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    fragment: str
    """What will stand in the file, or stands there and goes."""
    root: Path | None = None
    """The repository that the file belongs to; None for a file of the user's own."""
    is_first: bool = False
    """Whether no hook of ours is in the file yet."""

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def is_ours(element: object) -> bool:
    """Whether an element of a list of hooks runs `sage hook` and nothing else."""
    commands = list(_commands(element))
    return bool(commands) and all(_runs_sage_hook(command) for command in commands)


def hooks_in(host: HookHost, path: Path) -> dict[str, list[str]]:
    """Our commands in a host's file, by event.

    Raises:
        ConfigError: the file cannot be read or parsed.
    """
    data = read_bytes(path)
    if data is None:
        return {}
    found: dict[str, list[str]] = {}
    for event, listed in _lists(_loaded(host, path, decoded(path, data))):
        ours = [command for one in listed if is_ours(one) for command in _commands(one)]
        if ours:
            found[event] = ours
    return found


def plan_hooks(host: HookHost, path: Path, command: str, root: Path | None) -> HookPlan:
    """What writing the hooks would change; those of ours that differ are replaced.

    Raises:
        ConfigError: the file cannot be edited with certainty; the message says why.
    """
    return _planned(host, path, read_bytes(path, root), command, root)


def _planned(
    host: HookHost, path: Path, before: bytes | None, command: str, root: Path | None
) -> HookPlan:
    text = decoded(path, before or b"")
    wanted = {one.event: host.written(one, command) for one in host.occasions}
    fragment = json.dumps(
        {**host.beside, "hooks": {event: [one] for event, one in wanted.items()}},
        indent=2,
        ensure_ascii=False,
    )
    try:
        tree = _loaded(host, path, text)
        if {event: [one] for event, one in wanted.items()} == _ours(tree):
            return HookPlan(path, before, before, fragment, root)
        after = _without_ours(host, tree, text)
        for name, value in host.beside.items():
            if name not in tree:
                after = json_edit.put_fields(after, (), {name: value}, host.dialect)
        for event, element in wanted.items():
            after = json_edit.append_element(after, ("hooks", event), element, host.dialect)
    except JsonTextError as error:
        raise ConfigError(f"{path}: {error}; edit it by hand") from error
    _prove(host, path, text, after, wanted)
    is_first = not _ours(tree)
    return HookPlan(path, before, encoded(before, after), fragment + "\n", root, is_first)


def plan_unhook(
    host: HookHost, path: Path, root: Path | None, original: Original | None = None
) -> HookPlan:
    """What removing the hooks would change.

    Args:
        original: the file as it was before our hooks, where that is known.

    Raises:
        ConfigError: the file cannot be edited with certainty; the message says why.
    """
    before = read_bytes(path, root)
    if before is None:
        return HookPlan(path, None, None, "")
    text = decoded(path, before)
    tree = _loaded(host, path, text)
    if not _ours(tree):
        return HookPlan(path, before, before, "")
    try:
        after = _without_ours(host, tree, text)
    except JsonTextError as error:
        raise ConfigError(f"{path}: {error}; edit it by hand") from error
    _prove(host, path, text, after, {})
    gone = f"the hooks of {', '.join(_ours(tree))}"
    if original is not None and after == _left_of(host, path, original):
        return HookPlan(path, before, original.data, gone, root)
    data = encoded(before, after)
    is_empty = host.has_own_file and not json_edit.load_json(after, host.dialect)
    return HookPlan(path, before, None if is_empty else data, gone, root)


def carry_out(plan: HookPlan, backups: Backups, now: datetime) -> Path | None:
    """Write the change; the path of the dated copy, if there was a file before."""
    copy = None if plan.before is None else backups.copy(plan.path, plan.before, now)
    if plan.is_first:
        backups.remember(plan.path)
    original = backups.original(plan.path)
    replace_bytes(plan.path, plan.before, plan.after, plan.root)
    if plan.after is None and original is not None:
        remove_empty_folders(plan.path.parent, original.first_folder)
    return copy


def _left_of(host: HookHost, path: Path, original: Original) -> str:
    """What hooks that come and go leave of a file."""
    was = original.data or b""
    plan = _planned(host, path, original.data, "sage hook --host any", None)
    text = decoded(path, plan.after or was)
    return _without_ours(host, _loaded(host, path, text), text)


def _without_ours(host: HookHost, tree: Mapping[str, Any], text: str) -> str:
    """The text without our hooks, and without the lists that only we had filled."""
    ours = _ours(tree)
    for event in ours:
        text = json_edit.remove_elements(text, ("hooks", event), is_ours, host.dialect)
    if ours and json_edit.load_json(text, host.dialect).get("hooks") == {}:
        text = json_edit.remove_member(text, ("hooks",), host.dialect)
    return text


def _prove(
    host: HookHost, path: Path, before: str, after: str, wanted: Mapping[str, dict[str, Any]]
) -> None:
    old, new = _loaded(host, path, before), _loaded(host, path, after)
    right = _ours(new) == {event: [element] for event, element in wanted.items()}
    if not right or _others(host, old) != _others(host, new):
        raise ConfigError(f"{path} cannot be edited without touching the rest; edit it by hand")


def _others(host: HookHost, tree: Mapping[str, Any]) -> str:
    """Everything but our hooks and what a new file needs, as a text that tells order apart."""
    theirs = {
        event: [one for one in listed if not is_ours(one)]
        for event, listed in _lists(tree)
        if not all(map(is_ours, listed))
    }
    held = tree.get("hooks")
    rest = held.items() if isinstance(held, dict) else ()
    odd = {event: value for event, value in rest if not isinstance(value, list) or not value}
    outside = {k: v for k, v in tree.items() if k != "hooks" and k not in host.beside}
    return repr((outside, theirs, odd))


def _ours(tree: Mapping[str, Any]) -> dict[str, list[Any]]:
    found = {event: [one for one in listed if is_ours(one)] for event, listed in _lists(tree)}
    return {event: elements for event, elements in found.items() if elements}


def _lists(tree: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    held = tree.get("hooks")
    for event, listed in held.items() if isinstance(held, dict) else ():
        if isinstance(listed, list):
            yield event, listed


def _commands(element: object) -> Iterator[str]:
    """The commands of a hook, or of a group of them."""
    if not isinstance(element, dict):
        return
    if isinstance(element.get("command"), str):
        yield element["command"]
    inner = element.get("hooks")
    for one in inner if isinstance(inner, list) else ():
        yield str(one.get("command", "")) if isinstance(one, dict) else ""


def _runs_sage_hook(command: str) -> bool:
    words = command.replace('"', " ").replace("'", " ").split()
    at = words.index("hook") if "hook" in words else 0
    before = Path(words[at - 1].replace("\\", "/")).stem if at else ""
    return before == "sage" and "--host" in words[at + 1 :]


def _loaded(host: HookHost, path: Path, text: str) -> dict[str, Any]:
    try:
        tree = json_edit.load_json(text, host.dialect)
    except JsonTextError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(f"{place}: cannot be parsed: {error}; fix it first") from error
    if not isinstance(tree.get("hooks", {}), dict):
        raise ConfigError(f"{path}: hooks is not an object; fix it first")
    return tree
