"""What all commands share: where the repository is, how much is said, and what a shell completes.

Imports of the knowledge base stand inside the functions: `sage --help` must not pay for them.
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sage.cli.help import Command
from sage.cli.terminal import is_quiet, is_verbose, print_detail, say_less, say_more
from sage.errors import InvalidInput, SageError, counted
from sage.values import ALL_LAYERS

if TYPE_CHECKING:
    from sage.knowledge import KnowledgeBase
    from sage.settings import Settings


_NEW_OBJECTS = 100_000


def _be_quiet(asked: bool) -> None:
    if asked and is_verbose():
        raise InvalidInput("--quiet and --verbose exclude each other; use one of them")
    if asked:
        say_less()


def _be_verbose(asked: bool) -> None:
    if asked and is_quiet():
        raise InvalidInput("--quiet and --verbose exclude each other; use one of them")
    if asked:
        say_more()


Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="FOLDER",
        help="The repository that holds .knowledge.",
        show_default="the folder you are in, or the nearest above it",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one object for programs.")]
# Every command takes these two, before its name and after it; their callbacks do what they say.
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_be_quiet, help="Print the answer and nothing else."),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", callback=_be_verbose, help="Also say on stderr what is used and found."
    ),
]


def tokens_option() -> Any:
    """Where the tokens of a server are kept: the same for those who serve and those who grant."""
    return typer.Option(
        "--tokens",
        envvar="SAGE_TOKENS",
        metavar="FILE",
        help="The file that holds the hashes of tokens.",
        show_default="in your configuration folder",
    )


def wanted_log_level() -> str | None:
    """What a server is to log, when the command line says so."""
    if is_quiet():
        return "error"
    return "info" if is_verbose() else None


def settings_at(root: Path | None, **flags: object) -> "Settings":
    """The settings of the repository that a command is for; in detail when asked to be verbose."""
    from sage.settings import load_settings

    settings = load_settings({"root": root, **flags})
    print_detail(f"root {settings.root}, found by {settings.found_by}")
    print_detail(f"settings from {settings.config_path or 'the defaults: there is no sage.yaml'}")
    return settings


class OperatorCommand(Command):
    """A command that refuses an empty option: a variable that is not set must not choose."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line.

        Raises:
            InvalidInput: an option has an empty text.
        """
        # As it is typed: an empty path would be the folder one is in.
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for name, value in given.items():
            if "" in (value if isinstance(value, list) else (value,)):
                raise InvalidInput(
                    f"--{name.replace('_', '-')} is empty; give it a value, or leave it out"
                )
        return super().parse_args(ctx, args)


def refuse_options(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options of the command line that would be silently without effect."""
    for name in names:
        if is_given(context, name):
            raise InvalidInput(f"--{name.replace('_', '-')} {why}")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the command line says it; a variable may be there for other commands."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@contextmanager
def opened(root: Path | None) -> Iterator["KnowledgeBase"]:
    """The knowledge base of a command; what is worth keeping is kept when it ends."""
    from sage.knowledge import open_knowledge

    # A command ends before garbage matters: to look for some took 0.2 s of a search in 25,000 pages
    gc.set_threshold(_NEW_OBJECTS)
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
    from sage.cli.output import index_line

    info = knowledge.info()
    documents = counted(info["knowledge_base"].get("content_files", 0), "document")
    print_detail(f"{documents}, {counted(info['problems']['count'], 'problem')}")
    print_detail(f"index {index_line(info['index'])}")


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
    from sage.context.recipes import task_types

    return task_types(settings)


def complete_topics(context: typer.Context) -> list[str]:
    """The topics of the layer that was typed; no file is read for it."""
    from sage.knowledge import open_knowledge

    layer = context.params.get("layer") or ALL_LAYERS

    def topics(settings: "Settings") -> Iterable[str]:
        names = open_knowledge(settings).topics(layer)
        return [name.removeprefix(f"{layer}/") for name in names]

    return completing(topics)(context)
