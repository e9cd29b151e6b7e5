"""The commands that judge a knowledge base: `check` its pages, `eval` its search.

Imports stand inside the commands: neither pays for the other's.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sage.cli.meaning import compare, print_comparison
from sage.cli.options import Json, Quiet, Root, Verbose, opened, settings_at
from sage.cli.output import print_evaluation, print_report, print_rules
from sage.cli.terminal import print_json, print_note
from sage.errors import InvalidInput
from sage.values import DEFAULT_RESULTS

_LEVELS = ("note", "warning", "error")
_FORMATS = ("text", "json", "sarif", "github")


def check(
    level: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="Show this level and above: note, warning or error."),
    ] = "warning",
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Exit with 1 for this level and above, or never.",
            show_default="error",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, json, sarif or github.")
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    stale_months: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Report pages older than this; 0 for none.", show_default="12"
        ),
    ] = None,
    max_page_tokens: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Report larger pages.", show_default="8000"),
    ] = None,
    max_section_tokens: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Report larger sections.", show_default="1500"),
    ] = None,
    list_rules: Annotated[bool, typer.Option("--rules", help="List the rules instead.")] = False,
    rule: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show the findings of one rule only.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every finding, also of many.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Findings known before: not shown, and failing nothing."),
    ] = None,
    new_baseline: Annotated[
        Path | None,
        typer.Option("--write-baseline", metavar="FILE", help="Write all findings to such a file."),
    ] = None,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Find dead links, wrong front matter, secrets and old pages."""
    from datetime import date

    from sage.check.baseline import read_baseline, write_baseline
    from sage.check.reports import render, repository_prefix
    from sage.check.rules import level_named, rules
    from sage.check.run import check_knowledge, only_new
    from sage.export.files import exports_of

    if list_rules:
        print_rules()
        return
    least = level_named(_one_of("--level", level, _LEVELS))
    form = "json" if as_json else _one_of("--format", form, _FORMATS)
    flags = {
        "check.stale_months": stale_months,
        "check.max_page_tokens": max_page_tokens,
        "check.max_section_tokens": max_section_tokens,
        "check.fail_on": fail_on,
    }
    settings = settings_at(root, **flags)
    if rule is not None:
        _one_of("--rule", rule, tuple(rules()))
    today = date.today()  # noqa: DTZ011 - the user's own day
    report = check_knowledge(settings, today, exports_of)
    if new_baseline is not None:
        number = write_baseline(new_baseline.absolute(), report.problems, settings.root)
        print_note(f"{number} findings are in {new_baseline}; only others fail with --baseline")
        return
    if baseline is not None:
        report = only_new(report, read_baseline(baseline.absolute()))
    if form == "text":
        print_report(report, least, rule, show_all)
    else:
        prefix = repository_prefix(settings.root, os.environ)
        sys.stdout.write(render(report, form, least, prefix) + "\n")
    failing = settings.check.fail_on
    if failing != "never" and report.at_least(level_named(failing)):
        raise typer.Exit(1)


def evaluate_search(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Questions and the topics that answer them, in YAML.",
            show_default=".knowledge/eval.yaml",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many results count.")
    ] = DEFAULT_RESULTS,
    within: Annotated[
        int, typer.Option(metavar="NUMBER", help="The last place that is a hit.", min=1)
    ] = 3,
    min_hit_rate: Annotated[
        float, typer.Option(metavar="NUMBER", help="Fail below this hit rate.")
    ] = 0.0,
    min_mrr: Annotated[
        float, typer.Option(metavar="NUMBER", help="Fail below this mean reciprocal rank.")
    ] = 0.0,
    min_ndcg: Annotated[float, typer.Option(metavar="NUMBER", help="Fail below this nDCG.")] = 0.0,
    compared: Annotated[
        str,
        typer.Option(
            "--compare", metavar="OFF,ON", help="Search by words alone and by meaning as well."
        ),
    ] = "",
    as_json: Json = False,
    root: Root = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
) -> None:
    """Measure how well search answers your team's own questions."""
    from sage.search.evaluation import Floors, evaluate, read_golden_file

    floors = Floors(min_hit_rate, min_mrr, min_ndcg)
    if compared:
        found = compare(root, compared, file, limit, within)
        shown = {value: one.as_object() for value, one in found.items()}
        print_json({"compared": shown}) if as_json else print_comparison(found)
        floors.check(list(found.values())[-1])
        return
    with opened(root) as knowledge:
        if knowledge.meaning is not None:
            knowledge.meaning.recall()
        queries = read_golden_file(file or knowledge.settings.knowledge_dir / "eval.yaml")
        result = evaluate(queries, knowledge.topics_for, limit, within)
    print_json(result.as_object()) if as_json else print_evaluation(result)
    floors.check(result)


def _one_of(option: str, value: str, choices: tuple[str, ...]) -> str:
    if value in choices:
        return value
    from sage.errors import did_you_mean

    close = did_you_mean(value, choices)
    raise InvalidInput(f"{option} is {value!r}; use one of {', '.join(choices)}{close}")
