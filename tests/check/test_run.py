"""All rules together: order, levels, and knowledge bases that must pass."""

from datetime import date
from pathlib import Path

from sage.check.run import check_knowledge
from sage.settings import load_settings
from tests.conftest import Base
from tests.findings import checked

REPOSITORY = Path(__file__).parents[2]


def test_problems_come_in_the_order_of_the_files(base: Base) -> None:
    files: dict[str, str | bytes] = {
        "practices/b.md": "# B\n\n[x](gone.md)\n\n[y](#gone)\n",
        "core/a.md": "no title\n",
    }
    problems = checked(base, files).problems
    assert [(p.path, p.line, p.rule) for p in problems] == [
        (".knowledge/core/a.md", 1, "no-title"),
        (".knowledge/practices/b.md", 3, "dead-link"),
        (".knowledge/practices/b.md", 5, "dead-anchor"),
    ]


def test_a_report_is_counted_and_cut_by_level(base: Base) -> None:
    text = "---\nversion: 1\n---\n# A\n\n[x](gone.md) [y](#gone)\n"
    report = checked(base, {"core/a.md": text})
    assert [report.count(level) for level in ("note", "warning", "error")] == [1, 1, 1]
    assert [len(report.at_least(level)) for level in ("note", "warning", "error")] == [3, 2, 1]


def test_an_empty_base_is_checked(base: Base) -> None:
    report = check_knowledge(base.settings(), date(2026, 1, 1))
    assert {problem.rule for problem in report.problems} == {"no-folder"}
    assert report.at_least("warning") == ()


def test_our_own_knowledge_passes() -> None:
    settings = load_settings({"root": REPOSITORY}, {})
    report = check_knowledge(settings, date(2026, 11, 16))
    assert [str(problem) for problem in report.at_least("warning")] == []
    assert report.pages > 20
