"""What all commands share: where the repository is, how much is said, and what a shell completes.

Imports of the knowledge base stand inside the functions: `sage --help` must not pay for them.
"""

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sage.bounds import ALL_LAYERS
from sage.console import is_quiet, is_verbose, print_detail, say_less, say_more
from sage.errors import InvalidInput, SageError

if TYPE_CHECKING:
    from sage.knowledge import KnowledgeBase
    from sage.settings import Settings

Root = Annotated[
    Path | None,
    typer.Option(
        "--root", help="The repository that holds .knowledge.", show_default="found from here"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one object for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes, hints or sums.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also say on stderr what is used and found.")
]


def tokens_option(**more: Any) -> Any:
    """Where the tokens of a server are kept: the same for those who serve and those who grant."""
    return typer.Option(
        "--tokens",
        envvar="SAGE_TOKENS",
        help="The file that holds the hashes of tokens.",
        show_default="in your configuration folder",
        **more,
    )


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command that takes --quiet and --verbose behind its name as well."""
    shape = inspect.signature(function)
    added = {"quiet": Quiet, "verbose": Verbose}

    @functools.wraps(function)
    def run(*args: Any, quiet: bool = False, verbose: bool = False, **options: Any) -> None:
        set_loudness(quiet, verbose)
        function(*args, **options)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in added.items()
    ]
    run.__annotations__ = {**function.__annotations__, **added}
    run.__signature__ = shape.replace(  # type: ignore[attr-defined]
        parameters=[*shape.parameters.values(), *parameters]
    )
    return run


def set_loudness(quiet: bool, verbose: bool) -> None:
    """Let the notes of this run be fewer or more."""
    if quiet and verbose:
        raise InvalidInput("--quiet and --verbose exclude each other; use one of them")
    if quiet:
        say_less()
    elif verbose:
        say_more()


def wanted_log_level() -> str | None:
    """What a server is to log, when the command line says so."""
    if is_quiet():
        return "error"
    return "info" if is_verbose() else None


def settings_at(root: Path | None, **flags: object) -> "Settings":
    """The settings of the repository that a command is for."""
    from sage.settings import load_settings

    settings = load_settings({"root": root, **flags})
    print_detail(f"root {settings.root}, found by {settings.found_by}")
    print_detail(f"settings from {settings.config_path or 'the defaults: there is no sage.yaml'}")
    return settings


@contextmanager
def opened(root: Path | None) -> Iterator["KnowledgeBase"]:
    """The knowledge base of a command; what is worth keeping is kept when it ends."""
    from sage.knowledge import open_knowledge

    started = time.monotonic()
    knowledge = open_knowledge(settings_at(root))
    try:
        yield knowledge
    finally:
        knowledge.close()
    if is_verbose():
        print_detail(f"answered in {(time.monotonic() - started) * 1000:.0f} ms")
        _tell_state(knowledge)


def _tell_state(knowledge: "KnowledgeBase") -> None:
    info = knowledge.info()
    base, index = info["knowledge_base"], info["index"]
    print_detail(f"{base['content_files']} documents, {info['problems']['count']} problems")
    print_detail(f"index {index['state']}, {index['sections']} sections, in {index['where']}")


Choices = Callable[["Settings"], Iterable[str]]


def completing(choices: Choices) -> Callable[[typer.Context], list[str]]:
    """What a shell offers; nothing where there is no knowledge base, as a shell shows no error."""

    def complete(context: typer.Context) -> list[str]:
        try:
            return list(choices(settings_at(context.params.get("root"))))
        except SageError:
            return []

    return complete


@completing
def complete_layers(settings: "Settings") -> Iterable[str]:
    """The layers of the repository."""
    return (*settings.layers, ALL_LAYERS)


@completing
def complete_task_types(settings: "Settings") -> Iterable[str]:
    """What a context can be asked for."""
    from sage.recipes import task_types

    return task_types(settings)


def complete_topics(context: typer.Context) -> list[str]:
    """The topics of the layer that was typed; no file is read for it."""
    from sage.knowledge import open_knowledge

    layer = context.params.get("layer") or ALL_LAYERS

    def topics(settings: "Settings") -> Iterable[str]:
        names = open_knowledge(settings).topics(layer)
        return [name.removeprefix(f"{layer}/") for name in names]

    return completing(topics)(context)
