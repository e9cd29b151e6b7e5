"""What a session was given is remembered: privately, within bounds, each thing once."""

import os
import threading
from pathlib import Path

import pytest

from sage.hooks.session import MAX_KEYS, MAX_LOG_BYTES, MAX_SESSIONS, HookSession, PrivateFolder


def session(tmp_path: Path, name: str = "s") -> HookSession:
    return HookSession(PrivateFolder(tmp_path / "cache"), tmp_path / "repo", name)


def test_a_key_is_given_once(tmp_path: Path) -> None:
    assert session(tmp_path).claim(["core/a", "core/b"]) == {"core/a", "core/b"}
    assert session(tmp_path).claim(["core/b", "core/c"]) == {"core/c"}
    assert session(tmp_path).given() == {"core/a", "core/b", "core/c"}


def test_sessions_do_not_share(tmp_path: Path) -> None:
    session(tmp_path, "one").claim(["core/a"])
    assert session(tmp_path, "two").claim(["core/a"]) == {"core/a"}


def test_a_session_that_begins_anew_is_given_everything_again(tmp_path: Path) -> None:
    session(tmp_path).claim(["core/a"])
    session(tmp_path).forget()
    assert session(tmp_path).claim(["core/a"]) == {"core/a"}


def test_of_many_at_once_one_gets_a_page(tmp_path: Path) -> None:
    got: list[frozenset[str]] = []
    threads = [
        threading.Thread(target=lambda: got.append(session(tmp_path).claim(["core/a"])))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, got)) == [0] * 7 + [1]


def test_what_is_kept_is_private(tmp_path: Path) -> None:
    session(tmp_path).claim(["core/a"])
    PrivateFolder(tmp_path / "cache").log("a reason")
    folder = tmp_path / "cache" / "hooks"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "hooks"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(PermissionError):
        session(tmp_path).claim(["core/a"])


def test_a_link_in_the_place_of_the_memory_is_not_followed(tmp_path: Path) -> None:
    session(tmp_path).claim(["core/a"])
    kept = next((tmp_path / "cache" / "hooks").iterdir())
    target = tmp_path / "precious"
    target.write_text("mine")
    kept.unlink()
    kept.symlink_to(target)
    with pytest.raises(OSError, match="link"):
        session(tmp_path).claim(["core/b"])
    assert target.read_text() == "mine"


def test_memory_is_bounded(tmp_path: Path) -> None:
    assert session(tmp_path).claim([f"core/{n}" for n in range(MAX_KEYS + 1)]) == frozenset()
    for number in range(MAX_SESSIONS + 5):
        session(tmp_path, str(number)).claim(["core/a"])
    assert len(os.listdir(tmp_path / "cache" / "hooks")) <= MAX_SESSIONS


def test_the_log_is_bounded(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path / "cache")
    for _ in range(400):
        folder.log("reason " * 100)
    assert (folder.path / "hooks.log").stat().st_size <= MAX_LOG_BYTES + 1_000
