"""What a check found, in the forms that people and programs read: text, JSON, SARIF, GitHub.

Paths are relative to the root; for tools that count from the repository a prefix is put before.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sage import __version__
from sage.check.rules import LEVELS, Rule, rules
from sage.check.run import Report
from sage.documents.problems import Level, Problem
from sage.errors import counted
from sage.sanitize import clean, json_text

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report, form: str, level: Level, prefix: str = "") -> str:
    """The problems of a level and above in one of the forms."""
    shown = report.at_least(level)
    if form == "json":
        return json_text(as_json(report, shown), indent=2)
    if form == "sarif":
        return json_text(_sarif(shown, prefix), indent=2)
    lines = _annotations(shown, prefix) if form == "github" else text_lines(report, shown)
    return "\n".join(lines)


def repository_prefix(root: Path, environment: Mapping[str, str]) -> str:
    """The path from the repository to the root, for tools that count from the repository."""
    given = environment.get("GITHUB_WORKSPACE")
    tops = [Path(given).resolve()] if given else []
    tops += [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
    for top in tops:
        if root.is_relative_to(top):
            path = root.relative_to(top).as_posix()
            return "" if path == "." else f"{path}/"
    return ""


def as_json(report: Report, shown: Sequence[Problem]) -> dict[str, Any]:
    """The problems as an object; the counts are of all levels."""
    known = rules()
    return {
        "pages": report.pages,
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "notes": report.count("note"),
        **({"known": report.known} if report.known else {}),
        "rules": dict(counts(shown)),
        "problems": [
            {
                "path": clean(problem.path),
                "line": problem.line,
                "rule": problem.rule,
                "level": problem.level,
                "message": clean(problem.message),
                "fix": known[problem.rule].fix,
            }
            for problem in shown
        ],
    }


def text_lines(report: Report, shown: Sequence[Problem]) -> Iterator[str]:
    """A line for each problem, how to fix each kind, and the sums."""
    for problem in shown:
        yield f"{place(problem)}: {problem.level}: {clean(problem.message)} [{problem.rule}]"
    if shown:
        yield ""
    yield from fixes(shown)
    yield summary(report, shown)


def counts(shown: Sequence[Problem]) -> list[tuple[str, int]]:
    """How often each rule was broken, the most frequent first."""
    counted = Counter(problem.rule for problem in shown)
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def count_rows(shown: Sequence[Problem]) -> list[tuple[str, str]]:
    """The counts with what each rule is about, for a table."""
    known = rules()
    pages = {rule: {p.path for p in shown if p.rule == rule} for rule, _ in counts(shown)}
    return [
        (rule, f"{number:,} on {counted(len(pages[rule]), 'page')}: {known[rule].about}")
        for rule, number in counts(shown)
    ]


def place(problem: Problem) -> str:
    """Where a problem is, as editors and terminals make it clickable."""
    path = clean(problem.path)
    return f"{path}:{problem.line}" if problem.line else path


def fixes(shown: Sequence[Problem]) -> Iterator[str]:
    """How to fix each kind of problem, once."""
    known = rules()
    names = sorted({problem.rule for problem in shown})
    width = max(map(len, names), default=0)
    for name in names:
        yield f"{name:<{width}}  {known[name].fix}"


def summary(report: Report, shown: Sequence[Problem]) -> str:
    """The sums in one line."""
    pages = counted(report.pages, "page")
    sums = ", ".join(counted(report.count(level), level) for level in reversed(LEVELS))
    rest = len(report.problems) - len(shown)
    more = f" ({rest} not shown: --level note)" if rest else ""
    old = f", {report.known} known before" if report.known else ""
    return f"{pages}: {sums}{old}{more}"


def _annotations(shown: Sequence[Problem], prefix: str) -> Iterator[str]:
    """Workflow commands, which GitHub shows beside the changed lines."""
    known = rules()
    names: dict[Level, str] = {"note": "notice", "warning": "warning", "error": "error"}
    for problem in shown:
        fields = {"file": prefix + clean(problem.path), "title": f"sage {problem.rule}"}
        if problem.line:
            fields["line"] = str(problem.line)
        given = ",".join(f"{name}={_escaped(value, True)}" for name, value in fields.items())
        words = f"{clean(problem.message)}. To fix it: {known[problem.rule].fix}."
        yield f"::{names[problem.level]} {given}::{_escaped(words)}"


def _escaped(text: str, in_field: bool = False) -> str:
    for character in "%\r\n" + (":," if in_field else ""):
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _sarif(shown: Sequence[Problem], prefix: str) -> dict[str, Any]:
    names = sorted({problem.rule for problem in shown})
    known = rules()
    driver = {
        "name": "sage",
        "semanticVersion": __version__,
        "rules": [_sarif_rule(known[name]) for name in names],
    }
    results = [_sarif_result(problem, names.index(problem.rule), prefix) for problem in shown]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.about},
        "help": {"text": f"To fix it: {rule.fix}."},
        "defaultConfiguration": {"level": rule.level},
    }


def _sarif_result(problem: Problem, rule_index: int, prefix: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "artifactLocation": {
            "uri": quote(prefix + clean(problem.path)),
            "uriBaseId": "%SRCROOT%",
        }
    }
    if problem.line:
        location["region"] = {"startLine": problem.line}
    return {
        "ruleId": problem.rule,
        "ruleIndex": rule_index,
        "level": problem.level,
        "message": {"text": clean(problem.message)},
        "locations": [{"physicalLocation": location}],
    }
