import contextlib
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sage.deadline import Deadline, no_deadline
from sage.documents import files
from sage.documents import walk as walk_module
from sage.documents.containment import read_file
from sage.documents.files import EarlierWalk, Rules, SourceFile, Walk
from sage.documents.ignore_patterns import ignore_rule
from sage.documents.walk import walk_layer
from sage.sanitize import shown_name
from tests.conftest import Base, Clock


def walk(
    root: Path,
    *,
    ignore: tuple[str, ...] = (),
    max_files: int = 1_000,
    deadline: Deadline | None = None,
    known: tuple[SourceFile, ...] = (),
) -> Walk:
    rules = Rules(max_file_bytes=1_000, max_files=max_files, ignores=ignore_rule(ignore))
    return walk_layer(root, "core", rules, deadline or no_deadline(), EarlierWalk(known))


def paths(found: Walk) -> list[str]:
    return [source.path.removeprefix(".knowledge/core/") for source in found.files]


def rules_of(found: Walk) -> dict[str, str]:
    return {
        problem.path.removeprefix(".knowledge/core/"): problem.rule for problem in found.problems
    }


def test_nested_markdown_is_listed_by_path_with_its_stamp(base: Base) -> None:
    base.write({"core/b.md": "b", "core/x/y/c.MARKDOWN": "c", "core/a.Md": "a"})
    found = walk(base.root)
    assert paths(found) == ["a.Md", "b.md", "x/y/c.MARKDOWN"]
    status = base.path("core/b.md").stat()
    assert found.files[1] == SourceFile(
        ".knowledge/core/b.md",
        "core",
        files.Stamp(status.st_ino, 1, status.st_mtime_ns, status.st_ctime_ns),
    )
    assert found.complete
    assert not found.problems


def test_what_is_no_served_markdown_is_left_out_and_reported(base: Base) -> None:
    base.write(
        {
            "core/.hidden.md": "x",
            "core/.obsidian/notes.md": "x",
            "core/picture.png": b"\x89PNG",
            "core/drafts/plan.md": "x",
            "core/large.md": "x" * 1_001,
            "core/fits.md": "x" * 1_000,
        }
    )
    found = walk(base.root, ignore=("drafts/",))
    assert paths(found) == ["fits.md"]
    assert list(rules_of(found).items()) == [
        (".hidden.md", "hidden"),
        (".obsidian", "hidden"),
        ("drafts/plan.md", "ignored"),
        ("large.md", "too-large"),
        ("picture.png", "not-markdown"),
    ]
    notes = {problem.rule for problem in found.problems if problem.level == "note"}
    assert notes == {"hidden", "ignored", "not-markdown"}


def test_ignored_folder_pattern_leaves_out_the_folder_itself(base: Base) -> None:
    base.write({"core/old/a.md": "x", "core/b.draft.md": "x", "core/keep.draft.md": "x"})
    found = walk(base.root, ignore=("core/old", "*.draft.md", "!keep.draft.md"))
    assert paths(found) == ["keep.draft.md"]
    assert rules_of(found) == {"old": "ignored", "b.draft.md": "ignored"}


def test_fifo_socket_and_folder_named_like_markdown_are_no_files(base: Base) -> None:
    base.write({"core/folder.md/inner.md": "x"})
    os.mkfifo(base.path("core/fifo.md"))
    with contextlib.chdir(base.path("core")), socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.md")
        found = walk(base.root)
    assert paths(found) == ["folder.md/inner.md"]
    assert rules_of(found) == {"fifo.md": "not-a-file", "socket.md": "not-a-file"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"two\nlines.md", "two\\nlines.md"),
        (b"\xff.md", "\\xff.md"),
        (b"bell\x07.md", "bell\\x07.md"),
        ("right\u202eto-left.md".encode(), "right\\u202eto-left.md"),
        ("filled\u3164.md".encode(), "filled\\u3164.md"),
        ("selected\ufe0f.md".encode(), "selected\\ufe0f.md"),
    ],
)
def test_name_that_is_no_readable_text_is_reported_escaped(
    base: Base, name: bytes, shown: str
) -> None:
    base.write({"core/fine.md": "x"})
    Path(os.fsdecode(os.fsencode(base.path("core")) + b"/" + name)).write_text("x")
    found = walk(base.root)
    assert paths(found) == ["fine.md"]
    assert rules_of(found) == {shown: "unreadable-name"}
    assert shown.isprintable()


def test_names_in_any_script_are_listed(base: Base) -> None:
    names = ["设计.md", "cafe\u0301.md", "🚀 launch.md", 'it\'s "quoted" & <odd>.md']
    base.write({f"core/{name}": "x" for name in names})
    assert sorted(paths(walk(base.root))) == sorted(names)


def test_shown_name_leaves_readable_text_alone() -> None:
    assert shown_name("core/设计 é.md") == "core/设计 é.md"


def test_deep_nesting_is_cut_and_the_rest_is_listed(base: Base) -> None:
    deepest = walk_module.MAX_DEPTH - 1  # below .knowledge/core
    names = ["d/" * 100, "e/" * (deepest + 1), "f/" * deepest]
    base.write({f"core/{name}page.md": "x" for name in names})
    found = walk(base.root)
    assert paths(found) == ["f/" * deepest + "page.md"]
    assert list(rules_of(found).values()) == ["too-deep", "too-deep"]


def test_links_inside_the_root_are_served_under_their_own_name(base: Base) -> None:
    base.write({"core/real.md": "x", "core/folder/inner.md": "y"})
    docs = base.root / "docs"
    docs.mkdir()
    (docs / "guide.md").write_text("z")
    base.path("core/file-link.md").symlink_to("real.md")
    base.path("core/docs-link").symlink_to(docs)
    found = walk(base.root)
    assert paths(found) == ["docs-link/guide.md", "file-link.md", "folder/inner.md", "real.md"]
    stamps = {source.path.rpartition("/")[2]: source.stamp for source in found.files}
    assert stamps["file-link.md"] == stamps["real.md"]


def test_links_that_leave_or_mislead_are_left_out(base: Base, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("secret")
    (base.root / ".git").mkdir()
    (base.root / ".git" / "config.md").write_text("secret")
    (base.root / "passwords").write_text("secret")
    base.write({"core/fine.md": "x"})
    for name, target in {
        "file.md": tmp_path / "secret.md",
        "folder": tmp_path / "outside",
        "device.md": Path("/dev/null"),
        "hidden.md": base.root / ".git" / "config.md",
        "hidden-folder": base.root / ".git",
        "other.md": base.root / "passwords",
        "dangling.md": Path("nowhere.md"),
        "loop.md": Path("loop.md"),
    }.items():
        base.path(f"core/{name}").symlink_to(target)
    found = walk(base.root)
    assert paths(found) == ["fine.md"]
    assert rules_of(found) == {
        "file.md": "link-leaves-root",
        "folder": "link-leaves-root",
        "device.md": "link-leaves-root",
        "hidden.md": "link-leaves-root",
        "hidden-folder": "link-leaves-root",
        "other.md": "link-leaves-root",
        "dangling.md": "broken-link",
        "loop.md": "broken-link",
    }
    assert not any("secret" in problem.message for problem in found.problems)


def test_folder_links_that_loop_end_the_walk_with_every_file_once(base: Base) -> None:
    base.write({"core/a/one.md": "x", "core/b/two.md": "y"})
    base.path("core/a/up").symlink_to("..")
    base.path("core/b/across").symlink_to("../a")
    base.path("core/b/self").symlink_to(".")
    found = walk(base.root)
    assert paths(found) == ["a/one.md", "b/two.md"]
    assert rules_of(found) == {
        "a/up": "listed-twice",
        "b/across": "listed-twice",
        "b/self": "listed-twice",
    }


@pytest.mark.parametrize(
    ("first", "second", "listed"),
    [("docs", "docs/deep", "1/deep/guide.md"), ("docs/deep", "docs", "1/guide.md")],
)
def test_folder_behind_two_links_is_listed_under_the_first(
    base: Base, first: str, second: str, listed: str
) -> None:
    base.write({"core/a.md": "x"})
    (base.root / "docs" / "deep").mkdir(parents=True)
    (base.root / "docs" / "deep" / "guide.md").write_text("z")
    base.path("core/2").symlink_to(f"../../{second}")
    base.path("core/1").symlink_to(f"../../{first}")
    found = walk(base.root)
    assert paths(found) == [listed, "a.md"]
    assert list(rules_of(found).values()) == ["listed-twice"]


def test_layer_that_is_a_link_within_the_root_is_walked(base: Base) -> None:
    (base.root / "docs").mkdir()
    (base.root / "docs" / "guide.md").write_text("z")
    base.path("core").symlink_to("../docs")
    assert paths(walk(base.root)) == ["guide.md"]
    base.path("core").unlink()
    base.path("core").symlink_to("/")
    assert rules_of(walk(base.root)) == {".knowledge/core": "link-leaves-root"}


def test_knowledge_folder_that_is_a_link_within_the_root_is_walked(base: Base) -> None:
    base.write({"core/a.md": "x"})
    (base.root / ".knowledge").rename(base.root / "docs")
    (base.root / ".knowledge").symlink_to("docs")
    assert paths(walk(base.root)) == ["a.md"]
    shutil.rmtree(base.root / "docs" / "core")
    assert rules_of(walk(base.root)) == {".knowledge/core": "no-folder"}


def test_layer_without_a_folder_is_only_a_note(base: Base) -> None:
    found = walk(base.root)
    assert not found.files
    assert [(problem.rule, problem.level) for problem in found.problems] == [("no-folder", "note")]


@pytest.mark.parametrize("kind", ["file", "fifo", "dangling"])
def test_layer_that_is_no_folder_is_reported(base: Base, kind: str) -> None:
    core = base.path("core")
    if kind == "file":
        core.write_text("x")
    elif kind == "fifo":
        os.mkfifo(core)
    else:
        core.symlink_to("nowhere")
    assert rules_of(walk(base.root)) == {".knowledge/core": "not-a-folder"}


def test_too_many_files_are_cut_and_reported_as_an_error(base: Base) -> None:
    base.write({f"core/{number}.md": "x" for number in range(5)})
    assert walk(base.root, max_files=5).complete
    found = walk(base.root, max_files=3)
    assert len(found.files) == 3
    assert not found.complete
    assert [(problem.rule, problem.level) for problem in found.problems] == [
        ("too-many-files", "error")
    ]


def test_walk_ends_when_its_deadline_has_passed(base: Base, clock: Clock) -> None:
    base.write({f"core/{number // 100}/{number}.md": "" for number in range(400)})
    assert len(walk(base.root, deadline=Deadline(1, clock)).files) == 400
    found = walk(base.root, deadline=Deadline(0, clock))
    assert not found.complete
    assert 0 < len(found.files) < 400


def test_small_layer_is_listed_whole_even_when_time_is_up(base: Base, clock: Clock) -> None:
    base.write({f"core/{number}.md": "" for number in range(100)})
    found = walk(base.root, deadline=Deadline(0, clock))
    assert found.complete
    assert len(found.files) == 100


def test_what_may_be_changed_by_another_name_is_marked(base: Base) -> None:
    base.write({"core/a.md": "# A\n"})
    assert not walk(base.root).linked
    os.link(base.path("core/a.md"), base.root / "elsewhere.md")
    first = walk(base.root)
    assert first.linked
    assert walk(base.root, known=tuple(first.files)).linked


def test_unchanged_files_of_an_earlier_walk_are_taken_as_they_are(base: Base) -> None:
    base.write({"core/same.md": "x", "core/edited.md": "x", "core/gone.md": "x"})
    known = tuple(walk(base.root).files)
    base.write({"core/edited.md": "longer", "core/new.md": "x"})
    base.path("core/gone.md").unlink()
    found = walk(base.root, known=known)
    assert paths(found) == ["edited.md", "new.md", "same.md"]
    assert found.files[2] is known[2]
    assert found.files[0].stamp.size == 6


def test_walk_that_finds_the_same_says_so_and_any_change_does_not(base: Base) -> None:
    base.write({"core/b/two.md": "x", "core/a.md": "x", "core/.hidden": "x"})
    known = tuple(walk(base.root).files)
    again = walk(base.root, known=known)
    assert again.found_the_same
    assert tuple(again.files) == known
    assert rules_of(again) == {".hidden": "hidden"}
    base.write({"core/c.md": "x"})
    assert not walk(base.root, known=known).found_the_same
    base.path("core/c.md").unlink()
    base.path("core/a.md").unlink()
    assert not walk(base.root, known=known).found_the_same


def test_known_names_that_change_their_kind_are_looked_at_again(base: Base) -> None:
    base.write({"core/a.md": "x", "core/folder/b.md": "x", "core/c/d.md": "x"})
    known = tuple(walk(base.root).files)
    base.path("core/a.md").unlink()
    shutil.rmtree(base.path("core/folder"))
    shutil.rmtree(base.path("core/c"))
    base.write({"core/a.md/inner.md": "x", "core/folder": "no markdown"})
    base.path("core/c").symlink_to("/")
    found = walk(base.root, known=known)
    assert paths(found) == ["a.md/inner.md"]
    assert rules_of(found) == {"c": "link-leaves-root", "folder": "not-markdown"}


def test_known_file_that_became_a_link_is_looked_at_again(base: Base, tmp_path: Path) -> None:
    base.write({"core/a.md": "x"})
    known = tuple(walk(base.root).files)
    base.path("core/a.md").rename(tmp_path / "a.md")
    base.path("core/a.md").symlink_to(tmp_path / "a.md")
    assert rules_of(walk(base.root, known=known)) == {"a.md": "link-leaves-root"}


class Vanishing:
    """A name that a folder lists and that is gone, or forbidden, when it is looked at."""

    name = "a.md"

    def __init__(self, error: OSError) -> None:
        self._error = error

    def is_symlink(self) -> bool:
        return False

    def is_dir(self, follow_symlinks: bool = True) -> bool:
        return False

    def stat(self, follow_symlinks: bool = True) -> os.stat_result:
        raise self._error


@pytest.mark.parametrize(
    ("error", "reported"),
    [(FileNotFoundError(2, "gone"), {}), (OSError(5, "I/O error"), {"a.md": "unreadable"})],
)
def test_file_that_cannot_be_looked_at_is_left_out(
    base: Base, monkeypatch: pytest.MonkeyPatch, error: OSError, reported: dict[str, str]
) -> None:
    base.write({"core/a.md": "x"})
    known = tuple(walk(base.root).files)
    listing = contextlib.nullcontext(iter([Vanishing(error)]))
    monkeypatch.setattr(os, "scandir", lambda _: listing)
    found = walk(base.root, known=known)
    assert not found.files
    assert rules_of(found) == reported


def test_folder_that_cannot_be_listed_is_reported(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "I/O error")

    base.write({"core/a.md": "x"})
    monkeypatch.setattr(os, "scandir", fail)
    assert [str(problem) for problem in walk(base.root).problems] == [
        ".knowledge/core: the folder cannot be listed: I/O error"
    ]


def test_folder_that_vanishes_while_it_is_walked_was_never_there(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.write({"core/a.md": "x", "core/gone/b.md": "x"})
    opened = walk_module.open_below

    def delete_and_open(folder: int | str, name: str) -> int | str:
        shutil.rmtree(base.path("core/gone"))
        return opened(folder, name)

    monkeypatch.setattr(walk_module, "open_below", delete_and_open)
    found = walk(base.root)
    assert paths(found) == ["a.md"]
    assert not found.problems


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A repository walked by somebody who may not read all of it; root becomes nobody."""
    root = Path(tempfile.mkdtemp()).resolve()
    (root / ".knowledge" / "core" / "closed").mkdir(parents=True)
    (root / ".knowledge" / "core" / "a.md").write_text("x")
    (root / ".knowledge" / "core" / "b.md").write_text("x")
    root.chmod(0o755)
    is_root = os.geteuid() == 0
    if is_root:
        try:
            os.seteuid(65534)
        except OSError:
            pytest.skip("UNTESTED: running as root and unable to become nobody")
    try:
        yield root
    finally:
        if is_root:
            os.seteuid(0)
        (root / ".knowledge" / "core").chmod(0o755)
        (root / ".knowledge" / "core" / "closed").chmod(0o755)
        shutil.rmtree(root)


def close(path: Path) -> None:
    """Take every right away, as whoever owns the path."""
    euid = os.geteuid()
    os.seteuid(path.stat().st_uid)
    path.chmod(0)
    os.seteuid(euid)


def test_folder_that_may_not_be_read_is_reported_and_the_rest_listed(forbidden: Path) -> None:
    close(forbidden / ".knowledge" / "core" / "closed")
    found = walk(forbidden)
    assert paths(found) == ["a.md", "b.md"]
    assert rules_of(found) == {"closed": "unreadable"}


def test_layer_that_may_not_be_read_is_reported(forbidden: Path) -> None:
    close(forbidden / ".knowledge" / "core")
    found = walk(forbidden)
    assert not found.files
    assert rules_of(found) == {".knowledge/core": "unreadable"}


def test_file_that_may_not_be_read_is_an_error_of_the_read(forbidden: Path) -> None:
    close(forbidden / ".knowledge" / "core" / "a.md")
    with pytest.raises(PermissionError):
        read_file(forbidden, ".knowledge/core/a.md", 100)


@pytest.mark.parametrize(("number", "unseen"), [(5, True), (24, True), (13, False), (2, False)])
def test_what_could_not_be_looked_at_now_may_still_be_there(
    base: Base, monkeypatch: pytest.MonkeyPatch, number: int, unseen: bool
) -> None:
    def fail(folder: int | str, name: str) -> int:
        raise OSError(number, os.strerror(number))

    base.write({"core/a.md": "x", "core/deep/b.md": "x"})
    monkeypatch.setattr(walk_module, "open_below", fail)
    found = walk(base.root)
    assert paths(found) == ["a.md"]
    assert found.unseen is unseen


def test_a_layer_that_cannot_be_looked_at_now_is_not_taken_for_none(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.path("core").symlink_to(base.root)

    def fail(_: Path) -> int:
        raise OSError(errno.EIO, "failed")

    monkeypatch.setattr(files, "kind_of", fail)
    found = walk(base.root)
    assert found.unseen
    assert [problem.rule for problem in found.problems] == ["unreadable"]


def test_a_folder_that_cannot_be_closed_is_let_go() -> None:
    walk_module.close_folder(-1)


def test_every_number_of_a_stamp_fits_into_64_bits() -> None:
    odd = SimpleNamespace(st_ino=2**64 - 5, st_size=1, st_mtime_ns=2**64, st_ctime_ns=-(2**64))
    found = files.stamp_of(odd)  # type: ignore[arg-type]
    assert found == files.Stamp(2**63 - 5, 1, 2**63 - 1, -(2**63))


def test_a_file_of_a_date_that_no_stamp_holds_is_unchanged_at_the_next_walk(base: Base) -> None:
    base.write({"core/a.md": "# A\n"})
    odd = SimpleNamespace(st_ino=7, st_size=1, st_mtime_ns=-(2**64), st_ctime_ns=2**64, st_nlink=1)
    entry = SimpleNamespace(stat=lambda *, follow_symlinks: odd)
    stamp = files.stamp_of(odd)  # type: ignore[arg-type]
    assert walk_module._is_unchanged(walk(base.root), entry, stamp)  # type: ignore[arg-type]
