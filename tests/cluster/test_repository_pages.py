"""What a repository publishes says which commit it is of, and only where that is so."""

from collections.abc import Callable

import pytest

from sage.cluster.conformance import PAGES
from sage.publish.repository_pages import is_committed, pages_of
from sage.values import OWN
from tests.conftest import Base
from tests.repositories import git


def committed(base: Base, message: str = "pages") -> str:
    """Commit all that is there."""
    git(base.root, "init", "-q")
    git(base.root, "add", "-A", "-f", ".")
    git(base.root, "commit", "-qm", message, "--allow-empty")
    return git(base.root, "rev-parse", "HEAD")


def commit_of(base: Base) -> str:
    base.clock.tick(60)
    return pages_of(base.open(), OWN, "").commit


def test_what_pages_of_another_layer_end_with_changes_no_page(base: Base) -> None:
    ending = "\n---\n\n*The handbook*\n"
    base.write({f"practices/p{n}.md": f"# P{n}\n\nText.\n{ending}" for n in range(3)})
    before = pages_of(base.open(), "s", "")
    assert not before.footers
    base.write({"core/a.md": f"# A\n\nText.\n{ending}"})
    base.clock.tick(60)
    after = pages_of(base.open(), "s", "")
    assert not after.footers
    assert before.by_path.items() <= after.by_path.items()
    base.write({"practices/p3.md": f"# P3\n\nText.\n{ending}"})
    base.clock.tick(60)
    assert list(pages_of(base.open(), "s", "").footers) == [("s", "practices")]


def test_pages_outside_of_a_repository_are_of_no_commit(base: Base) -> None:
    base.write(PAGES)
    assert commit_of(base) == ""


def test_committed_pages_are_of_their_commit_whatever_else_changed(base: Base) -> None:
    base.write(PAGES)
    head = committed(base)
    (base.root / "code.py").write_text("x = 1\n")
    assert commit_of(base) == head
    assert is_committed(head)


@pytest.mark.parametrize(
    "change",
    [
        lambda base: base.write({"core/principles.md": "# Principles\n\nOther.\n"}),
        lambda base: base.write({"core/new.md": "# New\n\nOther.\n"}),
        lambda base: base.path("core/principles.md").unlink(),
    ],
    ids=["edited", "new", "removed"],
)
def test_what_was_not_committed_is_told(base: Base, change: Callable[[Base], None]) -> None:
    base.write(PAGES)
    head = committed(base)
    change(base)
    assert commit_of(base) == f"{head}-dirty"
    assert not is_committed(commit_of(base))
    assert commit_of(base) != (after := committed(base, "change"))
    assert commit_of(base) == after


def test_pages_with_the_lines_of_another_system_are_as_they_were_committed(base: Base) -> None:
    base.write({"core/page.md": "# Page\n\nText.\n"})
    head = committed(base)
    base.write({"core/page.md": "# Page\r\n\r\nText.\r\n"})
    assert commit_of(base) == head


def test_pages_of_which_none_is_committed_are_of_no_commit(base: Base) -> None:
    (base.root / "code.py").write_text("x = 1\n")
    committed(base)
    base.write(PAGES)
    assert commit_of(base) == ""


def test_a_base_in_a_folder_of_its_repository_is_of_its_commit(base: Base) -> None:
    base.write(PAGES)
    above = base.root.parent
    git(above, "init", "-q")
    git(above, "add", "-A", "-f", "repo")
    git(above, "commit", "-qm", "pages")
    assert commit_of(base) == git(above, "rev-parse", "HEAD")
