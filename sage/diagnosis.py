"""`sage doctor`: what was found where, and whether each client's command really starts.

Everything is looked at, whatever is broken; each finding says what to do about it.
"""

import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from sage import __version__
from sage.clients import Client, Machine, clients
from sage.errors import ConfigError, SageError
from sage.greeting import Greeting, greet
from sage.knowledge import open_knowledge
from sage.registration import SERVER_NAME, registered, server_for
from sage.settings import Settings, load_settings

State = Literal["ok", "problem", "absent"]
Greet = Callable[[list[str], Mapping[str, str]], Greeting]
_LIBRARIES = ("fastmcp", "mcp", "whoosh", "tiktoken", "markdown-it-py", "typer")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    message: str
    mend: str = ""


def diagnose(
    root: Path | None, machine: Machine, working_dir: Path, greeting: Greet = greet
) -> Iterator[Finding]:
    """Look at everything, the root first and the clients last."""
    yield from _versions()
    settings: Settings | None = None
    try:
        settings = load_settings({"root": root}, machine.environment, working_dir)
        yield Finding("root", "ok", f"{settings.root} (by {settings.found_by})")
        yield _configuration(settings)
        yield from _base(settings)
    except SageError as error:
        yield Finding("root", "problem", str(error))
    place = settings.root if settings else working_dir
    for client in clients():
        for scope in client.places:
            path = Path(client.file(scope, machine, place))
            yield from _client(client, scope, path, place, greeting)


def _versions() -> Iterator[Finding]:
    python = f"{platform.python_version()}, {sys.executable}"
    yield Finding("sage", "ok", f"{__version__} on {platform.system()} {platform.release()}")
    yield Finding("python", "ok", python)
    found = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    missing = [name for name in _LIBRARIES if not _version(name)]
    if missing:
        mend = "install it again: pip install --force-reinstall sage-kb"
        yield Finding("libraries", "problem", f"missing: {', '.join(missing)}", mend)
    else:
        yield Finding("libraries", "ok", found)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _configuration(settings: Settings) -> Finding:
    if settings.config_path is None:
        return Finding("settings", "ok", "defaults; there is no sage.yaml")
    return Finding("settings", "ok", str(settings.config_path))


def _base(settings: Settings) -> Iterator[Finding]:
    knowledge = open_knowledge(settings)
    try:
        knowledge.warm()
        info = knowledge.info()
    finally:
        knowledge.close()
    for layer in info["knowledge_base"]["layers"]:
        state: State = "ok" if layer["files"] else "absent"
        count = f"{layer['files']} document{'s' * (layer['files'] != 1)}"
        yield Finding(f"layer {layer['name']}", state, count)
    files = info["knowledge_base"]["content_files"]
    if not files:
        mend = "sage init writes a starting page for each layer"
        yield Finding("documents", "problem", "none: nothing can be answered", mend)
    index = info["index"]
    words = f"{index['state']}, {index['sections']:,} sections, in {index['where'] or 'memory'}"
    lost = index["state"] != "ready" or bool(index["message"] and index["where"] == "memory")
    said = f"; {index['message']}" if index["message"] else ""
    yield Finding("index", "problem" if lost else "ok", words + said)
    exact = not info["encoding"].startswith("estimate")
    mend = "" if exact else "counts are estimates; install the package again, or set encoding"
    yield Finding("tokenizer", "ok" if exact else "problem", info["encoding"], mend)
    if info["problems"]["count"]:
        first = info["problems"]["first"][0]
        count = f"{info['problems']['count']}; the first: {first['path']}: {first['what']}"
        yield Finding("problems", "problem", count, "sage check lists them all")


def _client(
    client: Client, scope: str, path: Path, root: Path, greeting: Greet
) -> Iterator[Finding]:
    name = f"{client.name} ({scope})"
    install = f"sage install {client.name} --scope {scope} --write"
    try:
        records = registered(client, path)
    except ConfigError as error:
        yield Finding(name, "problem", str(error))
        return
    if not records:
        yield Finding(name, "absent", f"not registered in {path}", install)
    for key, record in records.items():
        again = install if key == SERVER_NAME else f"{install} --name {key}"
        title = name if key == SERVER_NAME else f"{client.name} ({scope}, {key})"
        message, is_well = _server(record, scope, root, greeting)
        if is_well:
            yield Finding(title, "ok", f"{path}: {message}")
        else:
            yield Finding(title, "problem", f"{path}: {message}", again)


def _server(record: Mapping[str, Any], scope: str, root: Path, greeting: Greet) -> tuple[str, bool]:
    """What came of starting a registered server, and whether it is well."""
    if scope == "project" and not _is_as_written(record, root):
        return "the server is not what would be written here, so it was not started", False
    answer = greeting(_words(record), _environment(record))
    return answer.message, answer.is_ready


def _is_as_written(record: Mapping[str, Any], root: Path) -> bool:
    """Whether a repository's file holds our own words: anything else could start any program."""
    server = server_for(root)
    return _words(record) == server.words and all(
        variable.startswith("SAGE_") for variable in _environment(record)
    )


def _words(record: Mapping[str, Any]) -> list[str]:
    return [str(record["command"]), *map(str, record["args"])]


def _environment(record: Mapping[str, Any]) -> dict[str, str]:
    given = record.get("env")
    pairs = given.items() if isinstance(given, dict) else ()
    return {str(name): str(value) for name, value in pairs}
