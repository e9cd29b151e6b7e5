"""Ends the commands that write pages, and fills the disk under them, at every call and moment.

    LD_PRELOAD=shim.so python -m tests.faults.page_kills FOLDER KILLS SEED

Each command runs in a fork of this warm process. The last line is one JSON object: how many were
killed and where, how many met a full disk, what was left beside the pages, and what was wrong.
"""

import contextlib
import errno
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from sage.cli.main import main as run_command
from tests.faults.injector import KILL, Fault, Injector

AT = ("open", "write", "fsync", "rename", "mkdir", "unlink", "close")
FULL = ("open", "write", "fsync", "rename", "mkdir", "close")
LEFT = re.compile(r"(?:.*/)?\.[0-9a-f]{16}\.part")
"""What a killed writer may leave: hidden, never served, and gone with the next write."""
_ID = re.compile(rb"\bn[2-9b-z]{6}\b")
_LONG = b"words that fill a page. " * 1_000
PAGES = {
    "core/t.md": b"---\r\n# why\r\nstatus: draft\r\ntags: [a, b]\r\n---\r\n# T\r\n\r\n" + _LONG,
    "core/u.md": b"---\nid: n234567\nstatus: draft # waits\n---\n# U\n\n" + _LONG,
    "practices/v.md": b"+++\ntitle = 'V'\n+++\n# V\n",
}
COMMANDS = (
    ["resolve", "core/t", "--reason", "fixed: in 2.4"],
    ["accept", "n234567", "--review-by", "2031-01-31"],
    ["supersede", "practices/v", "core/u"],
    ["note", "The carrier bills twice without a key.", "--type", "gotcha", "--yes"],
)
Tree = dict[str, bytes]


class PageKills:
    """Runs commands that do not come to their end, and looks at the repository after each."""

    def __init__(self, folder: Path, seed: int, thorough: bool) -> None:
        self.thorough = thorough
        self.root = folder / "repository"
        for name, data in PAGES.items():
            path = self.root / ".knowledge" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        os.environ["SAGE_CACHE_DIR"] = str(folder / "cache")
        os.chdir(self.root)
        self.before = self._tree()
        for command in COMMANDS:  # what they import is then there in every fork
            _ended(command)
            self._restore()
        self.chance = random.Random(seed)
        self.injector = Injector()
        self.killed: Counter[str] = Counter()
        self.full: Counter[str] = Counter()
        self.left = 0
        self.bad: list[str] = []

    def at_every_call(self) -> None:
        """End each command at every call that opens or changes a file, and fill the disk there."""
        for command in COMMANDS:
            for kind in AT:
                nth = 1
                while self._one(command, Fault(kind, nth, KILL, False)):
                    nth += self._step(kind)
            for kind in FULL:
                nth = 1
                while self._one(command, Fault(kind, nth, errno.ENOSPC, True)):
                    nth += self._step(kind)

    def _step(self, kind: str) -> int:
        """The many files that are only read are one like the other."""
        if kind not in ("open", "close"):
            return 1
        return 1 if self.thorough else 29

    def at_any_moment(self, kills: int) -> None:
        """End commands at random moments of their time."""
        lasts = [self._time_of(command) for command in COMMANDS]
        while self.killed["any moment"] < kills:
            number = self.chance.randrange(len(COMMANDS))
            self._one(COMMANDS[number], None, self.chance.uniform(0, lasts[number]))

    def _one(self, command: list[str], fault: Fault | None, seconds: float = 0.0) -> bool:
        """Whether the command was ended, or met the fault."""
        self._restore()
        child = self._child(command, fault)
        if fault is None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        met = os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == MET
        if met:
            counted = self.killed if os.WIFSIGNALED(status) else self.full
            counted["any moment" if fault is None else fault.kind] += 1
        wrong = self._wrong(command)
        self.bad += [f"{command[0]}, {fault or 'at a moment'}: {line}" for line in wrong]
        return met

    def _time_of(self, command: list[str]) -> float:
        self._restore()
        started = time.monotonic()
        os.waitpid(self._child(command, None), 0)
        return time.monotonic() - started

    def _child(self, command: list[str], fault: Fault | None) -> int:
        child = os.fork()
        if child:
            return child
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        if fault is not None:
            self.injector.arm(fault)
        _ended(command)
        os._exit(MET if fault is not None and self.injector.disarm() else 0)

    def _wrong(self, command: list[str]) -> list[str]:
        """What is neither the old page nor the new one."""
        found = self._tree()
        left = [name for name in found if LEFT.fullmatch(name)]
        self.left += bool(left)
        found = {name: data for name, data in found.items() if name not in left}
        if found == self.before or _plain(found) == _plain(self._after(command)):
            return []
        names = sorted(name for name in {*found, *self.before} if self._differs(name, found))
        return [f"{', '.join(names)} is neither the old nor the new one"]

    def _differs(self, name: str, found: Tree) -> bool:
        return found.get(name) != self.before.get(name)

    def _after(self, command: list[str]) -> Tree:
        """The repository after the same command that nobody ends; also what was left is gone."""
        self._restore(keep_left=True)
        os.waitpid(self._child(command, None), 0)
        found = self._tree()
        self.bad += [f"{name} is still there" for name in found if LEFT.fullmatch(name)]
        return found

    def _restore(self, keep_left: bool = False) -> None:
        for name, data in self._tree().items():
            if self.before.get(name) != data and not (keep_left and LEFT.fullmatch(name)):
                (self.root / name).unlink()
        for name, data in self.before.items():
            path = self.root / name
            if not path.exists():
                path.write_bytes(data)

    def _tree(self) -> Tree:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


def _ended(command: list[str]) -> None:
    """Run a command in this process; how it ends is not asked, only what it leaves."""
    sys.argv = ["sage", *command]
    with contextlib.suppress(BaseException):
        run_command()


def _plain(tree: Tree) -> list[tuple[bytes, bytes]]:
    """A tree in which every new note has the same id."""
    pairs = ((name.encode(), data) for name, data in tree.items())
    return sorted((_ID.sub(b"ID", name), _ID.sub(b"ID", data)) for name, data in pairs)


MET = 77
"""The exit code of a child whose fault was met."""


def main() -> None:
    """End commands at every call, then that many at random moments."""
    folder, kills, seed = sys.argv[1:]
    trials = PageKills(Path(folder), int(seed), thorough=int(kills) >= 1_000)
    trials.at_every_call()
    trials.at_any_moment(int(kills))
    print(
        json.dumps(
            {
                "killed": trials.killed,
                "full": trials.full,
                "left": trials.left,
                "bad": trials.bad,
            }
        )
    )


if __name__ == "__main__":
    main()
