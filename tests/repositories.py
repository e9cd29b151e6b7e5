"""Git repositories for tests: ordinary ones, and ones that want to run a program of their own."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

PAGE = ".knowledge/core/page.md"
DAY = "2024-01-01"


def git(root: Path, *words: str, day: str = DAY, **variables: str) -> str:
    """What git answers, with an identity and a day, and without the user's own settings."""
    moment = f"{day}T12:00:00+00:00"
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": moment}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": moment}
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **who, **variables}
    ended = subprocess.run(
        ["git", *words],
        cwd=root,
        env={"PATH": os.environ["PATH"], "HOME": str(root), **own},
        check=True,
        capture_output=True,
        text=True,
    )
    return ended.stdout.strip()


def repository(root: Path, files: Mapping[str, str] | None = None, *init: str) -> Path:
    """A repository with one commit of a page, or of the files given."""
    for name, text in (files or {PAGE: "# Page\n\nText.\n"}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q", *init)
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "first")
    return root


def _configured(lines: Callable[[str], str]) -> Callable[[Path, Path], None]:
    def build(root: Path, canary: Path) -> None:
        repository(root)
        with (root / ".git/config").open("a") as file:
            file.write(lines(f"touch {canary}"))
        _lose_an_object(root)

    return build


def _lose_an_object(root: Path) -> None:
    """Remove the first commit's tree, so that git would want to fetch it."""
    (root / PAGE).write_text("# Newer\n\nText.\n")
    git(root, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "-A")
    git(root, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "commit", "-qm", "2")
    tree = git(root, "-c", "core.fsmonitor=false", "rev-parse", "HEAD~1^{tree}")
    (root / ".git/objects" / tree[:2] / tree[2:]).unlink()


def _promisor(command: str) -> str:
    return (
        '[remote "origin"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n'
        f'\turl = ext::sh -c {command.replace(" ", "% ")}\n[protocol "ext"]\n\tallow = always\n'
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
    )


def _included(root: Path, canary: Path) -> None:
    repository(root)
    (root / "evil.config").write_text(_promisor(f"touch {canary}"))
    with (root / ".git/config").open("a") as file:
        file.write("[include]\n\tpath = ../evil.config\n")
    _lose_an_object(root)


def _worktree_config(root: Path, canary: Path) -> None:
    repository(root)
    (root / ".git/config.worktree").write_text(_promisor(f"touch {canary}"))
    with (root / ".git/config").open("a") as file:
        file.write("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n")
    _lose_an_object(root)


def _committed_bare(root: Path, canary: Path) -> None:
    """A bare repository whose files lie in the root as plain files."""
    repository(root)
    with (root / ".git/config").open("a") as file:
        file.write(_promisor(f"touch {canary}"))
    _lose_an_object(root)
    for name in ("HEAD", "config", "objects", "refs"):
        shutil.move(root / ".git" / name, root / name)
    shutil.rmtree(root / ".git")
    text = (root / "config").read_text().replace("bare = false", "bare = true")
    (root / "config").write_text(text)


def _bare_behind_a_file(root: Path, canary: Path) -> None:
    """A `.git` file that names a bare repository committed elsewhere in the tree."""
    repository(root)
    with (root / ".git/config").open("a") as file:
        file.write(_promisor(f"touch {canary}"))
    _lose_an_object(root)
    (root / ".git").rename(root / "fixtures")
    (root / ".git").write_text("gitdir: fixtures\n")


def _hooks(root: Path, canary: Path) -> None:
    repository(root)
    for name in ("post-index-change", "post-checkout", "pre-auto-gc", "reference-transaction"):
        hook = root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {canary}\n")
        hook.chmod(0o755)


def _attributes(root: Path, canary: Path) -> None:
    repository(root, {PAGE: "# Page\n\nText.\n", ".gitattributes": "* diff=evil filter=evil\n"})
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("* diff=evil filter=evil merge=evil\n")
    with (root / ".git/config").open("a") as file:
        file.write(
            f'[diff "evil"]\n\ttextconv = touch {canary}\n\tcommand = touch {canary}\n'
            f'[filter "evil"]\n\tclean = touch {canary}\n\tsmudge = touch {canary}\n'
            f"\tprocess = touch {canary}\n\trequired = true\n[diff]\n\texternal = touch {canary}\n"
        )


def _alternates(root: Path, canary: Path) -> None:
    repository(root)
    other = repository(root.parent / f"{root.name}-other", {"a.md": "# A\n"})
    with (root / ".git/config").open("a") as file:
        file.write(f"[core]\n\talternateRefsCommand = touch {canary}\n")
    (root / ".git/objects/info").mkdir(exist_ok=True)
    (root / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")


def _submodule(root: Path, canary: Path) -> None:
    commit = "1" * 40
    repository(
        root, {PAGE: "# Page\n", ".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ./x\n'}
    )
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},x")
    git(root, "commit", "-qm", "module")
    with (root / ".git/config").open("a") as file:
        file.write(
            f'[submodule "x"]\n\tactive = true\n\tupdate = !touch {canary}\n'
            f"\turl = ext::sh -c touch% {canary}\n[submodule]\n\trecurse = true\n"
            '[diff]\n\tsubmodule = log\n[protocol "ext"]\n\tallow = always\n'
        )


def _signed(root: Path, canary: Path) -> None:
    """A commit with a signature, and a program of its own that would look at it."""
    repository(root)
    tree = git(root, "rev-parse", "HEAD^{tree}")
    text = (
        f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    )
    (root / "commit").write_text(text)
    commit = git(root, "hash-object", "-t", "commit", "-w", "commit")
    git(root, "reset", "-q", "--soft", commit)
    program = root / "verify"
    program.write_text(f"#!/bin/sh\ntouch {canary}\n")
    program.chmod(0o755)
    with (root / ".git/config").open("a") as file:
        file.write(f"[gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n")


_KEYS: dict[str, Callable[[str], str]] = {
    "promisor": _promisor,
    "fsmonitor": lambda c: f"[core]\n\tfsmonitor = {c}\n",
    "pager": lambda c: f"[core]\n\tpager = {c}\n[pager]\n\tlog = {c}\n",
    "ssh": lambda c: (
        '[remote "origin"]\n\tpromisor = true\n\turl = ssh://localhost/x\n'
        f"[core]\n\tsshCommand = {c};\n\trepositoryformatversion = 1\n"
        "[extensions]\n\tpartialClone = origin\n"
    ),
    "git-proxy": lambda c: (
        '[remote "origin"]\n\tpromisor = true\n\turl = git://localhost/x\n'
        f"[core]\n\tgitProxy = {c}\n\trepositoryformatversion = 1\n"
        "[extensions]\n\tpartialClone = origin\n"
    ),
    "upload-pack": lambda c: (
        '[remote "origin"]\n\tpromisor = true\n\turl = .\n'
        f"\tuploadpack = {c};\n[core]\n\trepositoryformatversion = 1\n"
        "[extensions]\n\tpartialClone = origin\n"
    ),
    "helper": lambda c: (
        f'[credential]\n\thelper = "!{c}"\n[remote "origin"]\n\tpromisor = true\n'
        "\turl = http://127.0.0.1:9/x\n[core]\n\trepositoryformatversion = 1\n"
        "[extensions]\n\tpartialClone = origin\n"
    ),
    "alias": lambda c: f'[alias]\n\tlog = "!{c}"\n\tdiff-tree = "!{c}"\n',
}

HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    **{name: _configured(lines) for name, lines in _KEYS.items()},
    "included": _included,
    "worktree-config": _worktree_config,
    "committed-bare": _committed_bare,
    "bare-behind-a-file": _bare_behind_a_file,
    "hooks": _hooks,
    "attributes": _attributes,
    "alternates": _alternates,
    "submodule": _submodule,
    "signed": _signed,
}
"""Builders by name; each is given the root and a file that its program would make."""
