"""Tries mutations of pages and queries, as many or as long as it is told.

    python -m tests.fuzzing [--inputs 1000000] [--seconds 3600] [--seed 1] [--save FOLDER]

What fails is saved in a folder and shown; the same seed tries the same inputs.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.fuzzing.claims import Parser, Queries
from tests.fuzzing.mutation import PAGES, QUERIES, Mutator

SAMPLE = 100
"""One input in so many goes all the way: through the index, or through a search."""
SLOW_SECONDS = 1.0
MAX_FAILURES = 5


class Target(Protocol):
    """Something that takes any text."""

    def check(self, text: str, thoroughly: bool) -> None: ...


@dataclass
class Result:
    """What became of the inputs of one target."""

    tried: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)


def fuzz(target: Target, mutator: Mutator, inputs: int, seconds: float, save: Path) -> Result:
    """Try mutations until there were enough or time is up."""
    result = Result()
    clock = time.process_time
    began = before = clock()
    while (
        result.tried < inputs and before - began < seconds and len(result.failures) < MAX_FAILURES
    ):
        text = mutator.next()
        thoroughly = result.tried % SAMPLE == 0
        try:
            target.check(text, thoroughly)
        except Exception:
            result.failures.append(_saved(text, traceback.format_exc(), save))
        now = clock()
        if now - before > SLOW_SECONDS:
            result.failures.append(_saved(text, f"took {now - before:.1f} CPU s", save))
        result.slowest = max(result.slowest, now - before)
        before = now
        result.tried += 1
    result.seconds = before - began
    return result


def _saved(text: str, why: str, save: Path) -> str:
    save.mkdir(parents=True, exist_ok=True)
    path = save / f"input-{abs(hash(text)):x}.txt"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return f"{path}\n{text[:300]!r}\n{why}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Half of the inputs are pages, half are queries; 1 when one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path, default=Path(tempfile.gettempdir(), "sage-fuzz"))
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}, {given.inputs:,} inputs, at most {given.seconds:.0f} CPU s")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        targets: dict[str, tuple[Target, Sequence[str]]] = {
            "pages": (Parser(), PAGES),
            "queries": (Queries(Path(folder)), QUERIES),
        }
        for name, (target, seeds) in targets.items():
            mutator = Mutator(seeds, given.seed)
            result = fuzz(target, mutator, given.inputs // 2, given.seconds / 2, given.save)
            print(
                f"{name}: {result.tried:,} inputs in {result.seconds:.0f} CPU s, "
                f"slowest {result.slowest * 1000:.0f} ms, {len(result.failures)} failures",
                *result.failures,
                sep="\n",
            )
            failed = failed or bool(result.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
