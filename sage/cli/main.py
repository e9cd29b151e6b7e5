"""The `sage` command: its commands in the order a newcomer meets them, and how a run ends.

The modules of the commands import little: `sage --help` must not pay for the server.
"""

import re
import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from sage import __version__
from sage.cli.ask import context, get, info, ls, scope, search
from sage.cli.care import care, stats
from sage.cli.check import check, evaluate_search
from sage.cli.export import export
from sage.cli.help import Command, examples
from sage.cli.hooks import hook
from sage.cli.likeness import find_duplicates, related, tags_app
from sage.cli.meaning import embed
from sage.cli.notes import accept, note, resolve, supersede
from sage.cli.options import OperatorCommand, Quiet, Verbose
from sage.cli.page import page
from sage.cli.publish import publish
from sage.cli.serve import serve
from sage.cli.setup import doctor, init, install, uninstall
from sage.cli.team import tokens_app, usage
from sage.cli.terminal import begin_notes, print_error, stop_bars
from sage.errors import SageError

# Typer shows only some of its usage errors to the outside; this is what all of them extend.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
_PLAIN_WORDS = {
    ". Did you mean": "; did you mean",
    "Possible options:": "did you mean",
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be": "it should be",
}
_ARGUMENT = re.compile(r"(?<!\w)(\w++)(?= |: )")
_SEARCH_CALL = re.compile(r'sage_search\(query="(.{0,500})"\)')
_FILTERS = "types, tags, status, source or sort"
_OPTIONS = {
    "limit": "--limit",
    "offset": "--offset",
    "types": "--type",
    "tags": "--tag",
    "status": "--status",
    "sort": "--sort",
    "max_tokens": "--max-tokens",
    "timeout_ms": "--timeout-ms",
    "token_budget": "--budget",
    "language": "--language",
    "task": "--task",
    "current_files": "--files",
    "query": "QUERY",
    "topic": "TOPIC",
}

app = typer.Typer(
    name="sage",
    help="The knowledge your team keeps in .knowledge, for people and agents.",
    epilog="Start with: sage init. Each command explains itself: sage search --help",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: boxes do not survive a pipe or a narrow terminal
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; errors become one line on stderr and an exit code."""
    _write_utf8()
    try:
        try:
            code = app(prog_name="sage", standalone_mode=False)
        finally:
            stop_bars()
        sys.exit(code)
    except SageError as error:
        print_error(_in_options(str(error)))
        sys.exit(error.exit_code)
    except _USAGE_ERROR as error:
        _print_usage_error(error)
        sys.exit(2)
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe went away (`sage get | head`): nothing is wrong.
        sys.stderr.close()


def _in_options(message: str) -> str:
    """An error in the words of the command line: its options in place of a tool's arguments."""
    message = _ARGUMENT.sub(lambda match: _OPTIONS.get(match[1], match[1]), message, count=1)
    message = message.replace(_FILTERS, "--type, --tag, --status, --source or --sort")
    return _SEARCH_CALL.sub(lambda match: f"sage search {shlex.quote(match[1])}", message)


def _print_usage_error(error: Any) -> None:
    """One line that ends with where help is; the help itself where a command was to follow."""
    message = error.format_message().rstrip(".?")
    if "\n" in message:
        error.show()
        return
    for typers, ours in _PLAIN_WORDS.items():
        message = message.replace(typers, ours)
    where = error.ctx.command_path if error.ctx else "sage"
    print_error(f"{message[:1].lower()}{message[1:]}; see {where} --help")


def _write_utf8() -> None:
    """Knowledge is UTF-8 whatever the terminal's locale says."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _begin(version_asked: bool) -> None:
    """Run before every other option: notes must have their place when the first is made."""
    begin_notes()
    if version_asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_begin, is_eager=True, help="Print the version.")
    ] = False,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """The knowledge your team keeps in .knowledge, for people and agents."""


# A command of few options first, what a team's operator needs last.
_COMMANDS: tuple[tuple[str, Callable[..., None], tuple[str, ...]], ...] = (
    ("init", init, ("sage init", "sage init --agents")),
    (
        "search",
        search,
        ("sage search how do we retry a payment", "sage search rollback --layer practices"),
    ),
    (
        "get",
        get,
        ("sage get core", "sage get practices testing", 'sage get "testing#fixtures"'),
    ),
    (
        "context",
        context,
        (
            'sage context coding --task "retry failed payments" --files src/pay.py',
            "sage context reviewing --explain",
        ),
    ),
    ("check", check, ("sage check", "sage check --fail-on warning --format github")),
    ("ls", ls, ("sage ls", "sage ls --status draft --sort updated")),
    ("scope", scope, ("sage scope src/orders/models.py",)),
    ("info", info, ("sage info", "sage info --json")),
    ("page", page, ("sage page", "sage page --no-browser --port 8800")),
    ("eval", evaluate_search, ("sage eval", "sage eval --compare off,on")),
    ("embed", embed, ("sage embed",)),
    (
        "export",
        export,
        (
            "sage export agents",
            "sage export cursor --layer core --budget 1500",
            "sage export --check",
        ),
    ),
    (
        "note",
        note,
        (
            'sage note "Label calls need an idempotency key" --type gotcha',
            "sage note --file 'src/labels/**' --tag carriers",
        ),
    ),
    ("accept", accept, ("sage accept n7k2m9",)),
    ("resolve", resolve, ('sage resolve n7k2m9 --reason "fixed in 2.4"',)),
    ("supersede", supersede, ("sage supersede n7k2m9 practices/retries",)),
    ("related", related, ("sage related practices/retries",)),
    ("duplicates", find_duplicates, ("sage duplicates --least 0.8",)),
    ("stats", stats, ("sage stats", "sage stats --log usage.jsonl --json")),
    ("care", care, ("sage care", "sage care --only review,code --format markdown")),
    (
        "install",
        install,
        ("sage install claude-code", "sage install cursor --scope user --write"),
    ),
    ("uninstall", uninstall, ("sage uninstall claude-code --write",)),
    ("doctor", doctor, ("sage doctor",)),
    ("serve", serve, ("sage serve", "sage serve --http --port 8000")),
    (
        "publish",
        publish,
        ("sage publish --url https://search.example.com", "sage publish --source payments"),
    ),
    ("hook", hook, ("sage hook --host claude-code",)),
)
_OF_OPERATORS = ("info", "serve", "publish")
for _name, _function, _lines in _COMMANDS:
    _class = OperatorCommand if _name in _OF_OPERATORS else Command
    app.command(_name, cls=_class, epilog=examples(*_lines))(_function)
app.add_typer(tags_app, name="tags", epilog=examples("sage tags suggest practices/retries"))
app.add_typer(tokens_app, name="token", epilog=examples("sage token create alice --expires 90d"))
app.command("usage", cls=Command, epilog=examples("sage usage --log usage.jsonl"))(usage)
