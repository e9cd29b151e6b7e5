"""The work list, the figures and the pictures, from real repositories and a real usage log."""

import json
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sage.care.history import code_changes, history_of
from sage.care.pictures import bar, sparkline
from sage.care.report import markdown_report
from sage.care.work_list import KINDS, Task
from sage.cli import care as module
from tests.commands import Run, run
from tests.conftest import Base
from tests.repositories import git, repository

__all__ = ["run"]

TODAY = date(2026, 11, 18)
LONG = (
    "Every request that changes something carries an idempotency key, and the server keeps the "
    "answer of the first one for a day so that a second one gets the same answer."
)
FILES = {
    ".knowledge/core/due.md": "---\nid: due1\nreview_by: 2026-01-31\nowner: ann\n---\n# Due\n\n"
    "See [old](old.md).\n",
    ".knowledge/core/old.md": "---\nsuperseded_by: core/new\n---\n# Old\n\nAs it was.\n",
    ".knowledge/core/new.md": "# New\n\nIn place of [old](old.md). "
    "The [due](due.md) and the [code](code.md).\n",
    ".knowledge/core/code.md": "---\napplies_to: 'src/pay/**'\n---\n# Payments\n\nWritten down.\n",
    ".knowledge/core/named.md": "# Named\n\nSee `src/pay/api.py` and [new](new.md).\n",
    ".knowledge/practices/keys.md": f"# Keys\n\n[code](../core/code.md)\n\n## One\n\n{LONG}\n",
    ".knowledge/practices/same.md": f"# Same\n\n[code](../core/code.md)\n\n## Two\n\n{LONG}\n",
    ".knowledge/practices/alone.md": "# Alone\n\nNo page knows it.\n",
    ".knowledge/practices/inbox/n1.md": "---\nid: n1\nstatus: draft\n---\n# Draft\n\nPerhaps.\n",
    "src/pay/api.py": "pass\n",
}


@pytest.fixture
def history(base: Base, monkeypatch: pytest.MonkeyPatch) -> Base:
    """A repository in which the code changed a year after its pages."""
    repository(base.root, FILES)
    (base.root / "src/pay/api.py").write_text("raise\n")
    git(base.root, "add", "-A")
    git(base.root, "commit", "-qm", "second", day="2025-05-05")
    monkeypatch.setattr(module, "_today", lambda: TODAY)
    return base


def tasks(run: Run, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("care", "--json", *options)[1])["tasks"]
    return found


def usage_log(base: Base, *lines: dict[str, Any]) -> Path:
    path = base.root / "usage.jsonl"
    noted = [{"time": "2026-10-01T08:00:00Z", **line} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in noted))
    return path


def test_the_work_list_names_every_kind_in_order_with_what_settles_it(
    history: Base, run: Run
) -> None:
    log = usage_log(
        history,
        {"tool": "sage_search", "pages": [], "found": 0, "query": "quantum entanglement"},
        {"tool": "sage_search", "pages": [], "found": 0, "query": "idempotency key"},
        {"tool": "sage_get_knowledge", "pages": [".knowledge/core/due.md"]},
    )
    found = tasks(run, "--log", str(log))
    assert list(dict.fromkeys(task["kind"] for task in found)) == list(KINDS)
    by_kind = {kind: [task for task in found if task["kind"] == kind] for kind in KINDS}
    (review,) = by_kind["review"]
    assert review["command"] == "sage accept due1 --review-by 2027-05-19"
    assert "due on 2026-01-31, owner ann" in review["what"]
    assert {task["topic"] for task in by_kind["code"]} == {"core/code", "core/named"}
    assert "src/pay/api.py changed since 2024-01-01" in by_kind["code"][0]["what"]
    (unanswered,) = by_kind["unanswered"]
    assert unanswered["command"] == "sage note --title 'quantum entanglement'"
    (superseded,) = by_kind["superseded"]
    assert (superseded["topic"], superseded["line"]) == ("core/due", 8)
    (duplicate,) = by_kind["duplicate"]
    assert duplicate["command"] == "sage supersede practices/same practices/keys"
    assert "practices/alone" in [task["topic"] for task in by_kind["orphan"]]
    assert "core/code" not in [task["topic"] for task in by_kind["orphan"]]
    assert "core/due" not in [task["topic"] for task in by_kind["unread"]]
    assert [task["command"] for task in by_kind["draft"]] == ["sage accept n1"]


def test_what_the_commands_of_the_list_settle_is_no_longer_on_it(history: Base, run: Run) -> None:
    kinds = "review,code,duplicate,draft"
    before = tasks(run, "--only", kinds)
    for task in before:
        code, _, errors = run(*task["command"].replace("sage ", "", 1).split())
        assert code == 0, errors
    assert {task["kind"] for task in before} == set(kinds.split(","))
    assert tasks(run, "--only", kinds) == []


def test_only_pages_that_the_commands_can_write_are_listed(base: Base, run: Run) -> None:
    theirs = {
        "due.md": "---\nreview_by: 2020-01-01\n---\n# Due\n\nSee [gone](gone.md).\n",
        "gone.md": "---\nsuperseded_by: core/due\n---\n# Gone\n\nAs it was, `src/a.py`.\n",
        "idea.md": "---\nstatus: draft\n---\n# Idea\n\nPerhaps.\n",
        "keys.md": f"# Keys\n\nSee [home](home.md).\n\n## One\n\n{LONG}\n",
        "other.md": f"# Other\n\nSee [home](home.md).\n\n## Three\n\n{LONG}\n",
        "alone.md": "# Alone\n\nIt knows nobody.\n",
    }
    files = {
        "sage.yaml": "sources: {company: vendor/company}\n",
        **{f"vendor/company/.knowledge/core/{name}": text for name, text in theirs.items()},
        ".knowledge/core/home.md": "# Home\n\nThey know it.\n",
        ".knowledge/core/same.md": f"# Same\n\n[gone](gone.md)\n\n## Two\n\n{LONG}\n",
        "src/a.py": "pass\n",
    }
    repository(base.root, files)
    log = usage_log(base, {"tool": "sage_get_knowledge", "pages": [".knowledge/core/home.md"]})
    before = {path: path.read_bytes() for path in base.root.glob("vendor/**/*.md")}
    found = tasks(run, "--log", str(log))
    assert len(before) == len(theirs)
    listed = {(task["kind"], task["topic"]) for task in found}
    assert listed >= {("duplicate", "core/same"), ("superseded", "core/same")}
    assert not [task for task in found if task["path"].startswith("vendor/")]
    assert ("orphan", "core/home") not in listed
    settling = next(task["command"] for task in found if task["kind"] == "duplicate")
    code, _, errors = run(*settling.split()[1:])
    assert code == 0, errors
    assert "superseded_by: core/" in (base.root / ".knowledge/core/same.md").read_text()
    assert {path: path.read_bytes() for path in base.root.glob("vendor/**/*.md")} == before


def test_the_exit_code_is_for_ci(history: Base, run: Run) -> None:
    assert run("care")[0] == 1
    assert run("care", "--fail-on", "never")[0] == 0
    assert run("care", "--only", "orphan", "--fail-on", "review,code")[0] == 0
    assert run("care", "--fail-on", "review")[0] == 1
    code, _, error = run("care", "--only", "reviw")
    assert code == 2
    assert "there is no 'reviw'; use review, code" in error


def test_the_report_is_ready_for_an_issue(history: Base, run: Run) -> None:
    report = run("care", "--format", "markdown")[1]
    assert report.startswith("# Care of the knowledge base, 2026-11-18\n")
    assert "## Review is due (1)\n\n- [ ] `.knowledge/core/due.md:1`: review was due" in report
    assert "`sage accept due1 --review-by 2027-05-19`" in report


def test_a_report_makes_nothing_of_what_callers_wrote() -> None:
    asked = "asked: <img src=x> @everyone [a](http://b) `c`\n# d"
    report = markdown_report([Task("unanswered", "", "", 0, asked, "sage note `a`")], TODAY)
    assert "\\<img src=x\\> @<!-- -->everyone \\[a\\](http://b) \\`c\\` \\# d" in report
    assert "`` sage note `a` ``" in report


def test_without_git_and_usage_the_rest_is_listed(base: Base, run: Run) -> None:
    base.write({"core/a.md": "---\nreview_by: 2020-01-01\n---\n# A\n\nText.\n"})
    assert [task["kind"] for task in tasks(run)] == ["review"]
    figures = json.loads(run("stats", "--json")[1])
    assert "growth" not in figures
    assert "usage" not in figures


def test_figures_add_up_however_pages_are_divided(history: Base, run: Run) -> None:
    figures = json.loads(run("stats", "--json")[1])
    served = len([name for name in FILES if name.endswith(".md")]) + 2
    assert figures["pages"] == served
    assert set(figures["by"]) == {"layer", "type", "status", "source", "owner", "age"}
    for shares in figures["by"].values():
        for what in ("pages", "sections", "tokens"):
            assert sum(share[what] for share in shares) == figures[what]
    assert sum(branch["tokens"] for branch in figures["topics"]) == figures["tokens"]
    assert {"name": "ann", "pages": 1}.items() <= figures["by"]["owner"][1].items()
    core = figures["topics"][0]
    assert (core["name"], core["pages"]) == ("core", len(core["children"]))


def test_growth_and_hot_pages_come_from_git(history: Base, run: Run) -> None:
    for day in ("2026-09-10", "2026-10-10"):
        with (history.root / ".knowledge/core/new.md").open("a") as page:
            page.write(f"\nAs of {day}.\n")
        (history.root / f".knowledge/core/p{day}.md").write_text("# P\n\nText.\n")
        git(history.root, "add", "-A")
        git(history.root, "commit", "-qm", day, day=day)
    growth = json.loads(run("stats", "--json")[1])["growth"]
    months = {month["month"]: month for month in growth["months"]}
    assert len(months) == 12
    grown = [months[f"2026-{month}"]["pages"] for month in ("08", "09", "10", "11")]
    assert [pages - grown[0] for pages in grown] == [0, 3, 4, 4]  # two of the fixture
    assert growth["hot"][0] == {"topic": "core/new", "path": ".knowledge/core/new.md", "commits": 2}


def test_use_is_shown_beside_the_figures(history: Base, run: Run) -> None:
    log = usage_log(
        history,
        {"tool": "sage_search", "pages": [], "found": 0, "query": "sso"},
        {"tool": "sage_search", "pages": [".knowledge/core/new.md"], "found": 3, "query": "keys"},
        {"tool": "sage_get_knowledge", "pages": [".knowledge/core/new.md"]},
    )
    shown = run("stats", "--log", str(log))[1]
    assert "1 sage_get_knowledge, 2 sage_search, since 2026-10-01" in shown
    assert "1 x .knowledge/core/new.md" in shown
    assert "1 x keys (found 1)" in shown
    assert "1 x sso" in shown
    assert "by layer" in shown
    assert "█" in shown


def test_a_usage_log_that_is_not_there_is_an_error(base: Base, run: Run) -> None:
    code, _, error = run("stats", "--log", "nothing.jsonl")
    assert code == 4
    assert "a server writes one with --usage-log" in error


def test_only_files_newer_than_the_oldest_page_are_asked_for(history: Base) -> None:
    root = history.root
    assert list(code_changes(root, [".knowledge/core/code.md"])) != []
    pages = [name for name in FILES if name.endswith(".md")]
    assert history_of(root, pages, TODAY).last.keys() == set(pages)


def test_a_base_below_the_top_of_its_repository_has_its_own_history(tmp_path: Path) -> None:
    repository(tmp_path, {f"team/{name}": text for name, text in FILES.items()})
    found = history_of(tmp_path / "team", [".knowledge/core/new.md"], TODAY)
    assert found.day_of(".knowledge/core/new.md") == date(2024, 1, 1)
    assert code_changes(tmp_path / "team", found.last).keys() >= {".knowledge/core/code.md"}


def test_pictures_show_shares_and_courses() -> None:
    assert sparkline([1, 2, 3, 8]) == "▁▂▃█"
    assert (sparkline([]), sparkline([4, 4])) == ("", "▁▁")
    assert (bar(10, 10, 5), bar(5, 10, 4), bar(0, 10), bar(1, 10_000)) == ("█████", "██", "", "▏")


def test_git_is_asked_and_nothing_is_written(history: Base, run: Run) -> None:
    before = subprocess.check_output(["ls", "-lR", "--full-time"], cwd=history.root)
    run("care")
    run("stats")
    assert subprocess.check_output(["ls", "-lR", "--full-time"], cwd=history.root) == before
