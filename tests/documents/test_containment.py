"""The attacks that the opening of files has to stop: each swaps something for a link."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sage.documents import containment
from sage.documents.containment import (
    Escape,
    close_folder,
    kind_of,
    link_target,
    open_below,
    open_folder,
    open_inside,
)


@pytest.fixture(params=["by parent", "by path"])
def root(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A root, once with the rules of systems that have `openat` and once without."""
    if request.param == "by path":
        monkeypatch.setattr(containment, "_BY_PARENT", False)
    root = tmp_path.resolve() / "repo"
    (root / ".knowledge" / "core").mkdir(parents=True)
    (root / ".knowledge" / "core" / "a.md").write_text("inside")
    (tmp_path / "secret.md").write_text("secret")
    before = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else set()
    yield root
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before), "a descriptor was left open"


def read(root: Path, relative: str) -> bytes:
    descriptor = open_inside(root, relative)
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


def test_regular_file_is_opened(root: Path) -> None:
    assert read(root, ".knowledge/core/a.md") == b"inside"


def test_missing_file_is_an_error(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(root, ".knowledge/core/b.md")


def test_file_swapped_for_a_link_to_the_outside_is_not_read(root: Path) -> None:
    path = root / ".knowledge" / "core" / "a.md"
    path.unlink()
    path.symlink_to(root.parent / "secret.md")
    with pytest.raises(Escape, match="leaves the repository"):
        read(root, ".knowledge/core/a.md")


def test_folder_swapped_for_a_link_to_the_outside_is_not_entered(root: Path) -> None:
    core = root / ".knowledge" / "core"
    core.rename(root / "moved")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("secret")
    core.symlink_to(outside)
    with pytest.raises(Escape):
        read(root, ".knowledge/core/a.md")


@pytest.mark.parametrize("path", ["../secret.md", ".knowledge/../../secret.md", "/etc/passwd", ""])
def test_path_that_climbs_or_is_absolute_is_refused(root: Path, path: str) -> None:
    with pytest.raises(Escape, match="not a path below the root"):
        read(root, path)


def test_link_within_the_root_is_followed(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "b.md").write_text("beside")
    (root / ".knowledge" / "core" / "b.md").symlink_to("../../docs/b.md")
    (root / ".knowledge" / "core" / "folder").symlink_to(root / "docs")
    assert read(root, ".knowledge/core/b.md") == b"beside"
    assert read(root, ".knowledge/core/folder/b.md") == b"beside"


def test_link_to_a_hidden_place_within_the_root_is_not_followed(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "notes.md").write_text("secret")
    (root / ".knowledge" / "core" / "b.md").symlink_to(root / ".git" / "notes.md")
    with pytest.raises(Escape, match="hidden"):
        read(root, ".knowledge/core/b.md")


def test_link_to_a_file_that_is_no_markdown_is_not_followed(root: Path) -> None:
    (root / "passwords.txt").write_text("secret")
    (root / ".knowledge" / "core" / "b.md").symlink_to(root / "passwords.txt")
    with pytest.raises(Escape, match="not markdown"):
        read(root, ".knowledge/core/b.md")


def test_link_that_loops_is_an_error(root: Path) -> None:
    (root / ".knowledge" / "core" / "b.md").symlink_to("c.md")
    (root / ".knowledge" / "core" / "c.md").symlink_to("b.md")
    with pytest.raises(OSError):
        read(root, ".knowledge/core/b.md")


def test_folder_and_fifo_are_no_files_and_never_block(root: Path) -> None:
    os.mkfifo(root / ".knowledge" / "core" / "b.md")
    with pytest.raises(Escape, match="not a regular file"):
        read(root, ".knowledge/core/b.md")
    with pytest.raises(Escape, match="not a regular file"):
        read(root, ".knowledge/core")


def test_name_that_only_begins_like_the_root_lies_outside(root: Path) -> None:
    twin = root.with_name("repo-two")
    twin.mkdir()
    (twin / "a.md").write_text("secret")
    (root / ".knowledge" / "core" / "b.md").symlink_to(twin / "a.md")
    with pytest.raises(Escape, match="leaves the repository"):
        link_target(root, ".knowledge/core/b.md")


def test_open_folder_can_be_listed_and_entered(root: Path) -> None:
    folder = open_folder(root, ".knowledge")
    below = open_below(folder, "core")
    names = os.listdir(below)
    close_folder(below)
    close_folder(folder)
    assert names == ["a.md"]


def test_root_itself_can_be_opened(root: Path) -> None:
    folder = open_folder(root, "")
    assert os.listdir(folder) == [".knowledge"]
    close_folder(folder)


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="UNTESTED: this system has no openat")
def test_linked_folder_is_not_opened_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = open_folder(tmp_path, "")
    assert isinstance(folder, int)
    with pytest.raises(OSError):
        open_below(folder, "link")
    close_folder(folder)
    with pytest.raises(OSError):
        open_folder(tmp_path, "link")


def test_no_descriptor_stays_open_when_a_file_cannot_be_looked_at(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []

    def fail(descriptor: int) -> os.stat_result:
        opened.append(descriptor)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", fail)
        with pytest.raises(OSError, match="Input/output"):
            open_inside(root, ".knowledge/core/a.md")
    (descriptor,) = opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_link_that_cannot_be_read_now_is_not_taken_for_a_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: object, **_: object) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os.path, "realpath", fail)
    with pytest.raises(OSError, match="Input/output"):
        containment.link_target(root, ".knowledge/core/a.md")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError(5, "Input/output error"), True),
        (OSError(24, "Too many open files"), True),
        (PermissionError(13, "Permission denied"), False),
        (FileNotFoundError(2, "No such file"), False),
        (OSError(40, "Too many levels of symbolic links"), False),
        (Escape("a symbolic link"), False),
    ],
)
def test_errors_that_say_nothing_about_a_file_may_pass(error: OSError, passes: bool) -> None:
    assert containment.may_pass(error) is passes


def test_the_kind_of_what_cannot_be_looked_at_now_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert kind_of(tmp_path / "none") is None
    assert kind_of(tmp_path / "loop") == 0
    assert kind_of(tmp_path) == stat.S_IFDIR

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "failed")

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(OSError, match="failed"):
        kind_of(tmp_path)
