"""The attacks that opening folders and files has to stop: each swaps something for a link."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sage.documents import containment, walk
from sage.documents.containment import open_inside, read_file
from sage.documents.files import Escape, stamp_of
from sage.documents.walk import close_folder, open_below, open_folder
from tests.conftest import Base


@pytest.fixture(params=["by parent", "by path"])
def root(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A root, once with the rules of systems that have `openat` and once without."""
    if request.param == "by path":
        monkeypatch.setattr(walk, "_BY_PARENT", False)
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


def test_read_gives_the_bytes_and_their_stamp(base: Base) -> None:
    base.write({"core/a.md": b"\xef\xbb\xbfa\r\nb"})
    read = read_file(base.root, ".knowledge/core/a.md", 100)
    assert read == (b"\xef\xbb\xbfa\r\nb", stamp_of(base.path("core/a.md").stat()))


def test_file_that_grew_beyond_the_limit_counts_as_torn(base: Base) -> None:
    base.write({"core/a.md": "x" * 100})
    assert read_file(base.root, ".knowledge/core/a.md", 50) is None


def test_file_written_to_while_it_is_read_counts_as_torn(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.write({"core/a.md": "before"})
    read_all = containment._read_all

    def read_and_write(descriptor: int, most: int) -> bytes:
        data = read_all(descriptor, most)
        base.write({"core/a.md": "behind"})
        return data

    monkeypatch.setattr(containment, "_read_all", read_and_write)
    assert read_file(base.root, ".knowledge/core/a.md", 50) is None


def test_file_outside_the_root_is_never_read(base: Base, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    base.write({"core/a.md": "x"})
    base.path("core/b.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(Escape):
        read_file(base.root, ".knowledge/core/b.md", 100)


class Emptied:
    """The status of a file that ext4 is about to truncate: no size, but still its blocks."""

    st_size, st_blocks = 0, 8

    def __init__(self, status: os.stat_result) -> None:
        self._status = status

    def __getattr__(self, name: str) -> object:
        return getattr(self._status, name)


def test_file_that_has_no_size_but_still_its_blocks_is_being_truncated(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.write({"core/a.md": ""})
    assert read_file(base.root, ".knowledge/core/a.md", 100)
    status_of = os.fstat
    monkeypatch.setattr(os, "fstat", lambda descriptor: Emptied(status_of(descriptor)))
    assert read_file(base.root, ".knowledge/core/a.md", 100) is None
