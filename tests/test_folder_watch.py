"""Nothing is looked at again while the kernel tells of no change, and every change is told."""

import copy
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sage import folder_watch
from sage.deadline import no_deadline
from sage.documents import walk
from sage.documents.files import Rules, Walk
from sage.documents.walk import WatchedWalk, walk_layer
from sage.folder_watch import FolderWatch
from tests.conftest import Base, Clock

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="UNTESTED: only Linux tells of changes"
)

RULES = Rules(max_file_bytes=1_000_000, max_files=1_000, ignores=lambda _: False)
TOP = ".knowledge/core"


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests' folder lies on, only we change it."""
    monkeypatch.setattr(folder_watch, "local_device", lambda root: root.stat().st_dev)


@pytest.fixture
def folder(base: Base) -> Path:
    base.write({"core/one.md": "# One\n\nText.\n", "core/deep/two.md": "# Two\n\nText.\n"})
    return base.path("core")


def replaced(path: Path) -> None:
    new = path.with_suffix(".new")
    new.write_text("# New\n")
    new.replace(path)


def appended(path: Path) -> None:
    with path.open("a") as file:
        file.write("More.\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "rewritten": lambda folder: (folder / "one.md").write_text("# Other\n"),
    "same size": lambda folder: (folder / "one.md").write_text("# One\n\nTexT.\n"),
    "appended": lambda folder: appended(folder / "one.md"),
    "truncated": lambda folder: os.truncate(folder / "one.md", 3),
    "replaced": lambda folder: replaced(folder / "one.md"),
    "dated back": lambda folder: os.utime(folder / "one.md", (0, 0)),
    "locked": lambda folder: (folder / "one.md").chmod(0),
    "new": lambda folder: (folder / "three.md").write_text("# Three\n"),
    "removed": lambda folder: (folder / "deep" / "two.md").unlink(),
    "renamed": lambda folder: (folder / "one.md").rename(folder / "deep" / "one.md"),
    "new folder": lambda folder: (folder / "new").mkdir(),
    "folder renamed": lambda folder: (folder / "deep").rename(folder / "other"),
    "link": lambda folder: (folder / "link.md").symlink_to("one.md"),
}


def watching(root: Path, *folders: str) -> FolderWatch:
    """A watch that was started and given these folders."""
    watch = FolderWatch()
    assert watch.start(root)
    for folder in folders:
        add(watch, root, folder)
    return watch


def add(watch: FolderWatch, root: Path, folder: str) -> None:
    descriptor = os.open(root / folder, os.O_RDONLY)
    watch.add(folder, descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_told(base: Base, folder: Path, change: Callable[[Path], object]) -> None:
    watch = watching(base.root, TOP, f"{TOP}/deep")
    before = watch.changes
    assert watch.changes == before
    change(folder)
    assert watch.changes != before


def test_a_folder_that_comes_or_goes_ends_the_watch(base: Base, folder: Path) -> None:
    watch = watching(base.root, TOP, f"{TOP}/deep")
    assert watch.covers({TOP, f"{TOP}/deep"})
    assert not watch.covers({TOP})
    (folder / "new").mkdir()
    assert watch.changes
    assert not watch.covers({TOP, f"{TOP}/deep"})
    add(watch, base.root, f"{TOP}/new")
    assert not watch.covers({f"{TOP}/new"})


def test_a_folder_that_was_moved_while_it_was_open_is_watched(base: Base, folder: Path) -> None:
    watch = watching(base.root)
    descriptor = os.open(folder / "deep", os.O_RDONLY)
    (folder / "deep").rename(folder / "moved")
    (folder / "deep").mkdir()
    watch.add(f"{TOP}/deep", descriptor)
    os.close(descriptor)
    before = watch.changes
    (folder / "moved" / "two.md").write_text("# Other\n")
    assert watch.changes != before


def test_what_cannot_be_watched_ends_the_watch(
    base: Base, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watching(base.root, TOP)
    add(watch, base.root, f"{TOP}/one.md")  # no folder
    assert not watch.is_on
    assert watch.start(base.root)
    monkeypatch.setattr(folder_watch, "local_device", lambda _: -1)
    assert watch.start(base.root)
    add(watch, base.root, TOP)  # of another device than the root
    assert not watch.is_on
    assert folder.is_dir()


def test_a_shared_drive_is_not_watched(
    base: Base, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(folder_watch, "LOCAL", frozenset())
    assert not FolderWatch().start(base.root)
    assert folder.is_dir()


def test_a_child_does_not_take_the_events_of_its_parent(
    base: Base, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = watching(base.root, TOP)
    before = parent.changes
    (folder / "one.md").write_text("# Other\n")
    child = copy.copy(parent)
    with monkeypatch.context() as other:
        other.setattr(os, "getpid", lambda: -1)
        assert child.changes != before
        assert not child.covers((TOP,))
    assert parent.covers({TOP})
    assert parent.changes != before


class Walks:
    """Walks of the layer core, counted."""

    def __init__(self, root: Path, clock: Clock, least: int = 0) -> None:
        self.root = root
        self.count = 0
        self.watched = WatchedWalk(root, least, clock)

    def scan(self, watch: FolderWatch | None) -> Walk:
        self.count += 1
        return walk_layer(self.root, "core", RULES, no_deadline(), watch=watch)

    def files(self) -> list[str]:
        """What is there, walked only when it has to be."""
        walk = self.watched.current() or self.watched.walk(self.scan)
        return [source.path for source in walk.files]


@pytest.fixture
def walks(base: Base, folder: Path) -> Walks:
    assert folder.is_dir()
    return Walks(base.root, base.clock)


def test_a_walk_stands_until_something_changes(walks: Walks, folder: Path) -> None:
    first = [walks.files() for _ in range(5)]
    assert walks.count == 2  # a command walks once: nothing is watched for the first
    assert all(one == first[0] for one in first)
    (folder / "three.md").write_text("# Three\n")
    assert f"{TOP}/three.md" in walks.files()


def test_where_calls_are_expected_the_first_walk_stands(walks: Walks, folder: Path) -> None:
    walks.watched.expect_calls()
    for _ in range(5):
        walks.files()
    assert walks.count == 1
    appended(folder / "one.md")
    assert walks.watched.current() is None


def test_folders_that_cannot_be_watched_are_tried_again_after_a_while(
    walks: Walks, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def add(watch: FolderWatch, folder: str, descriptor: int) -> None:
        tried.append(folder)
        watch.stop()

    with monkeypatch.context() as full:
        full.setattr(FolderWatch, "add", add)
        for _ in range(5):
            walks.files()
    assert walks.count == 5
    assert tried == [TOP, f"{TOP}/deep"]
    base.clock.tick(walk.STANDS_SECONDS)
    for _ in range(5):
        walks.files()
    assert walks.count == 6


def test_a_walk_that_was_cut_short_says_nothing_of_the_layer(walks: Walks) -> None:
    walks.files()

    def cut(_: FolderWatch | None) -> Walk:
        walk = walks.scan(None)
        walk.complete = False
        return walk

    walks.watched.walk(cut)
    assert walks.watched.current() is None
    for _ in range(3):
        walks.files()
    assert walks.count == 3


def test_a_walk_stands_for_a_few_seconds_at_most(walks: Walks, base: Base) -> None:
    for _ in range(5):
        walks.files()
    base.clock.tick(walk.STANDS_SECONDS)
    walks.files()
    assert walks.count == 3


def test_a_change_during_a_walk_makes_it_not_stand(walks: Walks, folder: Path) -> None:
    for _ in range(5):
        walks.files()

    def scan(watch: FolderWatch | None) -> Walk:
        walk = walks.scan(watch)
        (folder / "three.md").write_text("# Three\n")
        return walk

    walks.watched.walk(scan)
    assert walks.watched.current() is None
    assert f"{TOP}/three.md" in walks.files()


def test_a_base_that_is_made_again_while_it_is_walked_is_seen(walks: Walks, base: Base) -> None:
    walks.watched.expect_calls()

    def scan(watch: FolderWatch | None) -> Walk:
        walk = walks.scan(watch)
        base.root.rename(base.root.with_name("elsewhere"))
        base.write({"core/other.md": "# Other\n"})
        return walk

    walks.watched.walk(scan)
    assert walks.watched.current() is None
    assert walks.files() == [f"{TOP}/other.md"]


def test_a_base_that_is_moved_away_is_seen(walks: Walks, base: Base) -> None:
    for _ in range(5):
        walks.files()
    base.root.rename(base.root.with_name("elsewhere"))
    assert walks.watched.current() is None
    assert walks.files() == []


def test_a_base_that_is_moved_away_and_made_again_is_seen(walks: Walks, base: Base) -> None:
    for _ in range(5):
        walks.files()
    base.root.rename(base.root.with_name("elsewhere"))
    base.write({"core/other.md": "# Other\n"})
    assert walks.files() == [f"{TOP}/other.md"]


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_what_goes_by_another_name_is_looked_at_each_time(
    walks: Walks, base: Base, folder: Path, link: Callable[[Path, Path], None]
) -> None:
    outside = base.root / "outside.md"
    outside.write_text("# Outside\n")
    link(outside, folder / "linked.md")
    for _ in range(5):
        walks.files()
    assert walks.count == 5


def test_a_watched_layer_that_gets_a_link_is_looked_at_each_time(
    walks: Walks, folder: Path
) -> None:
    for _ in range(5):
        walks.files()
    before = walks.count
    os.link(folder / "one.md", folder / "linked.md")
    for _ in range(5):
        walks.files()
    assert walks.count == before + 5


def test_a_small_layer_is_not_watched(base: Base, folder: Path) -> None:
    assert folder.is_dir()
    walks = Walks(base.root, base.clock, least=100)
    for _ in range(5):
        walks.files()
    assert walks.count == 5


def test_a_call_that_waited_for_the_walk_of_another_takes_it_while_it_stands(
    base: Base, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "LEAST_WATCHED", 0)
    assert folder.is_dir()
    knowledge = base.open()
    knowledge.library.expect_calls()
    begun, may_end, walked = threading.Event(), threading.Event(), list[str]()
    real = walk_layer

    def slow(*arguments: Any) -> Walk:
        walked.append(arguments[1])
        begun.set()
        may_end.wait()
        return real(*arguments)

    monkeypatch.setattr("sage.documents.source_roots.walk_layer", slow)
    threads = [threading.Thread(target=knowledge.topics, args=("core",)) for _ in range(4)]
    threads[0].start()
    begun.wait()
    for thread in threads[1:]:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert walked == ["core"]


def test_an_edit_of_a_watched_base_is_found_by_the_next_search(
    base: Base, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "LEAST_WATCHED", 0)
    assert folder.is_dir()
    knowledge = base.open()
    for number in range(6):
        base.write({f"core/new{number}.md": f"# Zebra{number}\n\nIt is here.\n"})
        base.clock.tick(1)
        assert knowledge.search(f"zebra{number}")["results"]
        assert knowledge.search("text")["results"]
