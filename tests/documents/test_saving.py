"""Every way in which editors and tools save a file: the very next call sees it, and never half.

The clocks are moved by hand, so that a writer is as slow as a test wants it to be.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sage.deadline import Clocks, Deadline, no_deadline
from sage.documents.library import EMPTY_SECONDS, QUIET_SECONDS
from sage.errors import NotFound
from sage.knowledge import KnowledgeBase
from tests.conftest import Base


def content(knowledge: KnowledgeBase, topic: str | None = None) -> str:
    return knowledge.get("core", topic)["content"]


def in_place(path: Path, text: str) -> None:
    with path.open("r+") as file:
        file.write(text)
        file.truncate()


def truncate_and_write(path: Path, text: str) -> None:
    path.write_text(text)


def write_and_rename(path: Path, text: str) -> None:
    draft = path.with_name(".draft.swp")
    draft.write_text(text)
    draft.replace(path)


def back_up_and_write(path: Path, text: str) -> None:
    path.rename(path.with_name(path.name + "~"))
    path.write_text(text)


def delete_and_write(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    "save",
    [in_place, truncate_and_write, write_and_rename, back_up_and_write, delete_and_write, append],
)
def test_saved_text_is_in_the_very_next_answer(
    base: Base, save: Callable[[Path, str], None]
) -> None:
    knowledge = base.open({"core/a.md": "# Before\n", "core/b.md": "# Other\n"})
    assert "Before" in content(knowledge)
    for number in range(5):
        save(base.path("core/a.md"), f"# Version {number}\n")
        assert f"Version {number}" in content(knowledge)
        assert "# Other" in content(knowledge)


@pytest.mark.parametrize("save", [in_place, truncate_and_write, write_and_rename])
def test_edit_of_the_same_size_with_its_old_times_is_seen(
    base: Base, save: Callable[[Path, str], None]
) -> None:
    knowledge = base.open({"core/a.md": "# One\n"})
    assert "One" in content(knowledge)
    path = base.path("core/a.md")
    before = path.stat()
    save(path, "# Two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert "Two" in content(knowledge)


def test_second_answer_comes_from_the_cache_until_something_is_saved(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# One\n"})
    assert not knowledge.get("core")["metadata"]["from_cache"]
    assert knowledge.get("core")["metadata"]["from_cache"]
    base.write({"core/a.md": "# Two\n"})
    assert not knowledge.get("core")["metadata"]["from_cache"]


def test_new_deleted_and_moved_files_are_seen(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Alpha\n"})
    base.write({"core/deep/b.md": "# Beta\n"})
    assert "Beta" in content(knowledge, "b")
    base.path("core/a.md").unlink()
    assert "Alpha" not in content(knowledge)
    with pytest.raises(NotFound):
        content(knowledge, "a")
    base.path("core/deep/b.md").rename(base.path("core/c.md"))
    assert "Beta" in content(knowledge, "c")
    assert ".knowledge/core/deep/b.md" not in content(knowledge)


def test_file_moved_to_another_layer_is_served_there(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Alpha\n", "practices/x.md": "# X\n"})
    assert "Alpha" in content(knowledge)
    base.path("core/a.md").rename(base.path("practices/a.md"))
    assert content(knowledge) == ""
    assert "Alpha" in knowledge.get("practices")["content"]


def test_folder_renamed_as_a_whole_is_seen(base: Base) -> None:
    knowledge = base.open({"core/old/a.md": "# Alpha\n", "core/old/b.md": "# Beta\n"})
    content(knowledge)
    base.path("core/old").rename(base.path("core/new"))
    assert knowledge.get("core", "new/")["metadata"]["files_loaded"] == 2
    with pytest.raises(NotFound):
        content(knowledge, "old/")


def git(root: Path, *arguments: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Test" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "test@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    subprocess.run(["git", *arguments], cwd=root, env=environment, check=True, capture_output=True)


@pytest.mark.skipif(not shutil.which("git"), reason="UNTESTED: there is no git here")
def test_checkout_of_another_branch_is_seen_whole(base: Base) -> None:
    knowledge = base.open({f"core/{n}/page.md": f"# Main {n}\n" for n in range(20)})
    git(base.root, "init", "-q", "-b", "main")
    git(base.root, "add", ".")
    git(base.root, "commit", "-q", "-m", "main")
    git(base.root, "checkout", "-q", "-b", "other")
    shutil.rmtree(base.path("core"))
    base.write({f"core/{n}/page.md": f"# Other {n}\n" for n in range(5, 25)})
    git(base.root, "add", "-A", ".")
    git(base.root, "commit", "-q", "-m", "other")
    for branch, numbers in (("main", range(20)), ("other", range(5, 25)), ("main", range(20))):
        git(base.root, "checkout", "-q", branch)
        assert content(knowledge).count("# ") == 20
        for number in numbers:
            assert f"# {branch.title()} {number}\n" in content(knowledge) + "\n"


def test_root_that_is_renamed_and_made_anew_is_served_anew(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Old\n"})
    assert "Old" in content(knowledge)
    base.root.rename(base.root.with_name("moved"))
    assert content(knowledge) == ""
    assert knowledge.info()["status"] == "unhealthy"
    base.write({"core/a.md": "# New\n"})
    assert "New" in content(knowledge)
    assert knowledge.info()["knowledge_base"]["content_files"] == 1


def test_knowledge_folder_swapped_for_another_is_seen(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Old\n"})
    content(knowledge)
    (base.root / ".knowledge").rename(base.root / "before")
    base.write({"core/b.md": "# New\n"})
    assert content(knowledge) == "<!-- .knowledge/core/b.md -->\n\n# New"


def test_file_that_vanishes_between_scan_and_read_is_left_out(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open({"core/a.md": "# Alpha\n", "core/b.md": "# Beta\n"})
    refresh = knowledge.library.refresh

    def refresh_and_delete(*given: object) -> object:
        listings = refresh(*given)  # type: ignore[arg-type]
        base.path("core/a.md").unlink(missing_ok=True)
        return listings

    monkeypatch.setattr(knowledge.library, "refresh", refresh_and_delete)
    answer = knowledge.get("core")
    assert answer["content"] == "<!-- .knowledge/core/b.md -->\n\n# Beta"
    assert answer["metadata"]["files_loaded"] == 1


class Writer:
    """Writes a file in steps: one before the first read, one whenever a reader sleeps."""

    def __init__(self, path: Path, steps: list[bytes | None]) -> None:
        self._path = path
        self._steps = steps
        self._idle = 0.0
        self.now = path.stat().st_ctime + 60 if path.exists() else 0.0

    def step(self, seconds: float = 0.0) -> None:
        """Write the next state of the file, or, when none is left, let the time pass."""
        if not self._steps:
            self.now += seconds
            return
        state = self._steps.pop(0)
        if state is not None:
            self._path.write_bytes(state)
        # The clock stands a moment after the write, however long the machine took.
        self.now = self._path.stat().st_ctime_ns / 1e9 + QUIET_SECONDS / 10

    @property
    def clocks(self) -> Clocks:
        return Clocks(now=lambda: self.now, sleep=self.step)


def slow(base: Base, steps: list[bytes | None]) -> tuple[KnowledgeBase, Writer]:
    writer = Writer(base.path("core/a.md"), steps)
    return base.open(clocks=writer.clocks), writer


def test_reader_waits_for_a_writer_who_finishes(base: Base) -> None:
    base.write({"core/a.md": "# Old\n"})
    knowledge, writer = slow(base, [b"", b"# Ne", b"# New and", b"# New and whole\n"])
    assert "Old" in content(knowledge)
    writer.step()
    assert content(knowledge) == "<!-- .knowledge/core/a.md -->\n\n# New and whole"


def test_torn_copy_is_never_served_while_a_slow_writer_goes_on(base: Base) -> None:
    base.write({"core/a.md": "# Old\n"})
    torn: list[bytes | None] = [b"# Ne" + b"w" * number for number in range(40)]
    knowledge, writer = slow(base, [*torn, b"# New and whole\n"])
    assert "Old" in content(knowledge)
    writer.step()
    answers = [content(knowledge) for _ in range(8)]
    old = "<!-- .knowledge/core/a.md -->\n\n# Old"
    new = "<!-- .knowledge/core/a.md -->\n\n# New and whole"
    assert set(answers) == {old, new}
    assert answers == sorted(answers, reverse=True)
    assert content(knowledge) == new


def test_new_file_is_not_served_before_its_writer_is_done(base: Base) -> None:
    base.write({"core/b.md": "# Beta\n"})
    torn: list[bytes | None] = [b"# Half" + b"." * number for number in range(10)]
    knowledge, writer = slow(base, [*torn, b"# Whole\n"])
    writer.step()
    assert "Half" not in content(knowledge)
    assert "Half" not in content(knowledge)
    assert "# Whole" in content(knowledge)


def test_file_being_written_is_a_problem_until_it_is_done(base: Base) -> None:
    knowledge, writer = slow(base, [b"# Half" + b"." * number for number in range(9)])
    base.path("core").mkdir()
    writer.step()
    assert knowledge.info()["problems"]["first"] == [
        {"path": ".knowledge/core/a.md", "what": "is being written; ask again in a moment"}
    ]
    assert knowledge.info()["problems"]["count"] == 0


def test_file_that_was_just_truncated_keeps_its_last_copy_for_longer(base: Base) -> None:
    base.write({"core/a.md": "# Old\n"})
    knowledge, writer = slow(base, [b""])
    assert "Old" in content(knowledge)
    writer.step()
    writer.now += QUIET_SECONDS * 2
    assert "Old" in content(knowledge)
    writer.now += EMPTY_SECONDS
    assert "Old" not in content(knowledge)


def test_nobody_out_of_time_waits_for_a_writer(base: Base) -> None:
    base.write({"core/a.md": "# Old\n"})
    knowledge, writer = slow(base, [b"# Half", b"# Whole\n"])
    assert "Old" in content(knowledge)
    writer.step()
    (listing,) = knowledge.library.refresh(("core",), no_deadline())
    document = knowledge.library.load(listing.files[0], Deadline(0))
    assert document is not None
    assert document.body == "# Old\n"
    assert base.path("core/a.md").read_text() == "# Half"


def test_clock_of_a_network_drive_that_runs_ahead_does_not_block_reading(base: Base) -> None:
    base.write({"core/a.md": "# Alpha\n"})
    knowledge, writer = slow(base, [])
    writer.now -= 3_600
    assert "Alpha" in content(knowledge)


def test_sixteen_threads_each_see_the_edit_they_made_before_the_call(base: Base) -> None:
    knowledge = base.open({f"core/{n}.md": "# Before\n" for n in range(16)})
    missed: list[str] = []
    together = threading.Barrier(16)

    def edit_and_read(number: int) -> None:
        for version in range(8):
            together.wait()
            base.write({f"core/{number}.md": f"# Version {version} of {number}\n"})
            seen = content(knowledge, f"core/{number}")
            if f"# Version {version} of {number}" not in seen:
                missed.append(seen)

    threads = [threading.Thread(target=edit_and_read, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not missed
