"""Git is asked about repositories that want to run programs, wait for ever or say too much."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sage import git as module
from sage.check.age import commit_dates
from sage.git import Commit, Repository, find_repository
from tests.conftest import Base
from tests.processes import give_up
from tests.repositories import DAY, HOSTILE, PAGE, git, repository

SECONDS = 1_704_110_400  # noon of DAY


def opened(root: Path) -> Repository:
    found = find_repository(root)
    assert found is not None
    return found


def ask_everything(root: Path) -> list[object]:
    found = find_repository(root)
    if found is None:
        return []
    commits = found.last_commits(".knowledge", [PAGE])
    return [commits, found.log(PAGE)]


def test_history_is_told_from_the_newest_commit(tmp_path: Path) -> None:
    root = repository(tmp_path)
    first = git(root, "rev-parse", "HEAD")
    (root / ".knowledge/core/other ☃\n.md").write_text("# Other\n")
    (root / PAGE).write_text("# Page two\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second", day="2025-05-05")
    found = opened(root)
    second = Commit(git(root, "rev-parse", "HEAD"), 1_746_446_400)
    assert found.head == second.id
    assert found.top == root
    other = ".knowledge/core/other ☃\n.md"
    assert found.last_commits(".knowledge", [PAGE, other, "none"]) == {PAGE: second, other: second}
    assert found.log(PAGE) == [second, Commit(first, SECONDS)]
    assert found.log(PAGE, most=1) == [second]


def detached(root: Path) -> Path:
    repository(root)
    git(root, "checkout", "-q", "--detach")
    return root


def packed(root: Path) -> Path:
    repository(root)
    git(root, "pack-refs", "--all")
    git(root, "gc", "-q")
    return root


def worktree(root: Path) -> Path:
    main = repository(root / "main")
    git(main, "worktree", "add", "-q", str(root / "tree"))
    return root / "tree"


def shallow(root: Path) -> Path:
    main = repository(root / "main")
    (main / PAGE).write_text("# Two\n")
    git(main, "commit", "-qam", "second")
    git(root, "clone", "-q", "--depth=1", f"file://{main}", "clone")
    return root / "clone"


def sha256(root: Path) -> Path:
    return repository(root, None, "--object-format=sha256")


def submodule(root: Path) -> Path:
    main, other = repository(root / "main"), repository(root / "other")
    allow = ("-c", "protocol.file.allow=always")
    git(main, *allow, "submodule", "--quiet", "add", str(other), "inner")
    return main / "inner"


@pytest.mark.parametrize(
    "build", [repository, detached, packed, worktree, shallow, sha256, submodule]
)
def test_every_ordinary_kind_of_repository_is_read(tmp_path: Path, build: object) -> None:
    root = build(tmp_path)  # type: ignore[operator]
    dates = opened(root).last_commits(".knowledge", [PAGE])
    assert [commit.seconds for commit in dates.values()] == [SECONDS]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_repository_starts_nothing(tmp_path: Path, name: str) -> None:
    root, canary = tmp_path / "repository", tmp_path / "canary"
    root.mkdir()
    HOSTILE[name](root, canary)
    canary.unlink(missing_ok=True)
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    ask_everything(root)
    assert not canary.exists()
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", ["promisor", "committed-bare", "included", "attributes"])
def test_a_check_of_a_hostile_repository_starts_git_and_nothing_else(
    base: Base, tmp_path: Path, name: str
) -> None:
    if not shutil.which("strace"):
        give_up("strace is needed to see which programs a check starts")
    HOSTILE[name](base.root, tmp_path / "canary")
    trace = tmp_path / "trace"
    words = ["strace", "-f", "-qq", "-s", "200", "-e", "trace=execve", "-o", str(trace)]
    ended = subprocess.run(
        [*words, sys.executable, "-m", "sage", "check", "--root", str(base.root)],
        env={"PATH": os.environ["PATH"], **base.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if "ptrace" in ended.stderr.lower():
        give_up("processes cannot be traced here")
    started = [line for line in trace.read_text().splitlines() if line.endswith(" = 0")]
    programs = {line.split('execve("')[1].split('"')[0] for line in started}
    assert {Path(program).name for program in programs} <= {Path(sys.executable).name, "git"}
    assert not (tmp_path / "canary").exists()


def test_a_repository_committed_as_plain_files_is_none(tmp_path: Path) -> None:
    HOSTILE["committed-bare"](tmp_path, tmp_path / "canary")
    assert find_repository(tmp_path) is None


@pytest.mark.parametrize("way", ["file", "worktree", "common", "back"])
def test_the_history_of_another_repository_is_not_read(tmp_path: Path, way: str) -> None:
    theirs, mine = repository(tmp_path / "theirs"), repository(tmp_path / "mine")
    folder = mine / ".git"
    if way == "common":
        (folder / "commondir").write_text(f"{theirs}/.git\n")
    else:
        folder = folder.rename(mine / "kept")
        named = theirs / ".git" if way == "file" else folder
        (mine / ".git").write_text(f"gitdir: {named}\n")
    if way == "worktree":  # it says that it is ours, and leads on
        (folder / "gitdir").write_text(f"{mine}/.git\n")
        (folder / "commondir").write_text(f"{theirs}/.git\n")
    if way == "back":
        (folder / "gitdir").write_text(f"{theirs}/.git\n")
    assert find_repository(mine) is None


def test_borrowed_objects_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    HOSTILE["alternates"](root, tmp_path / "canary")
    assert find_repository(root) is None


@pytest.mark.parametrize(
    "head",
    [
        "",
        "ref: refs/heads/none",
        "ref: ../../outside",
        "ref: refs/heads/../../../outside",
        "not a commit",
        "f" * 39,
        "ref: " * 5000,
        "\x00",
    ],
)
def test_a_head_that_names_no_commit_is_no_history(tmp_path: Path, head: str) -> None:
    root = repository(tmp_path)
    (root / ".git/HEAD").write_text(head)
    assert find_repository(root) is None


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs", "shallow"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    root = repository(tmp_path, None, "-b", "main")
    (root / ".git" / name).unlink(missing_ok=True)
    if name == "packed-refs":
        (root / ".git/refs/heads/main").unlink()
    os.mkfifo(root / ".git" / name)
    assert find_repository(root) is None


def test_links_in_the_place_of_git_files_are_not_followed(tmp_path: Path) -> None:
    real = repository(tmp_path / "real")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(real / ".git")
    assert find_repository(linked) is None


def test_an_object_that_never_ends_is_waited_for_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path)
    found = opened(root)
    commit = root / ".git/objects" / found.head[:2] / found.head[2:]
    commit.unlink()
    os.mkfifo(commit)
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    assert found.last_commits(".knowledge", [PAGE]) == {}


def test_a_long_history_is_read_only_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path)
    monkeypatch.setattr(module, "_OUTPUT_BYTES", 0)
    assert opened(root).last_commits(".knowledge", [PAGE]) == {}


def test_reading_ends_with_the_last_wanted_page(tmp_path: Path) -> None:
    """Two thousand commits lie below the one that answers; their output is not read."""
    root = repository(tmp_path)
    lines = ["reset refs/heads/long\n"]
    for number in range(2_000):
        data = f"# {number}\n"
        lines.append(
            f"commit refs/heads/long\ncommitter a <a@b> {number} +0000\ndata 1\nx\n"
            f"M 100644 inline {PAGE}\ndata {len(data)}\n{data}\n"
        )
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=root, input="".join(lines).encode(), check=True
    )
    (root / ".git/HEAD").write_text("ref: refs/heads/long\n")
    found = opened(root)
    assert found.last_commits(".knowledge", [PAGE])[PAGE].seconds == 1_999
    assert len(found.log(PAGE, most=5_000)) == 2_000


def test_the_surroundings_do_not_reach_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, trace = repository(tmp_path / "repository"), tmp_path / "trace"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("GIT_TRACE", str(trace))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {trace}")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.pager")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {trace}")
    assert list(opened(root).last_commits(".knowledge", [PAGE])) == [PAGE]
    assert not trace.exists()


@pytest.mark.parametrize("place", [".", "", "bin"])
def test_a_git_that_lies_in_the_repository_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root, canary = repository(tmp_path / "repository"), tmp_path / "canary"
    (root / "bin").mkdir()
    for program in (root / "git", root / "bin/git"):
        program.write_text(f"#!/bin/sh\ntouch {canary}\n")
        program.chmod(0o755)
    monkeypatch.chdir(root)
    path = str(root / place) if place == "bin" else place
    monkeypatch.setenv("PATH", os.pathsep.join([path, os.environ["PATH"]]))
    assert list(opened(root).last_commits(".knowledge", [PAGE])) == [PAGE]
    assert not canary.exists()


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert opened(root).last_commits(".knowledge", [PAGE]) == {}


def test_a_commit_of_no_known_day_gives_no_age(base: Base) -> None:
    repository(base.root)
    assert [str(day) for day in commit_dates(base.root, [PAGE]).values()] == [DAY]
    tree = git(base.root, "rev-parse", "HEAD^{tree}")
    who = "a <a@b> 999999999999999 +0000"
    (base.root / "commit").write_text(f"tree {tree}\nauthor {who}\ncommitter {who}\n\nx\n")
    commit = git(base.root, "hash-object", "-t", "commit", "-w", "--literally", "commit")
    git(base.root, "update-ref", "HEAD", commit)
    assert commit_dates(base.root, [PAGE]) == {}
