"""The commands that ask the knowledge base: `search`, `get`, `context`, `ls` and `info`.

Imports stand inside the commands: `sage get` must not pay for the search.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from sage.cli.options import (
    Json,
    Quiet,
    Root,
    Verbose,
    complete_layers,
    complete_task_types,
    complete_topics,
    is_given,
    opened,
    refuse_options,
)
from sage.cli.output import (
    print_choices,
    print_info,
    print_knowledge,
    print_pages,
    print_reasons,
    print_results,
    print_scopes,
)
from sage.cli.publish import BaseName, CaFile, Credentials, Urls, cluster_at
from sage.cli.terminal import index_progress, print_content, print_json
from sage.deadline import Deadline
from sage.values import (
    ALL_LAYERS,
    DEFAULT_ANSWER,
    DEFAULT_BUDGET,
    DEFAULT_MAX_TOKENS,
    DEFAULT_PAGES,
    DEFAULT_RESULTS,
)

if TYPE_CHECKING:
    from sage.cluster.connection import ClusterOptions
    from sage.knowledge import KnowledgeBase

Language = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The programming language; else the repository's own."),
]


class FilterOptions(TypedDict):
    """What a page must be to be found."""

    types: Sequence[str]
    tags: Sequence[str]
    status: str | None
    source: str | None


_CLUSTER_MS = 5_000
"""So long a command waits for a cluster to say what it has."""


def show_progress(knowledge: "KnowledgeBase") -> None:
    """Bring the index up to date under the eyes of whoever is watching, as the answer would."""
    progress = index_progress()
    if progress is not None:
        knowledge.warm(progress=progress)
    if knowledge.meaning is not None:
        knowledge.meaning.recall()


def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY", help="A question or words to look for; without any, a list."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="NUMBER", help="The most results.")
    ] = DEFAULT_RESULTS,
    layer: Annotated[
        str, typer.Option(metavar="LAYER", help="Only this layer.", autocompletion=complete_layers)
    ] = ALL_LAYERS,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only decision, gotcha, … pages; repeat it."),
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Only pages with this tag; repeat it."),
    ] = None,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only draft, superseded, … pages.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only pages of this source; own is the repository."),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(metavar="ORDER", help="relevance, date (newest first) or path."),
    ] = None,
    offset: Annotated[int, typer.Option(metavar="NUMBER", help="Skip this many.")] = 0,
    max_tokens: Annotated[
        int, typer.Option(metavar="NUMBER", help="The most tokens of the answer.")
    ] = DEFAULT_ANSWER,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why each result has its place.")
    ] = False,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Find the pages that answer a question."""
    query = " ".join(words or ())
    with opened(root) as knowledge:
        show_progress(knowledge)
        filters: FilterOptions = {
            "types": kinds or (),
            "tags": tags or (),
            "status": status,
            "source": source,
        }
        answer = knowledge.search(
            query,
            limit=limit,
            layer=layer,
            sort=sort,
            offset=offset,
            max_tokens=max_tokens,
            **filters,
        )
        reasons = knowledge.explain(query, limit=limit, layer=layer, **filters) if explain else []
        is_empty = not answer["total"] and not knowledge.topics(layer)
    if as_json:
        print_json(answer)
    elif explain:
        print_reasons(reasons)
    else:
        print_results(query, answer, is_empty)
    if answer["found"] == "no":
        raise typer.Exit(1)


def get(
    layer: Annotated[
        str,
        typer.Argument(
            metavar="LAYER",
            help="A layer, or all; a topic alone is looked for in all.",
            autocompletion=complete_layers,
        ),
    ],
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="A page's name, path or title, a folder, or name#heading.",
            autocompletion=complete_topics,
        ),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="NUMBER", help="The most tokens of content.")
    ] = DEFAULT_MAX_TOKENS,
    timeout_ms: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="Answer within this time, with what is read by then.", min=1
        ),
    ] = 10_000,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Read a layer, a page or a section."""
    with opened(root) as knowledge:
        if topic is None and layer not in (*knowledge.settings.layers, ALL_LAYERS):
            layer, topic = ALL_LAYERS, layer  # `sage get retries`
        deadline = Deadline(timeout_ms)
        answer = knowledge.get(layer, topic, max_tokens=max_tokens, deadline=deadline)
        if as_json:
            print_json(answer)
        else:
            print_knowledge(
                answer, lambda: {page.path: page.title for page in knowledge.documents()}
            )


def context(
    task_type: Annotated[
        str,
        typer.Argument(
            metavar="TASK_TYPE",
            help="coding, debugging, reviewing, planning, documenting, or one of your own.",
            autocompletion=complete_task_types,
        ),
    ],
    task: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What you are doing, in your own words.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="A file you are working on; repeat it or separate by commas."
        ),
    ] = None,
    language: Language = None,
    budget: Annotated[
        int, typer.Option(metavar="NUMBER", help="The most tokens of the whole answer as JSON.")
    ] = DEFAULT_BUDGET,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what was chosen and why, in place of the text.")
    ] = False,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Print what to read before a task, within a token budget."""
    current = [name for given in files or [] for name in given.split(",") if name.strip()]
    with opened(root) as knowledge:
        show_progress(knowledge)
        answer = knowledge.context(
            task_type, task=task, current_files=current, language=language, token_budget=budget
        )
    if as_json:
        print_json(answer)
    elif explain:
        print_choices(answer)
    else:
        print_content(answer["context"])
        if "note" in answer:
            typer.echo(answer["note"], err=True)


def scope(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="A file of the repository.")
    ],
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Print the pages that belong to a file, and why."""
    with opened(root) as knowledge:
        answers = [knowledge.scope(name) for name in files]
    if as_json:
        print_json(answers[0] if len(answers) == 1 else answers)
    else:
        print_scopes(answers)


def ls(
    layer: Annotated[
        str, typer.Option(metavar="LAYER", help="Only this layer.", autocompletion=complete_layers)
    ] = ALL_LAYERS,
    status: Annotated[
        str, typer.Option(metavar="STATUS", help="Only draft, superseded, … pages.")
    ] = "",
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Only decision, guide, … pages.")
    ] = "",
    tag: Annotated[str, typer.Option(metavar="TAG", help="Only pages with this tag.")] = "",
    source: Annotated[
        str, typer.Option(metavar="NAME", help="Only pages of this source; own is the repository.")
    ] = "",
    sort: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="topic, path, title, tokens, updated (oldest first) or date (newest first).",
        ),
    ] = "topic",
    limit: Annotated[int, typer.Option(metavar="NUMBER", help="The most pages.")] = DEFAULT_PAGES,
    offset: Annotated[int, typer.Option(metavar="NUMBER", help="Skip this many.")] = 0,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """List every page with its source, status, tokens and age."""
    from sage.page_list import PageFilter, list_pages

    with opened(root) as knowledge:
        wanted = PageFilter(status, kind, tag, sort, limit, offset, source)
        answer = list_pages(knowledge, layer, wanted)
    print_json(answer) if as_json else print_pages(answer, offset)


def info(
    context: typer.Context,
    as_json: Json = False,
    root: Root = None,
    url: Urls = None,
    base: BaseName = "sage",
    credentials: Credentials = None,
    ca_file: CaFile = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Show what is served and whether anything is wrong."""
    if url and (is_given(context, "url") or not is_given(context, "root")):
        refuse_options(context, ("root",), "is for files; leave out --root or --url")
        _info_of_cluster(cluster_at(url, base, credentials, ca_file), as_json)
        return
    refuse_options(context, ("base", "credentials", "ca_file"), "is for a cluster; add --url")
    with opened(root) as knowledge:
        knowledge.warm(progress=index_progress())
        if knowledge.meaning is not None:
            knowledge.meaning.recall()
        answer = knowledge.info()
    print_json(answer) if as_json else print_info(answer, knowledge.settings.root)


def _info_of_cluster(options: "ClusterOptions", as_json: bool) -> None:
    from sage.cluster.backend import open_cluster
    from sage.cluster.connection import Connection
    from sage.deadline import Deadline
    from sage.settings import rootless_settings

    settings = rootless_settings()
    with Connection(options) as connection:
        answer = open_cluster(connection, settings, Deadline(_CLUSTER_MS)).info()
    print_json(answer) if as_json else print_info(answer, options.shown)
