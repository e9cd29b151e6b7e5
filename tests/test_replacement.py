"""Somebody's file is replaced whole, with its permissions, and never lost."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sage.errors import ConfigError
from sage.replacement import create_bytes, read_bytes, replace_bytes

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_old_bytes_lie_beside_the_new_ones(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    copy = replace_bytes(file, b"old", b"new", NOW)
    assert copy == tmp_path / "a.json.20260304-050607.bak"
    assert (file.read_bytes(), copy.read_bytes()) == (b"new", b"old")
    assert len(list(tmp_path.iterdir())) == 2


def test_two_changes_in_one_second_keep_both_copies(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"1")
    first = replace_bytes(file, b"1", b"2", NOW)
    second = replace_bytes(file, b"2", b"3", NOW)
    assert first is not None
    assert second is not None
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")


@pytest.mark.skipif(os.name != "posix", reason="UNTESTED: permissions are POSIX")
def test_permissions_are_kept_by_the_file_and_its_copy(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_bytes(b"old")
    file.chmod(0o600)
    copy = replace_bytes(file, b"old", b"new", NOW)
    assert copy is not None
    assert mode(file) == mode(copy) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="UNTESTED: permissions are POSIX")
def test_a_new_file_has_the_permissions_that_the_user_gives_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_bytes(tmp_path / "new.json", None, b"new", NOW)
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.json") == 0o640


def test_a_failed_write_leaves_no_trace(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")
    (tmp_path / f".a.json.{os.getpid()}.sage").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        replace_bytes(file, b"old", b"new", now=None)
    assert file.read_bytes() == b"old"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "real.json"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link.json"
    link.symlink_to("dotfiles/real.json")
    replace_bytes(link, read_bytes(link), b"new", NOW)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_missing_folders_are_made_and_nothing_is_copied(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "c.json"
    assert read_bytes(file) is None
    assert replace_bytes(file, None, b"new", NOW) is None
    assert file.read_bytes() == b"new"


def test_a_file_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"theirs")
    with pytest.raises(ConfigError, match="changed by something else"):
        replace_bytes(file, b"old", b"new", NOW)
    assert file.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a file"):
        read_bytes(tmp_path)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "a.json"
    link.symlink_to(link)
    with pytest.raises(ConfigError):
        replace_bytes(link, read_bytes(link), b"new", NOW)


def test_a_folder_that_cannot_be_made_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be"):
        replace_bytes(tmp_path / "file" / "a.json", None, b"new", NOW)


def test_creating_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "new" / "page.md"
    assert create_bytes(file, b"first")
    assert not create_bytes(file, b"second")
    assert file.read_bytes() == b"first"


def test_creating_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be written"):
        create_bytes(tmp_path / "file" / "page.md", b"x")
