"""Tokens: made, shown once, checked, replaced and taken back."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from sage.access.token_file import (
    TORN_SECONDS,
    Grant,
    TokenFile,
    locked,
    moment,
    stamp_of,
    write_private,
)
from sage.atomic import read_private
from sage.errors import ConfigError, InvalidInput, NotFound
from tests.conftest import Clock
from tests.processes import PATIENCE_SECONDS


@pytest.fixture
def tokens(tmp_path: Path, clock: Clock) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json", clock)


def test_a_token_lets_its_bearer_in(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    assert tokens.verify(value) == Grant("ci", None)


def test_a_token_carries_its_layers(tokens: TokenFile) -> None:
    value = tokens.create("ci", ["core", "practices"])
    assert tokens.verify(value) == Grant("ci", ("core", "practices"))


def test_the_file_holds_no_token(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    text = tokens.path.read_text()
    assert value not in text
    assert value.split("_", 2)[2] not in text
    assert value[18:] not in text


def test_two_tokens_never_share_salt_or_hash(tokens: TokenFile) -> None:
    tokens.create("one")
    tokens.create("two")
    first, second = tokens.tokens()
    assert first.salt != second.salt
    assert first.hash != second.hash


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: "",
        lambda value: "x",
        lambda value: value[:-1],
        lambda value: value + "A",
        lambda value: value[:-1] + ("A" if value[-1] != "A" else "B"),
        lambda value: "sage_000000000000_" + value[18:],
        lambda value: value.upper(),
        lambda value: value + "\n",
        lambda value: "\ud800" + value,
        lambda value: value.replace("_", " "),
    ],
)
def test_a_token_that_is_not_exactly_ours_lets_nobody_in(tokens: TokenFile, spoil: object) -> None:
    value = tokens.create("ci")
    assert callable(spoil)
    assert tokens.verify(spoil(value)) is None


def test_a_revoked_token_stops_in_every_process_at_once(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    server = TokenFile(tokens.path)
    assert server.verify(value)
    tokens.revoke("ci")
    assert server.verify(value) is None


def test_a_new_token_works_in_every_process_at_once(tokens: TokenFile) -> None:
    server = TokenFile(tokens.path)
    assert server.verify("sage_x") is None
    assert server.verify(tokens.create("ci"))


def test_a_token_expires(tokens: TokenFile, clock: Clock) -> None:
    value = tokens.create("ci", lifetime_seconds=60)
    clock.seconds += 59
    assert tokens.verify(value)
    clock.seconds += 1
    assert tokens.verify(value) is None


def test_rotating_gives_a_new_value_for_the_same_layers(tokens: TokenFile) -> None:
    old = tokens.create("ci", ["core"])
    new = tokens.rotate("ci")
    assert tokens.verify(old) is None
    assert tokens.verify(new) == Grant("ci", ("core",))


def test_a_rotated_token_is_valid_for_as_long_as_the_old_one_was(
    tokens: TokenFile, clock: Clock
) -> None:
    tokens.create("ci", lifetime_seconds=600)
    clock.seconds += 500
    new = tokens.rotate("ci", overlap_seconds=60)
    clock.seconds += 599
    assert tokens.verify(new)
    clock.seconds += 1
    assert tokens.verify(new) is None


def test_the_old_value_can_stay_for_a_while(tokens: TokenFile, clock: Clock) -> None:
    old = tokens.create("ci")
    new = tokens.rotate("ci", overlap_seconds=3600)
    assert tokens.verify(old)
    clock.seconds += 3600
    assert tokens.verify(old) is None
    assert tokens.verify(new)


def test_an_overlap_does_not_outlive_the_old_value(tokens: TokenFile, clock: Clock) -> None:
    old = tokens.create("ci", lifetime_seconds=60)
    tokens.rotate("ci", overlap_seconds=3600)
    clock.seconds += 60
    assert tokens.verify(old) is None


def test_revoking_takes_every_value_of_a_name(tokens: TokenFile) -> None:
    old = tokens.create("ci")
    new = tokens.rotate("ci", overlap_seconds=3600)
    tokens.revoke("ci")
    assert tokens.verify(old) is None
    assert tokens.verify(new) is None
    assert tokens.tokens() == []


def test_a_name_is_given_once_until_it_expires(tokens: TokenFile, clock: Clock) -> None:
    tokens.create("ci", lifetime_seconds=60)
    with pytest.raises(InvalidInput, match="there is a token ci"):
        tokens.create("ci")
    clock.seconds += 60
    tokens.create("ci")
    assert [token.name for token in tokens.tokens()] == ["ci"]


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "a\nb", "x" * 65, "ü"])
def test_a_name_must_be_readable_in_a_log(tokens: TokenFile, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a token"):
        tokens.create(name)


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tokens: TokenFile) -> None:
    tokens.create("ci")
    with pytest.raises(NotFound, match="the tokens: ci"):
        tokens.revoke("cd")
    with pytest.raises(NotFound):
        tokens.rotate("cd")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tokens": [{}]}', "[" * 100_000])
def test_a_damaged_file_lets_nobody_in(tokens: TokenFile, clock: Clock, text: str) -> None:
    value = tokens.create("ci")
    tokens.path.write_text(text)
    tokens.verify(value)
    clock.tick(TORN_SECONDS + 1)
    assert tokens.verify(value) is None
    with pytest.raises(ConfigError, match="is damaged"):
        tokens.tokens()


def test_a_file_that_others_can_read_lets_nobody_in(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    tokens.path.chmod(0o644)
    assert tokens.verify(value) is None
    tokens.path.chmod(0o600)
    assert tokens.verify(value)


def test_the_file_says_its_version(tokens: TokenFile) -> None:
    tokens.create("ci", ["core"], 60)
    written = json.loads(tokens.path.read_text())
    assert written["version"] == 1
    assert sorted(written["tokens"][0]) == [
        "created", "expires", "hash", "id", "layers", "name", "salt",
    ]  # fmt: skip


def test_a_moment_is_written_in_universal_time() -> None:
    assert moment(0) == "1970-01-01T00:00:00Z"


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


def test_changes_come_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sage.atomic.LOCK_SECONDS", PATIENCE_SECONDS)
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
    monkeypatch.setattr("sage.access.token_file.find_spec", lambda _: None)
    with locked(tmp_path / "sage" / "tokens.json"):
        assert (tmp_path / "sage").is_dir()


def test_a_revocation_reaches_a_file_that_is_mounted_singly(tmp_path: Path) -> None:
    # A second name of the same file sees what a container sees into which only the file, and not
    # its folder, is mounted: the file as it was opened, whatever takes its name later.
    outside, inside = tmp_path / "tokens.json", tmp_path / "mounted.json"
    value = TokenFile(outside).create("ci")
    os.link(outside, inside)
    server = TokenFile(inside)
    assert server.verify(value) == Grant("ci")
    TokenFile(outside).create("other")
    assert server.verify(value) == Grant("ci")
    TokenFile(outside).revoke("ci")
    assert server.verify(value) is None


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="UNTESTED: no /proc here")
def test_a_file_that_was_replaced_behind_a_mount_lets_nobody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens.json"
    value = TokenFile(path).create("ci")
    with path.open("rb") as held:
        server = TokenFile(Path(f"/proc/self/fd/{held.fileno()}"))
        assert server.verify(value) == Grant("ci")
        path.unlink()
        assert server.verify(value) is None
    assert "mount its folder" in caplog.text


def test_a_file_is_used_as_it_was_while_it_is_rewritten(tokens: TokenFile, clock: Clock) -> None:
    value = tokens.create("ci")
    assert tokens.verify(value)
    whole = tokens.path.read_text()
    tokens.path.write_text(whole.replace('"ci"', '"me"'))  # whole JSON, but no whole file
    assert tokens.verify(value) == Grant("ci")
    clock.tick(TORN_SECONDS + 1)
    assert tokens.verify(value) is None
    tokens.path.write_text(whole)
    assert tokens.verify(value) == Grant("ci")


def test_a_change_that_was_killed_halfway_is_finished_by_the_next(tokens: TokenFile) -> None:
    value = tokens.create("ci")
    whole = tokens.path.read_text()
    draft = tokens.path.with_name(".tokens.json.new")
    draft.write_text(whole)
    draft.chmod(0o600)
    tokens.path.write_text(whole[:40])
    tokens.create("other")
    assert tokens.verify(value) == Grant("ci")
    assert not draft.exists()


def test_nobody_else_can_hold_the_lock(tokens: TokenFile) -> None:
    lock = tokens.path.with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch(0o644)
    tokens.create("ci")
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_a_lock_that_somebody_holds_is_an_error_and_no_hang(
    tokens: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.atomic.LOCK_SECONDS", 0.0)
    with locked(tokens.path), pytest.raises(ConfigError, match="another process holds"):
        tokens.create("ci")


def test_a_token_carries_its_sources(tokens: TokenFile) -> None:
    value = tokens.create("ci", sources=["company"])
    again = TokenFile(tokens.path)
    assert again.verify(value) == Grant("ci", None, ("company",))
    assert '"sources"' in tokens.path.read_text()


def test_a_lock_of_somebody_else_keeps_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "tokens.lock"
    lock.touch(0o644)
    lock.chmod(0o644)
    owner = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    with locked(tmp_path / "tokens.json"):
        assert stat.S_IMODE(lock.stat().st_mode) == 0o644


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="UNTESTED: pipes with names are POSIX's")
@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_what_is_no_file_in_its_place_lets_nobody_in_and_holds_nobody_up(
    kind: str, tokens: TokenFile
) -> None:
    value = tokens.create("alice")
    assert tokens.verify(value)
    tokens.path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(tokens.path, 0o600)
        case "folder":
            tokens.path.mkdir(0o700)
        case _:
            tokens.path.symlink_to(tokens.path)
    assert tokens.verify(value) is None
    with pytest.raises(ConfigError):
        tokens.create("bob")


@pytest.mark.skipif(not hasattr(os, "chown"), reason="UNTESTED: owners are POSIX's")
def test_a_draft_of_another_user_is_not_restored(
    tokens: TokenFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.create("alice")
    theirs = TokenFile(tmp_path / "theirs.json")
    theirs.create("mallory")
    theirs.path.rename(tokens.path.with_name(".tokens.json.new"))
    lstat = Path.lstat

    def owned_by_another(path: Path) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:]))

    monkeypatch.setattr(Path, "lstat", owned_by_another)
    with pytest.raises(ConfigError, match="another user"):
        tokens.create("bob")
    assert [token.name for token in tokens.tokens()] == ["alice"]
