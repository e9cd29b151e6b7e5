"""The commands by which knowledge grows: draft a note, accept it, resolve it, replace it.

They write one page below the layers and say so; committing and review are git's. Imports stand
inside the commands.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli.meaning import kept_nearness
from sage.cli.options import Json, Quiet, Root, Verbose, opened
from sage.cli.terminal import print_json, print_line, print_note
from sage.errors import InvalidInput

if TYPE_CHECKING:
    from sage.knowledge import KnowledgeBase
    from sage.notes.changes import PageChange
    from sage.notes.known import Known

Page = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a page, or its topic.", show_default=False)
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept on the page.")]


def note(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT",
            help="What was learned; without it stdin is read, or your editor opened.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="gotcha, bug_fix, decision, discovery, trade_off, plan, guide or reference.",
        ),
    ] = "discovery",
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="Its title.", show_default="its first sentence")
    ] = "",
    file: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Files it is about; may be repeated."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="A tag; may be repeated.")
    ] = None,
    source: Annotated[
        str, typer.Option(metavar="TEXT", help="Where it was learned: a link, a person.")
    ] = "",
    owner: Annotated[str, typer.Option(metavar="NAME", help="Who looks after it.")] = "",
    review_by: Annotated[
        str, typer.Option(metavar="DAY", help="When to look at it again, as 2027-01-31.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write it without asking.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the page and what is known; write nothing.")
    ] = False,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Draft a page from what you learned; shows what is known."""
    from sage.notes.draft import Note, drafted, write
    from sage.notes.known import known_about

    learned = Note(
        text if text is not None else _text_from_elsewhere(),
        kind.replace("-", "_"),
        title,
        tuple(file or ()),
        tuple(tag or ()),
        source,
        owner,
        review_by,
    )
    with opened(root) as knowledge:
        draft = drafted(learned, knowledge.settings, _today())
        known = known_about(learned, knowledge.documents(), nearness=kept_nearness(knowledge))
        if not as_json:
            _print_known(known)
        is_written = not dry_run and (yes or as_json or _is_wanted(draft.path))
        if is_written:
            write(draft, knowledge.settings)
    if as_json:
        print_json(
            {
                "id": draft.id,
                "path": draft.path,
                "topic": draft.topic,
                "written": is_written,
                "page": draft.page,
                "known": [one.answer for one in known],
            }
        )
    elif is_written:
        print_line((f"{draft.id}  ", "bold"), (f"written: {draft.path}", "green"))
        print_note(f"it is a draft until somebody reviews it and runs: sage accept {draft.id}")
    elif dry_run:
        for line in draft.page.splitlines():
            print_line((line, ""))
    else:
        print_line(("Nothing was written.", ""))


def accept(
    page: Page,
    review_by: Annotated[
        str, typer.Option(metavar="DAY", help="When to look at it again, as 2027-01-31.")
    ] = "",
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Confirm that a page is right; a draft becomes settled."""
    from sage.notes.changes import accepted, page_of

    with opened(root) as knowledge:
        document = page_of(knowledge.documents(), page)
        change = accepted(knowledge.settings, document, _today(), review_by)
        _carry_out(knowledge, change, as_json)


def resolve(
    page: Page,
    status: Annotated[
        str, typer.Option(metavar="STATUS", help="resolved or superseded.")
    ] = "resolved",
    by: Annotated[str, typer.Option("--by", metavar="ID", help="The page that replaces it.")] = "",
    reason: Reason = "",
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Mark a page as resolved; it can still be found."""
    from sage.notes.changes import page_of, resolved

    if status not in ("resolved", "superseded"):
        raise InvalidInput(f"--status is {status!r}; use resolved or superseded")
    if (status == "superseded") != bool(by):
        raise InvalidInput("--status superseded needs --by ID, and only it takes one")
    if by:
        supersede(page, by, reason, as_json, root)
        return
    with opened(root) as knowledge:
        document = page_of(knowledge.documents(), page)
        change = resolved(knowledge.settings, document, reason, _today())
        _carry_out(knowledge, change, as_json)


def supersede(
    page: Page,
    by: Annotated[str, typer.Argument(metavar="BY", help="The id or topic that replaces it.")],
    reason: Reason = "",
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Mark a page as replaced by another one."""
    from sage.notes.changes import page_of, superseded

    with opened(root) as knowledge:
        documents = knowledge.documents()
        old, new = page_of(documents, page), page_of(documents, by)
        change = superseded(knowledge.settings, documents, old, new, reason)
        _carry_out(knowledge, change, as_json)


def _carry_out(knowledge: "KnowledgeBase", change: "PageChange", as_json: bool) -> None:
    from sage.notes.changes import carry_out

    carry_out(knowledge.settings, change)
    if as_json:
        path = change.document.path
        print_json({"path": path, "topic": change.document.topic, "changed": change.is_needed})
    else:
        print_line((change.said, "green"), (f"  ({change.document.path})", "dim"))


def _text_from_elsewhere() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.read(1_000_000)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise InvalidInput("say what was learned: as an argument, on stdin, or set EDITOR")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "note.md")
        path.write_text("", "utf-8")
        subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603 - the user's own
        return path.read_text("utf-8", "replace")


def _is_wanted(path: str) -> bool:
    """Whether to write; without anybody to ask, yes: the command was meant."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return True
    return typer.confirm(f"Write {path}?", default=True, err=True)


def _print_known(known: Sequence["Known"]) -> None:
    if not known:
        return
    print_line(("What is known already (look whether it says the same, or the opposite):", "bold"))
    for one in known:
        near = f" {one.likeness:.0%}" if one.likeness else ""
        print_line((f"  {one.why}{near}: ", "yellow"), (f"{one.topic}  {one.title}", ""), indent=4)
        if one.sentence:
            print_line((f"    “{one.sentence}”", "dim"), indent=4)


def _today() -> date:
    return date.today()  # noqa: DTZ011 - the user's own day
