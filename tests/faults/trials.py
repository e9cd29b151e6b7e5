"""Fails every call that an operation makes, one at a time, and looks at what is left.

    LD_PRELOAD=shim.so python -m tests.faults.trials OPERATION FOLDER [--all]

Prints one JSON object: how many faults were injected by kind of call, and every trial that
ended badly.
"""

import errno
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sage.deadline import Deadline
from sage.errors import SageError
from sage.knowledge import KnowledgeBase
from sage.settings import load_settings
from sage.token_counter import BUNDLED, BundledVocabulary, LightCounter, TokenCounter
from tests.faults.injector import ERRORS, Fault, Injector, faults_of
from tests.faults.world import (
    BUDGET,
    NEW,
    OLD,
    World,
    answers,
    context,
    get,
    info,
    search,
)

State = Mapping[str, str | bytes]
Run = Callable[[], dict[str, Any]]
TEXT = "How many tokens? 日本語, and a zebra."


class Operation:
    """Something that is done while a call fails; `prepare` is done before."""

    state: State = NEW

    def __init__(self, world: World) -> None:
        self.world = world
        self.knowledge: KnowledgeBase | None = None

    def prepare(self) -> None:
        """Make everything as it is before the operation."""
        self.knowledge = None
        self.world.to(self.state)

    def run(self) -> dict[str, Any]:
        """Do it; the answers, by name."""
        raise NotImplementedError

    def opened(self) -> KnowledgeBase:
        """The base of this trial, started at its first use."""
        if self.knowledge is None:
            self.knowledge = self.world.open()
        return self.knowledge


class Start(Operation):
    """The root is found and the settings are read."""

    def run(self) -> dict[str, Any]:
        load_settings({"root": self.world.root}, {"SAGE_CACHE_DIR": str(self.world.cache)})
        # From somewhere inside the repository, as a person does.
        found = load_settings({}, {"SAGE_CACHE_DIR": str(self.world.cache)})
        assert found.root == self.world.root
        return {}


class Load(Operation):
    """A cold base is read, and says how it is."""

    def run(self) -> dict[str, Any]:
        return {"get": get(self.opened()), "info": info(self.opened())}


class Count(Operation):
    """The vocabulary is loaded."""

    def run(self) -> dict[str, Any]:
        counter = TokenCounter()
        self.knowledge = self.world.open(LightCounter(counter, BundledVocabulary()))
        assert counter.encoding == BUNDLED
        if counter.ready_by(Deadline(60_000)):
            assert counter.count(TEXT) == self.world.counter.counter.count(TEXT)
        return {}


class Build(Operation):
    """The index is built, used and kept, in a cache folder that is not there yet."""

    def prepare(self) -> None:
        super().prepare()
        self.world.forget()

    def run(self) -> dict[str, Any]:
        with closing(self.opened()) as knowledge:
            return {"zebra": search(knowledge, "zebra"), "context": context(knowledge)}


class Reopen(Operation):
    """A kept index is opened after edits, in a folder with a dead writer's rest."""

    def prepare(self) -> None:
        super().prepare()
        self.world.to(OLD)
        knowledge = self.world.open()
        knowledge.search("zebra")
        knowledge.close()
        folder = self.world.cache / "index"
        folder.chmod(0o755)
        (folder / "dead.part").write_bytes(b"half")
        os.utime(folder / "dead.part", (1, 1))
        self.world.to(NEW)

    def run(self) -> dict[str, Any]:
        with closing(self.opened()) as knowledge:
            return {"added walrus": search(knowledge, "added walrus")}


class Update(Reopen):
    """A served index meets edits."""

    def prepare(self) -> None:
        self.knowledge = None
        self.world.to(OLD)
        answers(self.opened())
        self.world.to(NEW)


class Search(Operation):
    """A warm base is searched again."""

    def prepare(self) -> None:
        super().prepare()
        self.opened().search("second")
        self.opened().close()

    def run(self) -> dict[str, Any]:
        return {"zebra": search(self.opened(), "zebra")}


OPERATIONS: dict[str, type[Operation]] = {
    "start": Start,
    "load": Load,
    "count": Count,
    "build": Build,
    "reopen": Reopen,
    "update": Update,
    "search": Search,
}


class Trials:
    """All trials of one operation."""

    def __init__(self, operation: Operation, injector: Injector) -> None:
        self.operation = operation
        self.world = operation.world
        self.injector = injector
        self.injected: Counter[str] = Counter()
        self.bad: list[str] = []

    def every(self, thorough: bool) -> None:
        """For each kind of call, fail the first, the second, … until none is left to fail."""
        for kind in self._kinds():
            nth, reached = 0, True
            while reached:
                nth += 1
                tried = [self._trial(fault) for fault in faults_of(kind, nth, thorough)]
                reached = any(tried)

    def _kinds(self) -> list[str]:
        """The kinds of calls that the operation makes, with those after a first failure."""
        self.operation.prepare()
        self.injector.arm(Fault("open", 0, 0, False))
        self._run(Fault("open", 0, 0, False))
        self.injector.disarm()
        made = self.injector.counts()
        return [kind for kind in ERRORS if made[kind] or (kind == "unlink" and made["rename"])]

    def _trial(self, fault: Fault) -> bool:
        """Whether the operation came as far as the fault."""
        self.operation.prepare()
        before = _held()
        self.injector.arm(fault)
        found, raised, state = self._run(fault)
        failed = self.injector.disarm()
        if not failed:
            return False
        self.injected[fault.kind] += 1
        wrong = [*_wrong(found, self.world.healthy(self.operation.state), fault, state)]
        if raised is not None and not isinstance(raised, SageError):
            wrong.append(f"raised {raised!r}")
        del found, raised
        wrong += self._left(before)
        self.bad += [f"{fault}: {line}" for line in wrong]
        return True

    def _run(self, fault: Fault) -> tuple[dict[str, Any], BaseException | None, str]:
        """The answers, what was raised, and the state of the base as it sees itself."""
        found: dict[str, Any] = {}
        state = ""
        try:
            found = self.operation.run()
            if fault.lasting and self.operation.knowledge is not None:
                state = self.operation.knowledge.info()["status"]
        except BaseException as error:
            return found, error.with_traceback(None), state
        return found, None, state

    def _left(self, before: set[str]) -> list[str]:
        """What is wrong after the fault: in the same process, in the next, on the disk."""
        wrong = [f"left open: {name}" for name in _held() - before]
        healthy = self.world.healthy(self.operation.state)
        knowledge = self.operation.knowledge or self.world.open()
        for when in ("the next call", "the next start"):
            try:
                seen = answers(knowledge)
                knowledge.close()
            except Exception as error:
                wrong.append(f"{when} raised {error!r}")
            else:
                wrong += [f"{when}: {name}" for name in seen if seen[name] != healthy[name]]
            knowledge = self.world.open()
        rest = [name for name in self.world.rest() if not name.endswith(".sage")]
        return wrong + [f"left in the cache: {name}" for name in rest if not self._swept(name)]

    def _swept(self, name: str) -> bool:
        """What could not be removed at once is, an hour later, by the next writer."""
        os.utime(self.world.cache / "index" / name, (1, 1))
        state = self.operation.state
        self.world.to(OLD if state is NEW else NEW)
        knowledge = self.world.open()
        knowledge.search("zebra")
        knowledge.close()
        self.world.to(state)
        return name not in self.world.rest()


def _wrong(
    found: Mapping[str, Any], healthy: Mapping[str, Any], fault: Fault, state: str
) -> list[str]:
    """What is wrong with answers given while a call failed."""
    wrong = []
    for name, answer in found.items():
        if answer == healthy[name]:
            continue
        if name == "info":
            honest = answer["status"] != "healthy"
        else:
            wrong += _wrong_parts(name, answer, healthy[name])
            honest = not answer.get("complete", True) or _is_for_good(fault)
        if not honest:
            wrong.append(f"{name}: not all of it is there, and it does not say so")
        if fault.lasting and state == "healthy":
            wrong.append(f"{name}: not all of it is there, and the base says it is healthy")
    return wrong


def _wrong_parts(name: str, answer: Mapping[str, Any], healthy: Mapping[str, Any]) -> list[str]:
    if name == "get":
        right = healthy["content"].split("\n\n<!-- ")
        parts = [part.partition("\n\n[Cut here")[0] for part in _parts(answer["content"])]
        return [f"get: {part!r}" for part in parts if part not in _parts("\n\n<!-- ".join(right))]
    if name == "context":
        too_many = answer["token_count"] > BUDGET
        return ["context: over its budget"] if too_many else []
    # A section that cannot be counted now comes by its best sentences in place of whole.
    right = {(one["path"], *one["lines"]): one["snippet"] for one in healthy["results"]}
    return [
        f"{name}: {one}"
        for one in answer["results"]
        if one["snippet"] not in right.get((one["path"], *one["lines"]), "")
    ]


def _parts(content: str) -> list[str]:
    parts = content.removeprefix("<!-- ").split("\n\n<!-- ")
    return [part for part in parts if part and not part.startswith("[Cut here")]


def _is_for_good(fault: Fault) -> bool:
    """A file that may not be read stays so: a problem of the base, not of the call."""
    return fault.error == errno.EACCES


def _held() -> set[str]:
    """What is open, and the threads that run."""
    listed = os.listdir("/proc/self/fd")
    files = {f"{number} {_target(number)}" for number in listed}
    return {name for name in files if "/proc/" not in name} | {
        thread.name for thread in threading.enumerate()
    }


def _target(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # the listing itself
        return "/proc/"


def main() -> None:
    """Make all trials of one operation."""
    name, folder, *flags = sys.argv[1:]
    world = World(Path(folder))
    os.chdir(world.root / ".knowledge" / "core")
    for state in (OLD, NEW):
        world.to(state)
        world.healthy(state)
    started = time.process_time()
    trials = Trials(OPERATIONS[name](world), Injector())
    trials.every("--all" in flags)
    took = time.process_time() - started
    print(json.dumps({"injected": trials.injected, "bad": trials.bad, "cpu_s": round(took, 1)}))


if __name__ == "__main__":
    main()
