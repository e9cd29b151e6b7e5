"""Somebody's file is replaced whole, with its permissions, and never lost."""

import os
import stat
import threading
from pathlib import Path

import pytest

from sage.atomic import create_bytes, read_bytes, replace_bytes
from sage.errors import ConfigError


@pytest.fixture(autouse=True, params=["without a name", "with a name"])
def writing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written has no name until it is whole, or one where a file system knows no such."""
    if request.param == "with a name":
        monkeypatch.setattr("sage.atomic._UNNAMED", 0)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    replace_bytes(file, b"old", b"new")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_can_be_replaced_by_none(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    with pytest.raises(ConfigError, match="changed by something else"):
        replace_bytes(file, b"other", None)
    replace_bytes(file, b"old", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="UNTESTED: permissions are POSIX")
def test_permissions_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_bytes(b"old")
    file.chmod(0o600)
    replace_bytes(file, b"old", b"new")
    assert mode(file) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="UNTESTED: permissions are POSIX")
def test_a_new_file_has_the_permissions_that_the_user_gives_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_bytes(tmp_path / "new.json", None, b"new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.json") == 0o640


def test_a_failed_write_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        replace_bytes(file, b"old", b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "real.json"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link.json"
    link.symlink_to("dotfiles/real.json")
    replace_bytes(link, read_bytes(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_missing_folders_are_made(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "c.json"
    assert read_bytes(file) is None
    replace_bytes(file, None, b"new")
    assert file.read_bytes() == b"new"


def test_a_file_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"theirs")
    with pytest.raises(ConfigError, match="changed by something else"):
        replace_bytes(file, b"old", b"new")
    assert file.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a file"):
        read_bytes(tmp_path)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "a.json"
    link.symlink_to(link)
    with pytest.raises(ConfigError):
        replace_bytes(link, read_bytes(link), b"new")


def test_a_folder_that_cannot_be_made_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be"):
        replace_bytes(tmp_path / "file" / "a.json", None, b"new")


def test_creating_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "new" / "page.md"
    assert create_bytes(file, b"first")
    assert not create_bytes(file, b"second")
    assert file.read_bytes() == b"first"


def test_creating_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be written"):
        create_bytes(tmp_path / "file" / "page.md", b"x")


LINKS = ["AGENTS.md", ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "a/b/c.json"]


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("linked", ["the file", "its first folder"])
def test_no_link_below_a_repository_is_followed(tmp_path: Path, name: str, linked: str) -> None:
    root, outside = tmp_path / "repository", tmp_path / "outside"
    path = root / name
    first = root / Path(name).parts[0]
    if linked == "the file":
        path.parent.mkdir(parents=True)
        outside.write_bytes(b"alias ls=ls\n")
        path.symlink_to(outside)
    else:
        root.mkdir()
        (outside / "deep" / path.relative_to(first).parent).mkdir(parents=True)
        first.symlink_to(outside / "deep")
    before = snapshot(tmp_path)
    for change in (
        lambda: read_bytes(path, root),
        lambda: replace_bytes(path, None, b"new", root),
        lambda: create_bytes(path, b"new", root),
    ):
        with pytest.raises(ConfigError) as refused:
            change()
        assert f"is a link to {(path if linked == 'the file' else first).resolve()}" in str(
            refused.value
        )
        assert "by hand" in str(refused.value)
    assert snapshot(tmp_path) == before


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_link_that_leads_nowhere_is_refused_below_a_repository(tmp_path: Path) -> None:
    link = tmp_path / "AGENTS.md"
    link.symlink_to(tmp_path.parent / "not-there-yet")
    with pytest.raises(ConfigError, match="is a link to"):
        create_bytes(link, b"new", tmp_path)
    assert not (tmp_path.parent / "not-there-yet").exists()


def test_a_folder_exchanged_for_a_link_while_it_is_written_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "repository", tmp_path / "outside"
    (root / ".cursor").mkdir(parents=True)
    outside.mkdir()
    opened = os.open
    swapped: list[object] = []

    def swap(path: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if flags & os.O_WRONLY and not swapped:
            swapped.append(path)
            (root / ".cursor").rename(root / "moved")
            (root / ".cursor").symlink_to(outside)
        return opened(path, flags, *rest, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap)
    monkeypatch.setattr("sage.atomic._BY_DESCRIPTOR", True)
    replace_bytes(root / ".cursor/mcp.json", None, b"new", root)
    assert swapped
    assert list(outside.iterdir()) == []
    assert (root / "moved/mcp.json").read_bytes() == b"new"


def test_permissions_survive_and_two_writers_wait_for_each_other(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"0")
    file.chmod(0o640)

    def count_up() -> None:
        for _ in range(20):
            while True:
                before = read_bytes(file)
                assert before is not None
                try:
                    replace_bytes(file, before, b"%d" % (int(before) + 1), None)
                except ConfigError:
                    continue
                break

    threads = [threading.Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_bytes() == b"80"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path) -> None:
    left = [tmp_path / f".{'0a' * 8}.part", tmp_path / ".mine.part", tmp_path / "0a0a.part"]
    for path in left:
        path.write_bytes(b"half")
    replace_bytes(tmp_path / "a.json", None, b"new")
    assert sorted(tmp_path.iterdir()) == sorted([*left[1:], tmp_path / "a.json"])
