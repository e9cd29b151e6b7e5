"""Ends processes that build and update an index, at every call to the system and at any moment.

    LD_PRELOAD=shim.so python -m tests.faults.kills FOLDER KILLS SEED

Each child is a fork of this warm process: a kill then costs milliseconds. Prints one JSON object:
how many children were killed, where, and what was wrong after it.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sage.terms.index_file import IndexFile, UntrustedIndex
from tests.faults.injector import KILL, Fault, Injector
from tests.faults.world import NEW, OLD, World, answers, search

PAGES = 60
MAX_REST = 200
"""More files of killed writers would mean that nobody removes them."""
AT = ("open", "write", "fsync", "rename", "mkdir", "unlink", "close")


class Kills:
    """Kills children, and looks at what each one left."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world = World(folder, PAGES)
        self.index_file = IndexFile(self.world.cache, self.world.root)
        self.chance = random.Random(seed)
        self.injector = Injector()
        self.killed: Counter[str] = Counter()
        self.bad: list[str] = []
        for state in (OLD, NEW):
            self.world.to(state)
            self.world.healthy(state)

    def at_every_call(self) -> None:
        """End a build and an update at each call that opens or changes a file."""
        for prepare in (self.before_build, self.before_update):
            for kind in AT:
                nth = 1
                while self._one(prepare, Fault(kind, nth, KILL, False), None):
                    # The many files that are only read are one like the other.
                    nth += 1 if kind != "open" and kind != "close" else 29

    def at_any_moment(self, kills: int) -> None:
        """End builds and updates at random moments of their time."""
        ways = (self.before_build, self.before_update)
        lasts = {prepare: self._time_of(prepare) for prepare in ways}
        while self.killed["any moment"] < kills:
            prepare = self.chance.choice(ways)
            self._one(prepare, None, self.chance.uniform(0, lasts[prepare]))

    def before_build(self) -> None:
        """There is no index yet."""
        self.world.to(NEW)
        self.index_file.path.unlink(missing_ok=True)

    def before_update(self) -> None:
        """There is an index of other files."""
        self.world.to(OLD)
        knowledge = self.world.open()
        knowledge.search("zebra")
        knowledge.close()
        self.world.to(NEW)

    def _time_of(self, prepare: Callable[[], None]) -> float:
        prepare()
        started = time.monotonic()
        os.waitpid(self._child(None), 0)
        return time.monotonic() - started

    def _one(self, prepare: Callable[[], None], fault: Fault | None, seconds: float | None) -> bool:
        """Whether the child was killed before it was done."""
        prepare()
        child = self._child(fault)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            if os.WEXITSTATUS(status):
                self.bad.append(f"{prepare.__name__}, {fault}: a child failed")
            return False
        self.killed["any moment" if fault is None else fault.kind] += 1
        where = f"{prepare.__name__}, {fault or f'after {seconds:.4f} s'}"
        self.bad += [f"{where}: {line}" for line in self._wrong()]
        return True

    def _child(self, fault: Fault | None) -> int:
        child = os.fork()
        if child:
            return child
        try:
            if fault is not None:
                self.injector.arm(fault)
            knowledge = self.world.open()
            search(knowledge, "zebra")
            knowledge.close()
        except BaseException:
            os._exit(1)
        os._exit(0)

    def _wrong(self) -> list[str]:
        """What is wrong after a kill: the file that is there, the next start, the rest."""
        wrong = []
        try:
            self.index_file.read()
        except UntrustedIndex as error:
            wrong.append(f"the index is neither the old nor the new one: {error}")
        knowledge = self.world.open()
        seen, healthy = answers(knowledge), self.world.healthy(NEW)
        knowledge.close()
        wrong += [f"the next start: {name}" for name in seen if seen[name] != healthy[name]]
        if knowledge.info()["index"]["where"] != "disk":
            wrong.append("the next start does not keep its index")
        rest = [name for name in self.world.rest() if not name.endswith(".sage")]
        if len(rest) > MAX_REST:
            wrong.append(f"{len(rest)} files in the cache folder")
        return wrong

    def sweep(self) -> None:
        """A little later, the next writer removes what the killed ones left."""
        folder = self.world.cache / "index"
        for name in self.world.rest():
            os.utime(folder / name, (time.time() - 60, time.time() - 60))
        self.before_build()
        self._one(self.before_build, None, None)
        rest = [name for name in self.world.rest() if not name.endswith(".sage")]
        self.bad += [f"left in the cache: {name}" for name in rest]


def main() -> None:
    """Kill that many children at random moments, and one at every call."""
    folder, kills, seed = sys.argv[1:]
    trials = Kills(Path(folder), int(seed))
    trials.at_every_call()
    trials.at_any_moment(int(kills))
    trials.sweep()
    print(json.dumps({"killed": trials.killed, "bad": trials.bad}))


if __name__ == "__main__":
    main()
