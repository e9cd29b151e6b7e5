"""One event of a host, read from bytes that may be anything: strictly, and within bounds."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sage.hooks.hosts import EventHost, Moment

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""A tool that writes a file sends it whole."""
MAX_PROMPT = 8_000
MAX_FILES = 20
_MAX_PATH = 4_096
_MAX_NAME = 256
_MAX_PATCH = 1_000_000
_ONE_FILE = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "target_file")
_MANY_FILES = ("files", "paths", "file_paths")
_PATCHES = ("command", "input", "patch")
# How `apply_patch` names the files it changes.
_PATCHED = re.compile(
    r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (\S[^\r\n]{0,4095})$", re.MULTILINE
)


_CHANGES = re.compile("edit|write|patch|replace|create|insert", re.IGNORECASE)


class UnusableEvent(ValueError):
    """Bytes that are no event of this host; the message says why, without quoting them."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened in a host."""

    name: str
    """The host's own word for it."""
    moment: Moment
    session: str
    """Which conversation it belongs to; empty when the host does not say."""
    folder: str
    """Where the host works; empty when it does not say."""
    prompt: str = ""
    files: tuple[str, ...] = ()
    is_change: bool = False
    """Whether the tool changes the files, by its name."""
    begins_anew: bool = False
    """Whether what was delivered before is no longer before the model."""


def parse_event(data: bytes, host: EventHost) -> Event | None:
    """The event in these bytes; None when it is one at which the host takes no context.

    Raises:
        UnusableEvent: they are not an event.
    """
    fields = _fields(data)
    name = _text(fields, _MAX_NAME, "hook_event_name", "hookEventName")
    moment = host.moments.get(name)
    if moment is None:
        return None
    return Event(
        name=name,
        moment=moment,
        session=_text(fields, _MAX_NAME, "session_id", "sessionId", "conversation_id"),
        folder=_folder(fields),
        prompt=_cut(fields, "prompt") if moment == "prompt" else "",
        files=tuple(_files(fields)) if moment == "tool" else (),
        is_change=moment == "tool" and _is_change(fields.get("tool_name")),
        begins_anew=fields.get("source") in ("clear", "compact"),
    )


def _fields(data: bytes) -> Mapping[str, Any]:
    if len(data) > MAX_EVENT_BYTES:
        raise UnusableEvent("the event is too large")
    try:
        # Cursor on Windows begins what it sends with a byte order mark.
        fields = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise UnusableEvent("the event is not UTF-8") from None
    except (ValueError, RecursionError):
        raise UnusableEvent("the event is not JSON") from None
    if not isinstance(fields, dict):
        raise UnusableEvent("the event is not an object")
    return fields


def _text(fields: Mapping[str, Any], longest: int, *names: str) -> str:
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > longest or "\0" in value:
            raise UnusableEvent(f"{name} is not a text of at most {longest} characters")
        return value
    return ""


def _cut(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnusableEvent(f"{name} is not a text")
    return value[:MAX_PROMPT]


def _folder(fields: Mapping[str, Any]) -> str:
    folder = _text(fields, _MAX_PATH, "cwd")
    roots = fields.get("workspace_roots")
    if folder or not isinstance(roots, list) or not roots:
        return folder
    return _text({"workspace_roots": roots[0]}, _MAX_PATH, "workspace_roots")


def _files(fields: Mapping[str, Any]) -> Iterator[str]:
    """The files that a tool was given, each once, at most so many."""
    given = fields.get("tool_input")
    if not isinstance(given, dict):
        return
    found = dict.fromkeys(path for path in _paths(given) if _is_path(path))
    yield from map(str, list(found)[:MAX_FILES])


def _paths(given: Mapping[str, Any]) -> Iterator[object]:
    for name in _ONE_FILE:
        yield given.get(name)
    for name in _MANY_FILES:
        listed = given.get(name)
        for one in listed[:MAX_FILES] if isinstance(listed, list) else ():
            yield from (map(one.get, _ONE_FILE) if isinstance(one, dict) else (one,))
    for name in _PATCHES:
        patch = given.get(name)
        if isinstance(patch, str) and "*** Begin Patch" in patch[:_MAX_PATCH]:
            yield from _PATCHED.findall(patch[:_MAX_PATCH])


def _is_change(tool: object) -> bool:
    return isinstance(tool, str) and _CHANGES.search(tool[:_MAX_NAME]) is not None


def _is_path(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_PATH and "\0" not in value
