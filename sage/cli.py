"""Typer's home: the `sage` command. Each command asks the knowledge base and prints its answer.

Imports stand inside the commands: `sage --help` and `sage get` must not pay for the server.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sage import __version__, cli_server, cli_team
from sage.bounds import (
    ALL_LAYERS,
    DEFAULT_BUDGET,
    DEFAULT_LANGUAGE,
    DEFAULT_MAX_TOKENS,
    DEFAULT_RESULTS,
)
from sage.cli_options import (
    Json,
    Quiet,
    Root,
    Verbose,
    command,
    complete_layers,
    complete_task_types,
    complete_topics,
    opened,
    set_loudness,
)
from sage.console import (
    begin_notes,
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

app = typer.Typer(
    name="sage",
    help="The knowledge your team keeps in .knowledge, for people and agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; errors become one line on stderr and an exit code."""
    _write_utf8()
    try:
        app(prog_name="sage")
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
    version: Annotated[  # noqa: ARG001 - its callback acts before any command is looked for
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """The knowledge your team keeps in .knowledge, for people and agents."""
    begin_notes()
    set_loudness(quiet, verbose)


@app.command()
@command
def get(
    layer: Annotated[str, typer.Argument(help="A layer, or all.", autocompletion=complete_layers)],
    topic: Annotated[
        str | None,
        typer.Argument(
            help="A name, path, title, folder, or name#heading.", autocompletion=complete_topics
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of content.")] = DEFAULT_MAX_TOKENS,
    timeout_ms: Annotated[int, typer.Option(help="Longest time it may take.", min=1)] = 10_000,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Read a layer, a document or a section."""
    with opened(root) as knowledge:
        deadline = Deadline(timeout_ms)
        answer = knowledge.get(layer, topic, max_tokens=max_tokens, deadline=deadline)
    print_json(answer) if as_json else print_knowledge(answer)


@app.command()
@command
def search(
    query: Annotated[str, typer.Argument(help="A question or words; see the search guide.")],
    limit: Annotated[int, typer.Option(help="Most results.")] = DEFAULT_RESULTS,
    layer: Annotated[
        str, typer.Option(help="A layer, or all.", autocompletion=complete_layers)
    ] = ALL_LAYERS,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each result owes its place to.")
    ] = False,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Find the documents that answer a question."""
    with opened(root) as knowledge:
        answer = knowledge.search(query, limit=limit, layer=layer)
        reasons = knowledge.explain(query, limit=limit, layer=layer) if explain else []
    if as_json:
        print_json(answer)
    elif explain:
        print_reasons(reasons)
    else:
        print_results(query, answer)


@app.command("eval")
@command
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

    with opened(root) as knowledge:
        queries = read_golden_file(file or knowledge.settings.knowledge_dir / "eval.yaml")
        result = evaluate(queries, knowledge.topics_for, limit)
    print_json(result.as_object()) if as_json else print_evaluation(result)
    Floors(min_hit_rate, min_mrr, min_ndcg).check(result)


@app.command()
@command
def context(
    task_type: Annotated[
        str,
        typer.Argument(
            help="What is being done: coding, debugging, …", autocompletion=complete_task_types
        ),
    ],
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
    with opened(root) as knowledge:
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
@command
def info(as_json: Json = False, root: Root = None) -> None:
    """Show what is served and whether anything is wrong."""
    with opened(root) as knowledge:
        knowledge.warm(progress=index_progress())
        answer = knowledge.info()
    print_json(answer) if as_json else print_info(answer)


cli_server.register(app)
cli_team.register(app)
