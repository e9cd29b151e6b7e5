"""Files for one pair of eyes."""

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from sage.errors import ConfigError
from sage.privatefiles import locked, read_private, stamp_of, write_private


def test_a_file_is_written_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    write_private(path, b"one")
    write_private(path, b"two")
    assert read_private(path, 100) == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret.json"]


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o601, 0o666])
def test_a_file_that_others_could_open_is_not_trusted(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret.json"
    path.write_bytes(b"text")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_private(path, 100)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
def test_a_mounted_secret_is_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret.json"
    path.write_bytes(b"text")
    path.chmod(mode)
    assert read_private(path, 100) == b"text"


def test_no_file_is_no_error_and_a_folder_is_one(tmp_path: Path) -> None:
    assert read_private(tmp_path / "none", 100) is None
    assert stamp_of(tmp_path / "none") is None
    with pytest.raises(ConfigError, match="cannot be read"):
        read_private(tmp_path, 100)


def test_a_write_that_fails_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_private(tmp_path / "taken", b"text")
    assert os.listdir(tmp_path) == ["taken"]


def test_a_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    with locked(tmp_path / "sage" / "tokens.json"):
        pass
    assert stat.S_IMODE((tmp_path / "sage").stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_a_setting_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written to"), locked(tmp_path / "file" / "x"):
        pass


def test_changes_come_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "count"
    write_private(path, b"0")

    def add() -> None:
        for _ in range(20):
            with locked(path):
                write_private(path, str(int(read_private(path, 9) or b"") + 1).encode())

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_private(path, 9) == b"80"


def test_where_files_cannot_be_locked_the_folder_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with locked(tmp_path / "sage" / "tokens.json"):
        assert (tmp_path / "sage").is_dir()
