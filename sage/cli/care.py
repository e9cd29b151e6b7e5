"""The commands of whoever looks after the base: `stats` in figures, `care` as a work list.

Imports stand inside the commands.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sage.cli.meaning import kept_nearness
from sage.cli.options import Json, Quiet, Root, Verbose, opened
from sage.cli.team import UsageFile
from sage.cli.terminal import print_json, print_line, print_rows, print_table
from sage.errors import ConfigError, InvalidInput, counted

if TYPE_CHECKING:
    from sage.care.stats import Branch, Stats
    from sage.care.usage import UsageSummary
    from sage.care.work_list import Task

_FORMATS = ("text", "json", "markdown")
_DEPTH = 2
_MOST_QUERIES = 50
_NEVER, _ANY = "never", "any"


def stats(
    log: UsageFile = None,
    depth: Annotated[
        int, typer.Option(metavar="NUMBER", help="Levels of the tree of topics.", min=1)
    ] = _DEPTH,
    top: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many lines of each list to show.", min=1)
    ] = 10,
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Show the base in figures: size, growth, use."""
    from sage.care.history import history_of
    from sage.care.stats import measure, take_stats
    from sage.deadline import no_deadline
    from sage.documents.source_roots import files_of

    today = _today()
    with opened(root) as knowledge:
        documents = knowledge.documents()
        paths = [document.path for document in documents]
        history = history_of(knowledge.settings.root, paths, today)
        listings = knowledge.library.refresh(knowledge.settings.layers, no_deadline())
        edited = {one.path: one.stamp.day for one in files_of(listings)}
        pages = measure(documents, knowledge.counter, history, edited)
        found = take_stats(pages, history, _usage(log, paths, top), today)
    print_json(found) if as_json else _print_stats(found, depth, top)


def care(
    only: Annotated[
        str,
        typer.Option(
            metavar="KINDS",
            help="review, code, unanswered, superseded, duplicate, orphan, unread, draft.",
            show_default="all of them",
        ),
    ] = "",
    fail_on: Annotated[
        str,
        typer.Option(metavar="KINDS", help="Exit with 1 when there is any of these, or never."),
    ] = _ANY,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, json or markdown.")
    ] = "text",
    log: UsageFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """List what needs attention, with the commands for it."""
    from sage.care.evidence import gather_evidence
    from sage.care.report import markdown_report
    from sage.care.work_list import KINDS, work_list

    form = "json" if as_json else form
    if form not in _FORMATS:
        raise InvalidInput(f"--format is {form!r}; use one of {', '.join(_FORMATS)}")
    wanted = _kinds("--only", only, KINDS) or tuple(KINDS)
    failing = () if fail_on == _NEVER else _kinds("--fail-on", fail_on, KINDS, _ANY)
    today = _today()
    with opened(root) as knowledge:
        paths = [document.path for document in knowledge.documents()]
        usage = _usage(log, paths, _MOST_QUERIES)
        nearness = partial(kept_nearness, knowledge)
        tasks = work_list(gather_evidence(knowledge, usage, today, nearness), wanted)
    if form == "json":
        print_json({"tasks": [task._asdict() for task in tasks], "total": len(tasks)})
    elif form == "markdown":
        sys.stdout.write(markdown_report(tasks, today))
    else:
        _print_tasks(tasks, KINDS)
    if any(task.kind in failing for task in tasks):
        raise typer.Exit(1)


def _usage(log: Path | None, paths: Sequence[str], top: int) -> "UsageSummary | None":
    from sage.care.usage import read_usage, summarise

    if log is None:
        return None
    if not log.is_file():
        raise ConfigError(f"--log: there is no file {log}; a server writes one with --usage-log")
    return summarise(read_usage(log), paths, top)


def _kinds(
    option: str, given: str, known: Mapping[str, str], everything: str = ""
) -> tuple[str, ...]:
    from sage.errors import did_you_mean

    names = [name.strip() for name in given.split(",") if name.strip()]
    if everything and names == [everything]:
        return tuple(known)
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"{option}: there is no {name!r}; use {', '.join(known)}"
                f"{did_you_mean(name, tuple(known))}"
            )
    return tuple(names)


def _print_tasks(tasks: Sequence["Task"], kinds: Mapping[str, str]) -> None:
    for kind, heading in kinds.items():
        of_kind = [task for task in tasks if task.kind == kind]
        if not of_kind:
            continue
        print_line((f"{heading} ({len(of_kind)})", "bold"))
        for task in of_kind:
            where = f"{task.path}:{task.line}  " if task.path else ""
            print_line((f"  {where}", "dim"), (task.what, ""), indent=4)
            print_line((f"      {task.command}", "green"), indent=6)
    print_line((f"{len(tasks)} to do" if tasks else "Nothing to do.", "dim"))


def _print_stats(found: "Stats", depth: int, top: int) -> None:
    print_rows(
        [
            ("pages", f"{found['pages']:,}"),
            ("sections", f"{found['sections']:,}"),
            ("tokens", f"{found['tokens']:,}"),
        ]
    )
    for name, shares in found["by"].items():
        _print_shares(f"by {name}", shares, top)
    rows = list(_branches(found["topics"], depth))
    print_line(("", ""))
    print_table(("topics", "pages", "tokens"), rows or [("none", "", "")])
    if "growth" in found:
        _print_growth(found["growth"], top)
    if "usage" in found:
        _print_usage(found["usage"], top)


def _print_shares(title: str, shares: Sequence[Any], top: int) -> None:
    from sage.care.pictures import bar

    most = max((share["pages"] for share in shares), default=0)
    print_line(("", ""))
    print_table(
        (title, "pages", "sections", "tokens", ""),
        [
            (
                share["name"],
                f"{share['pages']:,}",
                f"{share['sections']:,}",
                f"{share['tokens']:,}",
                bar(share["pages"], most),
            )
            for share in shares[:top]
        ],
    )


def _branches(
    branches: Sequence["Branch"], depth: int, indent: str = ""
) -> Iterator[tuple[str, ...]]:
    for branch in branches:
        yield f"{indent}{branch['name']}", f"{branch['pages']:,}", f"{branch['tokens']:,}"
        if depth > 1:
            yield from _branches(branch["children"], depth - 1, f"{indent}  ")


def _print_growth(growth: Any, top: int) -> None:
    from sage.care.pictures import sparkline

    months = growth["months"]
    changed = [month["added"] + month["changed"] + month["removed"] for month in months]
    span = f"{months[0]['month']} to {months[-1]['month']}"
    pages = [month["pages"] for month in months]
    print_line(("", ""))
    rows = [
        ("growth", f"{sparkline(pages)}  {pages[0]:,} to {counted(pages[-1], 'page')}, {span}"),
        ("churn", f"{sparkline(changed)}  {counted(sum(changed), 'change')} of pages"),
    ]
    rows += [
        ("hot" if not at else "", f"{page['commits']} x {page['topic']}")
        for at, page in enumerate(growth["hot"][:top])
    ]
    print_rows(rows)


def _print_usage(usage: Any, top: int) -> None:
    from sage.care.pictures import sparkline

    days = [count for _, count in usage["days"]]
    calls = ", ".join(f"{count:,} {tool}" for tool, count in sorted(usage["calls"].items()))
    rows = [("calls", f"{sparkline(days)}  {calls or 'none'}, since {usage['since'] or 'never'}")]
    rows += _listed("read", [f"{p['read']} x {p['path']}" for p in usage["most_used"] if p["read"]])
    rows += _listed("asked", [f"{n} x {query} (found {f})" for query, n, f in usage["questions"]])
    rows.append(("not found", counted(usage["empty_searches"], "search", "searches")))
    rows += _listed("", [f"{count} x {query}" for query, count in usage["empty_queries"]])
    rows.append(("never read", counted(len(usage["never_read"]), "page")))
    rows += _listed("", usage["never_read"][:top])
    print_line(("", ""))
    print_rows(rows)


def _listed(title: str, values: Sequence[str]) -> list[tuple[str, str]]:
    return [(title if not at else "", value) for at, value in enumerate(values)]


def _today() -> date:
    return date.today()  # noqa: DTZ011 - the user's own day
