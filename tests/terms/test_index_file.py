import fcntl
import hashlib
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from sage.terms.index_file import FilePart, IndexFile, MemoryPart, Part, UntrustedIndex

BYTES = {"a": b"first", "b": bytes(range(256))}
PARTS: dict[str, Part] = {name: MemoryPart(data) for name, data in BYTES.items()}


@pytest.fixture
def index_file(tmp_path: Path) -> IndexFile:
    return IndexFile(tmp_path / "cache", tmp_path / "repo")


def test_what_was_written_is_read_again(index_file: IndexFile) -> None:
    index_file.write({"made": 1}, PARTS)
    assert read(index_file) == (1, BYTES)


def test_it_is_written_by_the_piece(index_file: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    # All pieces at once would take as much memory as the file of a large index.
    events: list[str] = []

    class Told(MemoryPart):
        def read(self, start: int, stop: int) -> bytes:
            events.append("read")
            return super().read(start, stop)

    def write(folder: object, name: str, pieces: Iterable[bytes]) -> int:
        del folder, name
        events.extend("written" for _ in pieces)
        return 0

    monkeypatch.setattr("sage.terms.index_file.write_file", write)
    monkeypatch.setattr("sage.terms.index_file._CHUNK", 2)
    index_file.write({}, {name: Told(b"abc") for name in "ab"} | {"c": Told(b"a")})
    blocks = "".join(one[0] for one in events).strip("w").split("w")
    assert len(blocks) > 2
    assert max(map(len, blocks)) == 2  # parts that are read for one piece


def test_an_empty_cache_holds_nothing(index_file: IndexFile) -> None:
    assert index_file.read() is None
    index_file.folder.mkdir(parents=True)
    assert index_file.read() is None


def test_the_folder_and_the_file_are_private(index_file: IndexFile) -> None:
    index_file.write({}, PARTS)
    assert index_file.folder.stat().st_mode & 0o777 == 0o700
    assert index_file.path.stat().st_mode & 0o777 == 0o600


def test_roots_do_not_share_a_file(tmp_path: Path) -> None:
    assert IndexFile(tmp_path, Path("/a")).path != IndexFile(tmp_path, Path("/b")).path


def read(index_file: IndexFile) -> tuple[object, dict[str, bytes]]:
    manifest, parts = index_file.read() or ({}, {})
    return manifest.get("made"), {name: part.read(0, part.size) for name, part in parts.items()}


@pytest.fixture(params=["whole", "by the piece"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by the piece":
        monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
        monkeypatch.setattr("sage.terms.index_file._BLOCK", 64)
        monkeypatch.setattr("sage.terms.index_file._CHUNK", 100)


@pytest.mark.usefixtures("sizes")
def test_any_changed_byte_is_noticed(index_file: IndexFile) -> None:
    index_file.write({"made": 1}, PARTS)
    data = index_file.path.read_bytes()
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        index_file.path.write_bytes(changed)
        with pytest.raises(UntrustedIndex):
            read(index_file)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("kept", [0, 7, 39, 41, -1])
def test_a_cut_file_is_noticed(index_file: IndexFile, kept: int) -> None:
    index_file.write({"made": 1}, PARTS)
    index_file.path.write_bytes(index_file.path.read_bytes()[:kept])
    with pytest.raises(UntrustedIndex):
        index_file.read()


def test_a_file_that_shrinks_while_it_is_open_is_noticed(
    index_file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
    index_file.write({"made": 1}, PARTS)
    _, parts = index_file.read() or ({}, {})
    assert isinstance(parts["b"], FilePart)
    index_file.path.write_bytes(b"")
    with pytest.raises(UntrustedIndex):
        parts["b"].read(0, 256)


def test_a_block_is_checked_when_something_of_it_is_read(
    index_file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
    monkeypatch.setattr("sage.terms.index_file._BLOCK", 64)
    index_file.write({"made": 1}, PARTS)
    data = bytearray(index_file.path.read_bytes())
    data[data.index(BYTES["b"]) + 250] ^= 1
    index_file.path.write_bytes(data)
    _, parts = index_file.read() or ({}, {})
    assert parts["b"].read(3, 180) == BYTES["b"][3:180]
    for start, stop in ((248, 249), (0, 256)):
        with pytest.raises(UntrustedIndex, match="damaged"):
            parts["b"].read(start, stop)


def resealed(head: bytes, body: bytes = b"") -> bytes:
    start = b"SAGEIDX4" + len(head).to_bytes(8, "big") + len(body).to_bytes(8, "big") + head
    table = zlib.crc32(body).to_bytes(4, "big") if body else b""
    return start + body + table + hashlib.blake2b(start + table, digest_size=32).digest()


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{}",
        b"[]",
        b'{"parts": 1}',
        b'{"parts": [["a", 6]]}',
        b'{"parts": [["a", -1]]}',
        b'{"parts": [["a", 4]]}',
        b'{"parts": [["a", true]]}',
        b'{"parts": [[["a"], 5]]}',
        b"[" * 100_000,
        b"\x80\x04\x95",
    ],
    ids=lambda head: str(head[:24]),
)
def test_a_planted_file_with_a_right_seal_is_refused(index_file: IndexFile, head: bytes) -> None:
    index_file.write({}, PARTS)
    index_file.path.write_bytes(resealed(head, b"12345"))
    with pytest.raises(UntrustedIndex):
        index_file.read()


@pytest.mark.parametrize("inside", [".cache", ".knowledge/cache", "."])
def test_a_cache_folder_inside_the_repository_is_refused(tmp_path: Path, inside: str) -> None:
    index_file = IndexFile(tmp_path / "repo" / inside, tmp_path / "repo")
    with pytest.raises(UntrustedIndex, match="inside the repository; set SAGE_CACHE_DIR"):
        index_file.write({}, PARTS)
    with pytest.raises(UntrustedIndex, match="inside the repository"):
        index_file.read()
    assert list(tmp_path.rglob("*.sage")) == []


def test_a_link_does_not_lead_the_cache_folder_into_the_repository(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "repo")
    with pytest.raises(UntrustedIndex, match="inside the repository"):
        IndexFile(tmp_path / "cache", tmp_path / "repo").write({}, PARTS)


def test_a_home_folder_may_be_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    index_file = IndexFile(tmp_path / ".cache" / "sage", tmp_path)
    index_file.write({"made": 1}, PARTS)
    assert read(index_file) == (1, BYTES)


def test_a_folder_others_may_write_to_is_refused(index_file: IndexFile) -> None:
    index_file.write({}, PARTS)
    index_file.folder.chmod(0o770)
    with pytest.raises(UntrustedIndex, match="others may write"):
        index_file.read()
    with pytest.raises(UntrustedIndex, match="others may write"):
        index_file.write({}, PARTS)


def test_a_folder_others_may_read_is_closed(index_file: IndexFile) -> None:
    index_file.write({}, PARTS)
    index_file.folder.chmod(0o755)
    assert index_file.read() is not None
    assert index_file.folder.stat().st_mode & 0o777 == 0o700


def test_a_file_others_may_write_to_is_refused(index_file: IndexFile) -> None:
    index_file.write({}, PARTS)
    index_file.path.chmod(0o666)
    with pytest.raises(UntrustedIndex, match="others may write"):
        index_file.read()


def test_a_linked_folder_is_refused(index_file: IndexFile, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    index_file.folder.parent.mkdir()
    index_file.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UntrustedIndex, match="a link or a file"):
        index_file.write({}, PARTS)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_linked_file_is_refused(index_file: IndexFile, tmp_path: Path) -> None:
    index_file.write({}, PARTS)
    index_file.path.rename(tmp_path / "planted")
    index_file.path.symlink_to(tmp_path / "planted")
    with pytest.raises(UntrustedIndex):
        index_file.read()


def test_a_file_with_a_second_name_is_refused(index_file: IndexFile, tmp_path: Path) -> None:
    index_file.write({}, PARTS)
    os.link(index_file.path, tmp_path / "second")
    with pytest.raises(UntrustedIndex, match="not ours"):
        index_file.read()


def test_without_descriptors_of_folders_it_works_by_path(
    index_file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    index_file.write({"made": 1}, PARTS)
    assert read(index_file) == (1, BYTES)
    index_file.folder.chmod(0o777)
    with pytest.raises(UntrustedIndex):
        index_file.read()


def test_a_fifo_in_its_place_does_not_block(index_file: IndexFile) -> None:
    index_file.folder.mkdir(mode=0o700, parents=True)
    os.mkfifo(index_file.path)
    with pytest.raises(UntrustedIndex):
        index_file.read()


def test_a_folder_of_another_user_is_refused(
    index_file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_file.write({}, PARTS)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(index_file.folder).st_uid + 1)
    with pytest.raises(UntrustedIndex, match="another user"):
        index_file.read()
    with pytest.raises(UntrustedIndex, match="another user"):
        index_file.write({}, PARTS)


def test_a_cache_folder_that_is_a_file_is_refused(index_file: IndexFile) -> None:
    index_file.folder.parent.mkdir()
    index_file.folder.write_text("not a folder")
    with pytest.raises(UntrustedIndex):
        index_file.write({}, PARTS)


def test_a_full_disk_leaves_the_old_file_and_no_rest(
    index_file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_file.write({"made": "old"}, PARTS)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UntrustedIndex, match="No space left"):
        index_file.write({"made": "new"}, PARTS)
    manifest, _ = index_file.read() or ({}, {})
    assert manifest["made"] == "old"
    assert list(index_file.folder.iterdir()) == [index_file.path]


def test_what_a_killed_writer_left_is_swept(index_file: IndexFile) -> None:
    index_file.write({}, PARTS)
    old, new = index_file.folder / "old.part", index_file.folder / "new.part"
    for part in (old, new):
        part.write_bytes(b"half")
    now = index_file.folder.stat().st_mtime
    os.utime(old, (now - 7200, now - 7200))
    index_file.write({}, PARTS)
    assert not old.exists()
    assert new.exists()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="UNTESTED: no /proc here")
def test_no_descriptor_stays_open_when_a_file_cannot_be_used(
    index_file: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_file.write({"made": 1}, PARTS)
    before = descriptors()

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", fail)
        with pytest.raises(UntrustedIndex, match="Input/output error"):
            index_file.read()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", fail)
        with pytest.raises(UntrustedIndex):
            index_file.write({"made": 2}, PARTS)
    assert descriptors() == before
    assert list(index_file.folder.iterdir()) == [index_file.path]


def test_the_rest_of_a_dead_writer_goes_soon_and_that_of_a_living_one_stays(
    index_file: IndexFile,
) -> None:
    index_file.write({}, PARTS)
    now = index_file.folder.stat().st_mtime
    for name in ("dead.part", "held.part", "new.part"):
        (index_file.folder / name).write_bytes(b"half")
        os.utime(index_file.folder / name, (now, now - (0 if name == "new.part" else 60)))
    with (index_file.folder / "held.part").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        index_file.write({}, PARTS)
    left = {path.name for path in index_file.folder.iterdir()} - {index_file.path.name}
    assert left == {"held.part", "new.part"}
