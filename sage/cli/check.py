"""The commands that judge a knowledge base: `check` its pages, `eval` its search.

Imports stand inside the commands: neither pays for the other's.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sage.cli.meaning import compare, print_comparison
from sage.cli.options import Json, Quiet, Root, Verbose, opened, settings_at
from sage.cli.output import BLANK
from sage.cli.terminal import is_quiet, print_json, print_line, print_note, print_rows, print_table
from sage.errors import InvalidInput, counted
from sage.values import DEFAULT_RESULTS

if TYPE_CHECKING:
    from sage.check.run import Report
    from sage.documents.problems import Level
    from sage.search.evaluation import Evaluation

_LEVELS = ("note", "warning", "error")
_LEVEL_STYLES = {"error": "bold red", "warning": "yellow", "note": "blue"}
_MANY_PROBLEMS = 100
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
        typer.Option(metavar="NUMBER", help="Report pages with more tokens.", show_default="8000"),
    ] = None,
    max_section_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Report sections with more tokens.", show_default="1500"
        ),
    ] = None,
    list_rules: Annotated[
        bool, typer.Option("--rules", help="List the rules and check nothing.")
    ] = False,
    rule: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show the findings of one rule only.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every finding, however many.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Findings known before: they are not shown and fail nothing."
        ),
    ] = None,
    new_baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline", metavar="FILE", help="Write all findings to a file for --baseline."
        ),
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
        int, typer.Option(metavar="NUMBER", help="How many results of each search are looked at.")
    ] = DEFAULT_RESULTS,
    within: Annotated[
        int, typer.Option(metavar="NUMBER", help="The last rank that counts as a hit.", min=1)
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


def print_report(
    report: "Report", level: "Level", rule: str | None = None, whole: bool = False
) -> None:
    """How often each rule was broken, problems with their places, how to fix them, and the sums.

    Of many problems only the counts are shown, unless one rule or all of them are asked for.
    """
    from sage.check.reports import count_rows, fixes, place, summary

    shown = [one for one in report.at_least(level) if rule in (None, one.rule)]
    if len(shown) > _MANY_PROBLEMS and not whole and rule is None:
        print_rows(count_rows(shown))
        print_line(BLANK)
        print_line((summary(report, shown), "bold"))
        print_line(
            ("To see them: sage check --rule NAME, --all, or --format json > FILE", "dim"), indent=4
        )
        return
    for problem in shown:
        print_line(
            (f"{place(problem)}: ", "bold"),
            (problem.level, _LEVEL_STYLES[problem.level]),
            (f": {problem.message} ", ""),
            (f"[{problem.rule}]", "dim"),
            indent=4,
        )
    if is_quiet():
        return
    if shown:
        print_line(BLANK)
    for line in fixes(shown):
        print_line((line, "dim"), indent=4)
    print_line((summary(report, shown), "bold"))


def print_rules() -> None:
    """Every rule with its level and meaning."""
    from sage.check.rules import rules

    print_rows([(name, f"{rule.level}: {rule.about}") for name, rule in sorted(rules().items())])


def print_evaluation(result: "Evaluation") -> None:
    """The measures, and each query that did not find its first topic at once."""
    rows = [
        (str(one.best or "-"), one.query, ", ".join(one.expected))
        for one in result.outcomes
        if one.best != 1
    ]
    if rows:
        print_table(("rank", "query", "expected"), rows)
        print_line(BLANK)
    queries = counted(len(result.outcomes), "query", "queries")
    measures = f"MRR {result.mrr:.3f}, nDCG {result.ndcg:.3f}"
    print_line((f"{queries}: hit rate {result.hit_rate:.3f}, {measures}", ""))
