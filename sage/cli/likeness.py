"""The commands that show which pages belong together or say the same, and which tags fit."""

from typing import Annotated

import typer

from sage.cli.help import Command, examples
from sage.cli.meaning import kept_nearness
from sage.cli.options import Json, Quiet, Root, Verbose, opened
from sage.cli.terminal import print_json, print_line
from sage.errors import InvalidInput

Topic = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="A page: its topic, path or id.", show_default=False),
]
Limit = Annotated[int, typer.Option(metavar="NUMBER", help="Most lines.")]
tags_app = typer.Typer(help="Find tags for a page.", no_args_is_help=True, rich_markup_mode=None)


def related(
    topic: Topic,
    limit: Limit = 10,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """List the pages that belong to a page, and why."""
    from sage.notes.changes import page_of
    from sage.notes.related import Relations

    with opened(root) as knowledge:
        documents = knowledge.documents()
        page = page_of(documents, topic)
        found = Relations(documents).related(page, limit, kept_nearness(knowledge))
    if as_json:
        print_json({"related": [one._asdict() for one in found]})
        return
    for one in found:
        print_line((f"{one.score:.2f}  ", "dim"), (one.topic, "bold"), (f"  {one.title}", ""))
        print_line((f"      {'; '.join(one.reasons)}", "dim"), indent=6)
    if not found:
        print_line(("No page belongs to it.", ""))


def find_duplicates(
    least: Annotated[
        float, typer.Option(metavar="NUMBER", help="How alike, from 0 to 1, at least.")
    ] = 0.5,
    limit: Limit = 50,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """List pairs of sections that say the same."""
    from sage.notes.duplicates import duplicates

    if not 0.1 <= least <= 1:
        raise InvalidInput(f"--least is {least}; use a number from 0.1 to 1")
    with opened(root) as knowledge:
        found = duplicates(knowledge.documents(), least, kept_nearness(knowledge))
    if as_json:
        shown = [one.answer for one in found[:limit]]
        print_json({"duplicates": shown, "total": len(found)})
        return
    for one in found[:limit]:
        by = f"  by {one.by}" if one.by else ""
        said = (f"{one.first}  =  {one.second}", "")
        print_line((f"{one.likeness:.0%}  ", "bold"), said, (by, "yellow"))
        for sentence in one.sentences:
            print_line((f"      “{sentence}”", "dim"), indent=6)
    if len(found) > limit:
        print_line((f"and {len(found) - limit} more", "dim"))
    if not found:
        print_line(("No two sections say the same.", ""))


@tags_app.command("suggest", cls=Command, epilog=examples("sage tags suggest practices/retries"))
def suggest_tags(
    topic: Topic,
    limit: Limit = 8,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Suggest tags of the base that a page lacks."""
    from sage.notes.changes import page_of
    from sage.notes.related import Relations

    with opened(root) as knowledge:
        documents = knowledge.documents()
        found = Relations(documents).tags_for(page_of(documents, topic), limit)
    if as_json:
        print_json({"suggestions": [one._asdict() for one in found]})
        return
    for one in found:
        print_line(
            (f"{one.confidence:.0%}  ", "dim"), (one.tag, "bold"), (f"  {one.reason}", "dim")
        )
    if not found:
        print_line(("No tag of the base fits it better than those it has.", ""))


@tags_app.callback()
def _tags() -> None:
    """Find tags for a page."""
