"""Typer's home: the `sage` command. Each command asks the knowledge base and prints its answer.

Imports stand inside the commands: `sage --help` and `sage get` must not pay for the server.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage import __version__, cli_server, cli_team
from sage.bounds import (
    ALL_LAYERS,
    DEFAULT_BUDGET,
    DEFAULT_LANGUAGE,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
)
from sage.console import (
    index_progress,
    print_choices,
    print_content,
    print_error,
    print_evaluation,
    print_info,
    print_json,
    print_knowledge,
    print_reasons,
    print_results,
)
from sage.deadline import Deadline
from sage.errors import SageError

if TYPE_CHECKING:
    from sage.knowledge import KnowledgeBase
    from sage.settings import Settings

app = typer.Typer(
    name="sage",
    help="The knowledge your team keeps in .knowledge, for people and agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Root = Annotated[
    Path | None,
    typer.Option(
        "--root", help="The repository that holds .knowledge.", show_default="found from here"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the exact object of the tool.")]


def main() -> None:
    """Run the command line; errors become one line on stderr and an exit code."""
    _write_utf8()
    try:
        app()
    except SageError as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe went away (`sage get | head`): nothing is wrong.
        sys.stderr.close()


def _write_utf8() -> None:
    """Knowledge is UTF-8 whatever the terminal's locale says."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The knowledge your team keeps in .knowledge, for people and agents."""


@app.command()
def get(
    layer: Annotated[str, typer.Argument(help="A layer, or all.")],
    topic: Annotated[
        str | None, typer.Argument(help="A name, path, title, folder, or name#heading.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of content.")] = DEFAULT_MAX_TOKENS,
    timeout_ms: Annotated[int, typer.Option(help="Longest time it may take.", min=1)] = 10_000,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Read a layer, a document or a section."""
    with _opened(root) as knowledge:
        deadline = Deadline(timeout_ms)
        answer = knowledge.get(layer, topic, max_tokens=max_tokens, deadline=deadline)
    print_json(answer) if as_json else print_knowledge(answer)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question or words; see the search guide.")],
    limit: Annotated[int, typer.Option(help="Most results.")] = DEFAULT_RESULTS,
    layer: Annotated[str, typer.Option(help="A layer, or all.")] = ALL_LAYERS,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each result owes its place to.")
    ] = False,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Find the documents that answer a question."""
    with _opened(root) as knowledge:
        answer = knowledge.search(query, limit=limit, layer=layer)
        reasons = knowledge.explain(query, limit=limit, layer=layer) if explain else []
    if as_json:
        print_json(answer)
    elif explain:
        print_reasons(reasons)
    else:
        print_results(query, answer)


@app.command("eval")
def evaluate_search(
    file: Annotated[
        Path | None,
        typer.Argument(help="Golden queries in YAML; by default .knowledge/eval.yaml."),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many results count.")] = DEFAULT_RESULTS,
    min_hit_rate: Annotated[float, typer.Option(help="Fail below this hit rate.")] = 0.0,
    min_mrr: Annotated[float, typer.Option(help="Fail below this mean reciprocal rank.")] = 0.0,
    min_ndcg: Annotated[float, typer.Option(help="Fail below this nDCG.")] = 0.0,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Measure how well search answers your team's own questions."""
    from sage.evaluation import Floors, evaluate, read_golden_file

    with _opened(root) as knowledge:
        queries = read_golden_file(file or knowledge.settings.knowledge_dir / "eval.yaml")
        result = evaluate(queries, knowledge.topics_for, limit)
    print_json(result.as_object()) if as_json else print_evaluation(result)
    Floors(min_hit_rate, min_mrr, min_ndcg).check(result)


@app.command()
def context(
    task_type: Annotated[str, typer.Argument(help="What is being done: coding, debugging, …")],
    task: Annotated[str | None, typer.Option(help="What is being done, in your words.")] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(help="Files being worked on; repeat it or separate them by commas."),
    ] = None,
    language: Annotated[str, typer.Option(help="The programming language.")] = DEFAULT_LANGUAGE,
    budget: Annotated[int, typer.Option(help="Most tokens.")] = DEFAULT_BUDGET,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what was chosen and why instead.")
    ] = False,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Print what to read before a task, within a token budget."""
    current = [name for given in files or [] for name in given.split(",") if name.strip()]
    with _opened(root) as knowledge:
        answer = knowledge.context(
            task_type, task=task, current_files=current, language=language, token_budget=budget
        )
    if as_json:
        print_json(answer)
    elif explain:
        print_choices(answer)
    else:
        print_content(answer["context"])


@app.command()
def info(as_json: Json = False, root: Root = None) -> None:
    """Show what is served and whether anything is wrong."""
    with _opened(root) as knowledge:
        knowledge.warm(progress=index_progress())
        answer = knowledge.info()
    print_json(answer) if as_json else print_info(answer)


def _settings(root: Path | None) -> "Settings":
    from sage.settings import load_settings

    return load_settings({"root": root})


@contextmanager
def _opened(root: Path | None) -> Iterator["KnowledgeBase"]:
    """The knowledge base of a command; what is worth keeping is kept when it ends."""
    from sage.knowledge import open_knowledge

    knowledge = open_knowledge(_settings(root))
    try:
        yield knowledge
    finally:
        knowledge.close()


cli_server.register(app)
cli_team.register(app)
