"""The command `publish`, and where a cluster is: the same words for those who serve from it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sage.cli.options import Json, Quiet, Root, Verbose, opened
from sage.cli.terminal import print_json, print_note, progress_bar
from sage.errors import counted
from sage.values import OWN

if TYPE_CHECKING:
    from sage.cluster.connection import ClusterOptions
    from sage.publish.plan import Published
    from sage.publish.publisher import Progress


def _option(name: str, value: str, about: str, **more: Any) -> Any:
    variable = "SAGE_OPENSEARCH_" + name.removeprefix("--").replace("-", "_").upper()
    return typer.Option(name, envvar=variable, metavar=value, help=about, **more)


Urls = Annotated[
    list[str] | None,
    _option("--url", "URL", "A node of the OpenSearch cluster; repeat it for others."),
]
BaseName = Annotated[str, _option("--base", "NAME", "The name of the base in the cluster.")]
Credentials = Annotated[
    Path | None,
    _option("--credentials", "FILE", "File with user:password, in place of the environment."),
]
CaFile = Annotated[
    Path | None, _option("--ca-file", "FILE", "Certificates to trust, in place of the system's.")
]


def cluster_at(
    urls: list[str] | None, base: str, credentials: Path | None, ca_file: Path | None
) -> "ClusterOptions":
    """The cluster that the options name."""
    from sage.cluster.options import cluster_options

    return cluster_options(urls or (), base, os.environ, credentials, ca_file)


def publish(
    root: Root = None,
    url: Urls = None,
    base: BaseName = "sage",
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="NAME",
            help="This repository's name among several that publish into one base.",
        ),
    ] = OWN,
    credentials: Credentials = None,
    ca_file: CaFile = None,
    shards: Annotated[
        int,
        typer.Option(
            "--shards",
            metavar="NUMBER",
            min=1,
            max=64,
            help="Shards of an index that is written from the first page on; "
            "a copy, into which only changes are written, has those of its original.",
        ),
    ] = 1,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0,
            help="Seconds that a generation stays when it is no longer served.",
        ),
    ] = 300.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Only remove what is no longer served.")
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Publish no pages at all: in place of those that are served, or as a new source.",
        ),
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Write every page anew, whatever is served.")
    ] = False,
    as_json: Json = False,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Publish the knowledge base to an OpenSearch cluster."""
    from sage.cluster.connection import PatientConnection, soon
    from sage.cluster.generations import refuse_unknown
    from sage.cluster.schema import checked_source
    from sage.publish.publisher import Publisher, PublishOptions

    options = PublishOptions(checked_source(source), dry_run, grace, shards, allow_empty, anew)
    cluster = cluster_at(url, base, credentials, ca_file)
    with opened(root) as knowledge, PatientConnection(cluster) as connection:
        publisher = Publisher(knowledge, connection, options, _progress())
        if prune:
            refuse_unknown(connection, options.source, soon())
            gone = publisher.prune()
            if as_json:
                print_json({"would_prune" if dry_run else "pruned": list(gone)})
            else:
                _tell_pruned(gone, "would remove" if dry_run else "removed")
            return
        done = publisher.publish()
    if as_json:
        from dataclasses import asdict

        from sage.status import problems_info

        print_json({**asdict(done), "problems": problems_info(done.problems)})
    else:
        _tell(done, dry_run)
    _note_problems(done)


def _progress() -> "Progress":
    """A bar for each kind of work when a person is watching."""
    bars: dict[str, Callable[[int, int], None] | None] = {}

    def show(work: str, done: int, total: int) -> None:
        if work not in bars:
            bars[work] = progress_bar(work)
        bar = bars[work]
        if bar is not None:
            bar(done, total)

    return show


def _tell(done: "Published", dry_run: bool) -> None:
    size = f"{counted(done.documents, 'page')}, {counted(done.sections, 'section')}"
    if not (done.added or done.changed or done.removed or done.settings_changed or done.moved):
        typer.echo(f"{done.source}: nothing changed ({size}); {done.index} is served")
    else:
        verb = "would be published" if dry_run else "is served"
        changes = f"{done.added:,} added, {done.changed:,} changed, {done.removed:,} removed"
        if done.settings_changed:
            changes += ", the settings changed"
        typer.echo(f"{done.source}: {changes} ({size}); {done.index} {verb}")
    if done.pruned:
        _tell_pruned(done.pruned)


def _note_problems(done: "Published") -> None:
    """Name what is not published as it is written; all of it is told by `sage check`."""
    from sage.status import SHOWN_PROBLEMS

    for problem in done.problems[:SHOWN_PROBLEMS]:
        print_note(str(problem))
    if done.problems:
        number = counted(len(done.problems), "problem")
        print_note(f"{number}: not all is published as it is written; run: sage check")


def _tell_pruned(gone: tuple[str, ...], verb: str = "removed") -> None:
    named = f"{': ' if gone else ''}{', '.join(gone)}"
    typer.echo(f"{verb} {counted(len(gone), 'old generation')}{named}")
