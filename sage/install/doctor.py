"""`sage doctor`: what was found where, and whether each client's command really starts.

Everything is looked at, whatever is broken; each finding says what to do about it.
"""

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sage import __version__
from sage.context.recipes import load_recipes
from sage.documents.document import Document
from sage.errors import ConfigError, SageError, counted
from sage.install.client_check import Finding, Greet, State, check_client
from sage.install.clients import Machine, clients
from sage.install.handshake import Greeting, greet
from sage.install.hook_files import hooks_in
from sage.install.hook_hosts import hook_hosts
from sage.install.hook_trial import try_hook
from sage.knowledge import open_knowledge
from sage.settings import Settings, load_settings

_LIBRARIES = ("fastmcp", "mcp", "whoosh", "tiktoken", "markdown-it-py", "typer")


def _greet(words: list[str], variables: Mapping[str, str], folder: Path | None) -> Greeting:
    return greet(words, variables, folder=folder)


def diagnose(
    root: Path | None,
    machine: Machine,
    working_dir: Path,
    start: Greet = _greet,
    start_all: bool = False,
) -> Iterator[Finding]:
    """Look at everything, the root first and the clients last.

    Args:
        start_all: also start commands of the repository's own files that we would not write.
    """
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
            yield from check_client(client.servers(scope, machine, place), start, start_all)
    yield from _hooks(settings, machine)


def _hooks(settings: Settings | None, machine: Machine) -> Iterator[Finding]:
    """The hooks of every host, each run with an event made from the base."""
    if settings is None:
        return
    documents: tuple[Document, ...] | None = None
    for host in hook_hosts():
        for scope in host.places:
            path = host.file(scope, machine, settings.root)
            name = f"hooks of {host.name} ({scope})"
            try:
                commands = hooks_in(host, path)
            except ConfigError as error:
                yield Finding(name, "problem", str(error))
                continue
            if commands and documents is None:
                documents = open_knowledge(settings).documents()
            for event, ours in commands.items():
                trial = try_hook(event, ours[0], host.name, settings.root, documents or ())
                state: State = "problem" if trial.failure else "ok"
                fix = f"sage install {host.name} --hooks --scope {scope} --write"
                shown = tuple(trial.beginning)
                yield Finding(name, state, f"{path}: {trial.in_short}", fix, shown)


def _versions() -> Iterator[Finding]:
    python = f"{platform.python_version()}, {sys.executable}"
    yield Finding("sage", "ok", f"{__version__} on {platform.system()} {platform.release()}")
    yield Finding("python", "ok", python)
    found = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    missing = [name for name in _LIBRARIES if not _version(name)]
    if missing:
        fix = "install SAGE again into this environment"
        yield Finding("libraries", "problem", f"missing: {', '.join(missing)}", fix)
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
    try:
        load_recipes(settings)
    except ConfigError as error:
        fix = f"correct {settings.config_path}; no server starts with it"
        return Finding("settings", "problem", str(error), fix)
    return Finding("settings", "ok", str(settings.config_path))


def _base(settings: Settings) -> Iterator[Finding]:
    knowledge = open_knowledge(settings)
    try:
        knowledge.warm()
    finally:
        knowledge.close()
    info = knowledge.info()  # now the index is where it will be kept
    for layer in info["knowledge_base"]["layers"]:
        files = layer.get("files", 0)
        state: State = "ok" if files else "absent"
        count = counted(files, "document")
        yield Finding(f"layer {layer['name']}", state, count)
    if not info["knowledge_base"].get("content_files"):
        fix = "sage init writes a starting page for each layer"
        yield Finding("documents", "problem", "none: nothing can be answered", fix)
    index = info["index"]
    where, message = index.get("where", "memory"), index.get("message", "")
    words = f"{index['state']}, {counted(index.get('sections', 0), 'section')}, "
    words += "on disk" if where == "disk" else f"in {where}"
    lost = index["state"] != "ready" or bool(message and where == "memory")
    said = f"; {message}" if message else ""
    yield Finding("index", "problem" if lost else "ok", words + said)
    exact = not info["encoding"].startswith("estimate")
    fix = "" if exact else "counts are estimates; install the package again"
    yield Finding("tokenizer", "ok" if exact else "problem", info["encoding"], fix)
    if info["problems"]["count"]:
        first = info["problems"]["first"][0]
        count = f"{info['problems']['count']}; the first: {first['path']}: {first['what']}"
        yield Finding("problems", "problem", count, "sage check lists them all")
