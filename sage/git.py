"""The one way to ask git: what a repository's history says, without trusting the repository.

Git runs programs that a repository's configuration names: pagers, filters, signature checkers,
monitors, fetches of missing objects. So git never sees that configuration. It is given an empty
repository of our own in a private folder, the objects of the real one and a commit to begin with;
which commit that is, is read here. Time and output are bounded, and a failed question is answered
by what is known so far: history is advice, never a condition.
"""

import dataclasses
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"refs/[\w./@+-]{1,400}")
_SMALL_BYTES = 64 * 1024
_REFS_BYTES = 32 * 1024 * 1024
_OUTPUT_BYTES = 64 * 1024 * 1024
_FIELD_BYTES = 1024 * 1024
_MEMORY_BYTES = 2 * 1024**3
_SECONDS = 20.0
_SHA256_LENGTH = 64
_SUBJECT = 200

# Each would be a way out or a long way round, even though no configuration but ours is read.
_OPTIONS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.attributesFile": os.devnull,
    "core.commitGraph": "false",
    "core.multiPackIndex": "false",
    "core.packedGitLimit": "512m",
    "core.packedGitWindowSize": "32m",
    "core.useReplaceRefs": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.renames": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
}


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its name and when it was made, in seconds since 1970."""

    id: str
    seconds: int
    subject: str = dataclasses.field(default="", compare=False)
    """The first line of its message, where it was asked for."""


class ChangedPath(NamedTuple):
    """A path that a commit changed."""

    commit: Commit
    path: str
    kind: str
    """A for added, M for modified, D for deleted, T for another type."""


class Repository:
    """The history of one repository, up to the commit that is checked out."""

    def __init__(self, top: Path, objects: Path, head: str, shallow: bytes) -> None:
        self.top = top
        """The folder that the repository's paths begin at."""
        self.head = head
        """The commit that is checked out."""
        self._objects = objects
        self._shallow = shallow

    def last_commits(self, folder: str, wanted: Iterable[str]) -> Mapping[str, Commit]:
        """The newest commit of each wanted path below a folder; a path without one is left out."""
        missing = set(wanted)
        found: dict[str, Commit] = {}
        for commit, path, _ in self.changes(folder):
            if path in missing:
                missing.discard(path)
                found[path] = commit
            if not missing:
                break
        return found

    def log(self, path: str, most: int = 100) -> list[Commit]:
        """The commits that changed a path, newest first."""
        commits: dict[Commit, None] = {}
        for change in self.changes(path, f"--max-count={most}", form="%H %ct %s"):
            commits[change.commit] = None
        return list(commits)

    def changes(self, path: str, *options: str, form: str = "%H %ct") -> Iterator[ChangedPath]:
        """Each commit with each path at or below this one that it changed, newest first."""
        words = ["log", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-textconv"]
        words += ["--no-mailmap", "--no-show-signature", "--no-decorate", "--no-notes"]
        words += ["--ignore-submodules=all", f"--format={form}", *options, self.head, "--", path]
        with self._asked(words) as fields:
            yield from _parsed(fields)

    def blobs(self, folder: str) -> Mapping[str, str]:
        """The hash of every file at or below a folder in the commit, by path; none without git."""
        found: dict[str, str] = {}
        with self._asked(["ls-tree", "-r", "-z", self.head, "--", folder]) as fields:
            for field in fields:
                about, _, path = field.partition(b"\t")
                found[os.fsdecode(path)] = about.split(b" ")[-1].decode("ascii", "replace")
        return found

    def blob_of(self, data: bytes) -> str:
        """The hash that a file of this content has in the repository."""
        algorithm = "sha256" if len(self.head) == _SHA256_LENGTH else "sha1"
        return hashlib.new(algorithm, b"blob %d\0" % len(data) + data).hexdigest()

    @contextmanager
    def _asked(self, words: list[str]) -> Iterator[Iterator[bytes]]:
        """What git answers, divided at its zero bytes; it is ended when nobody reads on."""
        program = _program(self.top)
        if program is None:
            yield iter(())
            return
        with tempfile.TemporaryDirectory(prefix="sage-git-") as name:
            view = _empty_repository(Path(name), self.head, self._shallow)
            options = [part for pair in _OPTIONS.items() for part in ("-c", "=".join(pair))]
            with _started(
                [program, "--no-pager", "--bare", *options, *words],
                view,
                _environment(view, self._objects, program),
            ) as process:
                yield _fields(process)


def find_repository(root: Path) -> Repository | None:
    """The repository that a folder lies in; None when there is none or it has no history to read.

    Only a `.git` is looked for, in the folder and above it: a repository that was committed into
    another one as plain files is none, and a `.git` file counts only where git itself put it.
    """
    for top in (root, *root.parents):
        if os.path.lexists(top / ".git"):
            with suppress(OSError, ValueError):
                return _opened(top)
            return None
    return None


def _opened(top: Path) -> Repository | None:
    own = _git_dir(top / ".git")
    common = _common_dir(own)
    objects = common / "objects"
    borrowed = [objects / "info" / name for name in ("alternates", "http-alternates")]
    if not _is_folder(objects) or any(map(os.path.lexists, borrowed)):
        return None  # objects from elsewhere could be anybody's
    head = _resolved(own, common)
    if head is None:
        return None
    shallow = _read(common / "shallow", _REFS_BYTES) if (common / "shallow").exists() else b""
    if not all(_COMMIT.fullmatch(line) for line in shallow.decode("ascii").split()):
        return None
    return Repository(top, objects, head, shallow)


def _git_dir(path: Path) -> Path:
    """Where a repository keeps its own files: `.git`, or what a worktree's `.git` names."""
    if _is_folder(path):
        return path
    prefix, _, target = _read(path, _SMALL_BYTES).decode().strip().partition(": ")
    if prefix != "gitdir" or not target:
        raise ValueError("not a file of git's")
    own = Path(os.path.realpath(path.parent / target))
    if not _belongs(own, path):
        raise ValueError("the history of another repository")
    return own


def _belongs(own: Path, path: Path) -> bool:
    """Whether a folder of git's says itself that it is that of a `.git` file.

    Anybody can write a file that names the repository of somebody else.
    """
    with suppress(FileNotFoundError):
        back = own / _read(own / "gitdir", _SMALL_BYTES).decode().strip()
        return os.path.realpath(back) == os.path.realpath(path)
    above = path.parent.parents
    return any(own.is_relative_to(Path(os.path.realpath(one / ".git/modules"))) for one in above)


def _common_dir(own: Path) -> Path:
    """What the worktrees of a repository share; it holds them, so that none names another's."""
    try:
        text = _read(own / "commondir", _SMALL_BYTES).decode().strip()
    except FileNotFoundError:
        return own
    common = Path(os.path.realpath(own / text))
    if Path(os.path.realpath(own)).parent != common / "worktrees":
        raise ValueError("the history of another repository")
    return common


def _resolved(own: Path, common: Path) -> str | None:
    """The commit that HEAD names, itself or through a branch."""
    value = _read(own / "HEAD", _SMALL_BYTES).decode().strip()
    if value.startswith("ref: "):
        branch = value.removeprefix("ref: ").strip()
        if not _BRANCH.fullmatch(branch) or ".." in branch:
            return None
        value = _loose(common / branch) or _packed(common / "packed-refs", branch)
    return value if _COMMIT.fullmatch(value) else None


def _loose(path: Path) -> str:
    with suppress(OSError):
        return _read(path, _SMALL_BYTES).decode().strip()
    return ""


def _packed(path: Path, branch: str) -> str:
    with suppress(FileNotFoundError):
        for line in _read(path, _REFS_BYTES).decode("utf-8", "replace").splitlines():
            commit, _, name = line.partition(" ")
            if name == branch:
                return commit
    return ""


def _read(path: Path, most: int) -> bytes:
    """The bytes of a regular file, neither a link nor anything that could be waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def _empty_repository(view: Path, head: str, shallow: bytes) -> Path:
    """A repository without configuration, branches, hooks or attributes."""
    (view / "refs").mkdir()
    (view / "HEAD").write_text(f"{head}\n")
    if shallow:
        (view / "shallow").write_bytes(shallow)
    config = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
    if len(head) == _SHA256_LENGTH:
        config = config.replace("= 0", "= 1") + "[extensions]\n\tobjectformat = sha256\n"
    (view / "config").write_text(config)
    return view


def _program(top: Path) -> str | None:
    """Git as the user's shell finds it, but never one that lies in the repository."""
    places = [
        place
        for place in os.environ.get("PATH", "").split(os.pathsep)
        if Path(place).is_absolute() and not Path(place).is_relative_to(top)
    ]
    found = shutil.which("git", path=os.pathsep.join(places))
    if found is None or Path(found).resolve().is_relative_to(top.resolve()):
        return None
    return found


def _environment(view: Path, objects: Path, program: str) -> dict[str, str]:
    """Everything git learns from its surroundings; nothing is passed on but where Windows is."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    return kept | {
        "PATH": str(Path(program).parent),
        "HOME": str(view),
        "LC_ALL": "C",
        "GIT_DIR": str(view),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_CEILING_DIRECTORIES": str(view),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_PAGER": "cat",
    }


@contextmanager
def _started(
    words: list[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with its group when it is no longer read, or after its time."""
    process = subprocess.Popen(  # noqa: S603 - an absolute program and words of our own
        words,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    timer = threading.Timer(_SECONDS, _kill, [process])
    timer.daemon = True
    try:
        _limit_memory(process.pid)
        timer.start()
        yield process
    finally:
        timer.cancel()
        _kill(process)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


def _limit_memory(pid: int) -> None:
    """An object can claim to be of any size; where the system can hold git to less, it does."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(pid, resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _fields(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """The output divided at its zero bytes, up to the most that is read; an open end is dropped."""
    rest, total = b"", 0
    while process.stdout and total < _OUTPUT_BYTES and len(rest) < _FIELD_BYTES:
        part = os.read(process.stdout.fileno(), 1 << 16)
        if not part:
            return
        total += len(part)
        *whole, rest = (rest + part).split(b"\0")
        yield from whole


def _parsed(fields: Iterator[bytes]) -> Iterator[ChangedPath]:
    """The paths of `git log --raw -z`: a line of modes that ends with the kind, then the path."""
    commit: Commit | None = None
    for field in fields:
        line = field.lstrip(b"\n")
        if line.startswith(b":"):
            path = next(fields, None)
            if commit is not None and path is not None:
                kind = line[-1:].decode("ascii", "replace")
                yield ChangedPath(commit, os.fsdecode(path), kind)
            continue
        name, _, rest = line.decode("utf-8", "replace").partition(" ")
        seconds, _, subject = rest.partition(" ")
        if _COMMIT.fullmatch(name) and seconds.isdecimal() and len(seconds) <= 18:
            commit = Commit(name, int(seconds), subject[:_SUBJECT])
