"""One report in the forms that people and programs read."""

import json
from pathlib import Path

import pytest

from sage.check.reports import render, repository_prefix
from sage.check.run import Report
from sage.documents.problems import Problem
from tests.conftest import Base
from tests.findings import checked

TEXT = "---\nversion: 1\n---\n# A\n\n[x](gone.md)\n\n[y](#gone)\n"


@pytest.fixture
def report(base: Base) -> Report:
    return checked(base, {"core/a b.md": TEXT, "extra/c.md": "# C\n"})


def test_text_names_place_level_rule_and_fixes(report: Report) -> None:
    lines = render(report, "text", "warning").splitlines()
    assert lines[0] == ".knowledge/core/a b.md:6: error: gone.md does not exist [dead-link]"
    assert lines[2] == ".knowledge/extra: warning: 1 page is in no layer [no-layer]"
    assert any(line.startswith("dead-link    correct the path") for line in lines)
    assert lines[-1] == "1 page: 1 error, 2 warnings, 1 note (1 not shown: --level note)"


def test_json_holds_the_same_problems(report: Report) -> None:
    answer = json.loads(render(report, "json", "note"))
    assert (answer["pages"], answer["errors"], answer["warnings"], answer["notes"]) == (1, 1, 2, 1)
    assert answer["problems"][0] == {
        "path": ".knowledge/core/a b.md",
        "line": 2,
        "rule": "unknown-key",
        "level": "note",
        "message": "front matter: version is not read",
        "fix": "correct its spelling, or ignore this for keys that other tools read",
    }


def test_sarif_points_at_its_rules_and_places(report: Report) -> None:
    run = json.loads(render(report, "sarif", "warning", "kb/"))["runs"][0]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert names[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kb/.knowledge/core/a%20b.md"
    assert place["region"] == {"startLine": 6}
    assert "region" not in run["results"][2]["locations"][0]["physicalLocation"]


def test_github_shows_each_problem_beside_its_line(report: Report) -> None:
    lines = render(report, "github", "note", "kb/").splitlines()
    assert lines[0].startswith(
        "::notice file=kb/.knowledge/core/a b.md,title=sage unknown-key,line=2"
    )
    assert lines[1].startswith(
        "::error file=kb/.knowledge/core/a b.md,title=sage dead-link,line=6::"
    )


def test_a_name_or_text_cannot_forge_a_second_command() -> None:
    problem = Problem("a\n::error::x,b:c.md", "dead-link", "50%\n::warning::forged", 1)
    lines = render(Report((problem,), 1), "github", "note").splitlines()
    assert len(lines) == 1
    assert "50%25%0A::warning::forged" in lines[0]
    assert "a%0A%3A%3Aerror%3A%3Ax%2Cb%3Ac.md" in lines[0]


def test_nothing_wrong_is_said_in_one_line() -> None:
    assert render(Report((), 3), "text", "note") == "3 pages: 0 errors, 0 warnings, 0 notes"
    assert render(Report((), 3), "github", "note") == ""
    assert json.loads(render(Report((), 3), "sarif", "note"))["runs"][0]["results"] == []


def test_the_prefix_leads_from_the_repository_to_the_root(tmp_path: Path) -> None:
    root = tmp_path / "repo" / "docs" / "kb"
    root.mkdir(parents=True)
    assert repository_prefix(root, {}) == ""
    (tmp_path / "repo" / ".git").mkdir()
    assert repository_prefix(root, {}) == "docs/kb/"
    assert repository_prefix(tmp_path / "repo", {}) == ""
    assert repository_prefix(root, {"GITHUB_WORKSPACE": str(tmp_path)}) == "repo/docs/kb/"
