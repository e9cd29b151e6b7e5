"""Pages that nobody touched for long, by their own date or by git's."""

import os
import subprocess
from pathlib import Path

import pytest

from sage.check.age import commit_dates
from tests.conftest import Base
from tests.findings import TODAY, checked, found

PAGE = "# Page\n\nText.\n"


def git(root: Path, *words: str, day: str = "2026-06-01") -> None:
    moment = f"{day}T12:00:00+00:00"
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": moment}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": moment}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *words], cwd=root, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("2026-06-01", []),
        ("2025-06-16", []),
        ("2025-06-15", [2]),
        ("2020-01-01", [2]),
        ("2020/1/1", [2]),
        ('"2020-01-01T10:00:00Z"', [2]),
        ("2030-01-01", []),
    ],
)
def test_a_page_is_as_old_as_it_says(base: Base, said: str, lines: list[int]) -> None:
    assert found(base, "stale", f"---\nlast_updated: {said}\n---\n{PAGE}") == lines


@pytest.mark.parametrize("said", ["soon", "2025-13-45", "31.12.2025 or so"])
def test_a_date_that_is_none_is_bad_front_matter(base: Base, said: str) -> None:
    assert found(base, "front-matter", f"---\nlast_updated: {said}\n---\n{PAGE}") == [2]


def test_without_a_date_the_last_commit_counts(base: Base) -> None:
    base.write(
        {"core/old.md": PAGE, "core/new.md": "# New\n\nT.\n", "core/süß ☃.md": "# S\n\nT.\n"}
    )
    git(base.root, "init", "-q")
    git(base.root, "add", ".")
    git(base.root, "commit", "-qm", "first", day="2024-01-01")
    base.write({"core/new.md": "# Newer\n\nT.\n", "core/untracked.md": "# U\n\nT.\n"})
    git(base.root, "commit", "-qam", "second", day="2026-05-01")
    stale = [p.path for p in checked(base, {}).problems if p.rule == "stale"]
    assert stale == [".knowledge/core/old.md", ".knowledge/core/süß ☃.md"]


def test_a_root_below_the_repository_is_found(base: Base) -> None:
    base.write({"core/old.md": PAGE})
    git(base.root.parent, "init", "-q")
    git(base.root.parent, "add", ".")
    git(base.root.parent, "commit", "-qm", "first", day="2024-01-01")
    assert [str(day) for day in commit_dates(base.root, [".knowledge/core/old.md"]).values()] == [
        "2024-01-01"
    ]


def test_without_a_repository_or_commits_nothing_is_known(base: Base) -> None:
    assert commit_dates(base.root, [".knowledge/core/a.md"]) == {}
    git(base.root, "init", "-q")
    assert commit_dates(base.root, [".knowledge/core/a.md"]) == {}


def test_zero_months_switch_the_rule_off(base: Base) -> None:
    text = f"---\nlast_updated: 2001-01-01\n---\n{PAGE}"
    assert checked(base, {"core/page.md": text}, **{"check.stale_months": 0}).problems == ()
    assert TODAY.year == 2026
