"""`sage init --from`, as a person sees it."""

from tests.commands import Run, run
from tests.conftest import Base
from tests.test_sources import put

__all__ = ["run"]


def test_the_mapping_is_shown_first_and_written_when_told(base: Base, run: Run) -> None:
    root = base.root / "other"
    put(
        root,
        {
            "docs/guides/retry.md": "# Retry\n\nThree times.\n",
            "docs/guides/old.rst": "Old\n===\n",
            "AGENTS.md": "# Agents\n\nRun the tests.\n",
        },
    )
    code, out, err = run("init", "--root", str(root), "--from", "docs")
    assert code == 0
    assert "1 page" in out
    assert "kinds that are not read" in out
    assert "--from AGENTS.md" in out
    assert "add --write" in err
    assert not (root / "sage.yaml").exists()
    code, out, _ = run("init", "--root", str(root), "--from", "docs", "--write")
    assert code == 0
    assert "sage.yaml" in out
    assert "Three times" in run("search", "--root", str(root), "retry")[1]


def test_write_alone_says_what_it_belongs_to(run: Run) -> None:
    code, _, err = run("init", "--write")
    assert code == 2
    assert "--from FOLDER" in err
