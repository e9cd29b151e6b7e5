import fcntl
import os
from pathlib import Path

import pytest

from sage.vault import Doubtful, Vault, sealed, unsealed

FILES = {"a": b"first", "b": bytes(range(256))}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "cache", tmp_path / "repo")


def test_what_was_written_is_read_again(vault: Vault) -> None:
    vault.write({"made": 1}, FILES)
    manifest, files = vault.read() or ({}, {})
    assert manifest["made"] == 1
    assert files == FILES


def test_an_empty_cache_holds_nothing(vault: Vault) -> None:
    assert vault.read() is None
    vault.folder.mkdir(parents=True)
    assert vault.read() is None


def test_the_folder_and_the_file_are_private(vault: Vault) -> None:
    vault.write({}, FILES)
    assert vault.folder.stat().st_mode & 0o777 == 0o700
    assert vault.path.stat().st_mode & 0o777 == 0o600


def test_roots_do_not_share_a_file(tmp_path: Path) -> None:
    assert Vault(tmp_path, Path("/a")).path != Vault(tmp_path, Path("/b")).path


def test_any_changed_byte_is_noticed() -> None:
    data = sealed({"made": 1}, FILES)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(Doubtful):
            unsealed(bytes(changed))


@pytest.mark.parametrize("kept", [0, 7, 39, 41, -1])
def test_a_cut_file_is_noticed(kept: int) -> None:
    with pytest.raises(Doubtful):
        unsealed(sealed({}, FILES)[:kept])


def test_a_folder_others_may_write_to_is_refused(vault: Vault) -> None:
    vault.write({}, FILES)
    vault.folder.chmod(0o770)
    with pytest.raises(Doubtful, match="others may write"):
        vault.read()
    with pytest.raises(Doubtful, match="others may write"):
        vault.write({}, FILES)


def test_a_folder_others_may_read_is_closed(vault: Vault) -> None:
    vault.write({}, FILES)
    vault.folder.chmod(0o755)
    assert vault.read() is not None
    assert vault.folder.stat().st_mode & 0o777 == 0o700


def test_a_file_others_may_write_to_is_refused(vault: Vault) -> None:
    vault.write({}, FILES)
    vault.path.chmod(0o666)
    with pytest.raises(Doubtful, match="others may write"):
        vault.read()


def test_a_linked_folder_is_refused(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    vault.folder.parent.mkdir()
    vault.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Doubtful, match="a link or a file"):
        vault.write({}, FILES)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_linked_file_is_refused(vault: Vault, tmp_path: Path) -> None:
    vault.write({}, FILES)
    vault.path.rename(tmp_path / "planted")
    vault.path.symlink_to(tmp_path / "planted")
    with pytest.raises(Doubtful):
        vault.read()


def test_a_file_with_a_second_name_is_refused(vault: Vault, tmp_path: Path) -> None:
    vault.write({}, FILES)
    os.link(vault.path, tmp_path / "second")
    with pytest.raises(Doubtful, match="not ours"):
        vault.read()


def test_without_descriptors_of_folders_it_works_by_path(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    vault.write({"made": 1}, FILES)
    assert vault.read() == ({"made": 1, "files": [["a", 5], ["b", 256]]}, FILES)
    vault.folder.chmod(0o777)
    with pytest.raises(Doubtful):
        vault.read()


def test_a_fifo_in_its_place_does_not_block(vault: Vault) -> None:
    vault.folder.mkdir(mode=0o700, parents=True)
    os.mkfifo(vault.path)
    with pytest.raises(Doubtful):
        vault.read()


def test_a_folder_of_another_user_is_refused(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.write({}, FILES)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(vault.folder).st_uid + 1)
    with pytest.raises(Doubtful, match="another user"):
        vault.read()
    with pytest.raises(Doubtful, match="another user"):
        vault.write({}, FILES)


def test_a_cache_folder_that_is_a_file_is_refused(vault: Vault) -> None:
    vault.folder.parent.mkdir()
    vault.folder.write_text("not a folder")
    with pytest.raises(Doubtful):
        vault.write({}, FILES)


def test_a_full_disk_leaves_the_old_file_and_no_rest(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write({"made": "old"}, FILES)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Doubtful, match="No space left"):
        vault.write({"made": "new"}, FILES)
    manifest, _ = vault.read() or ({}, {})
    assert manifest["made"] == "old"
    assert list(vault.folder.iterdir()) == [vault.path]


def test_what_a_killed_writer_left_is_swept(vault: Vault) -> None:
    vault.write({}, FILES)
    old, new = vault.folder / "old.part", vault.folder / "new.part"
    for part in (old, new):
        part.write_bytes(b"half")
    now = vault.folder.stat().st_mtime
    os.utime(old, (now - 7200, now - 7200))
    vault.write({}, FILES)
    assert not old.exists()
    assert new.exists()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="UNTESTED: no /proc here")
def test_no_descriptor_stays_open_when_no_file_can_be_made_of_it(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write({"made": 1}, FILES)
    before = descriptors()

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", fail)
        with pytest.raises(Doubtful):
            vault.read()
        with pytest.raises(Doubtful):
            vault.write({"made": 2}, FILES)
    assert descriptors() == before
    assert list(vault.folder.iterdir()) == [vault.path]


def test_the_rest_of_a_dead_writer_goes_soon_and_that_of_a_living_one_stays(vault: Vault) -> None:
    vault.write({}, FILES)
    now = vault.folder.stat().st_mtime
    for name in ("dead.part", "held.part", "new.part"):
        (vault.folder / name).write_bytes(b"half")
        os.utime(vault.folder / name, (now, now - (0 if name == "new.part" else 60)))
    with (vault.folder / "held.part").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        vault.write({}, FILES)
    left = {path.name for path in vault.folder.iterdir()} - {vault.path.name}
    assert left == {"held.part", "new.part"}
