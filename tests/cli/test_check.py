"""What `sage check` shows of a large, living base."""

from pathlib import Path

import pytest

from tests.commands import Run, run
from tests.conftest import Base

__all__ = ["run"]


@pytest.fixture
def many(base: Base) -> None:
    base.write({f"core/p{one}.md": "No heading, [gone](nowhere.md).\n" for one in range(120)})


@pytest.mark.usefixtures("many")
def test_of_many_findings_the_counts_come_first(run: Run) -> None:
    code, out, _ = run("check")
    assert code == 1
    assert "dead-link" in out
    assert "sage check --rule NAME" in out
    assert "p77.md" not in out


@pytest.mark.usefixtures("many")
def test_one_rule_is_shown_whole(run: Run) -> None:
    assert "p77.md" in run("check", "--rule", "dead-link")[1]
    code, _, err = run("check", "--rule", "dead-links")
    assert code == 2
    assert "dead-link" in err


@pytest.mark.usefixtures("many")
def test_what_is_in_the_baseline_does_not_fail(base: Base, run: Run, tmp_path: Path) -> None:
    known = str(tmp_path / "known.json")
    code, _, err = run("check", "--write-baseline", known)
    assert code == 0
    assert "only others fail" in err
    assert run("check", "--baseline", known)[0] == 0
    base.write({"core/new.md": "# New\n\n[gone](nowhere-else.md)\n"})
    code, out, _ = run("check", "--baseline", known)
    assert code == 1
    assert "new.md" in out
