"""Globs of front matter that hold no file."""

import pytest

from tests.conftest import Base
from tests.findings import checked, found

PAGE = "---\nsummary: S\napplies_to: [src/**, gone/*.py, '*.sql']\n---\n# Page\n\nText.\n"


def test_a_glob_that_holds_no_file_is_found(base: Base) -> None:
    (base.root / "src" / "deep").mkdir(parents=True)
    (base.root / "src" / "deep" / "a.py").write_text("", "utf-8")
    problems = checked(base, {"core/page.md": PAGE}).problems
    dead = [(one.message, one.line) for one in problems if one.rule == "dead-scope"]
    assert sorted(dead) == [("no file matches '*.sql'", 3), ("no file matches 'gone/*.py'", 3)]


def test_what_others_wrote_is_in_no_scope(base: Base) -> None:
    for name in ("node_modules", ".git"):
        (base.root / name).mkdir()
        (base.root / name / "a.sql").write_text("", "utf-8")
    assert found(base, "dead-scope", PAGE) == [3, 3, 3]


def test_in_a_very_large_repository_nothing_is_claimed(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.check.scopes.MAX_FILES", 0)
    assert found(base, "dead-scope", PAGE) == []
