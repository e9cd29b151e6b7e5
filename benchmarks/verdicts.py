"""How often the verdict of a search is wrong: every set's questions, asked of every set's pages.

    python -m benchmarks.verdicts [--sets k8s,own] [--own 60] [--foreign 12]

A base should not answer *no* to a question of its own set, and should to one of another. What it
counts against the verdict is not always its fault: the pages of one software do answer some
questions about a neighbour. Point `SAGE_RETRIEVAL_SETS` at sets it has never seen to judge it.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.engines import Sage
from benchmarks.retrieval_sets import RetrievalSet, load_set, set_names
from sage.deadline import Deadline
from sage.search.sections import SearchOptions

BARS = {"own": 0.03, "foreign": 0.85}


class Verdicts(NamedTuple):
    """Questions that were asked of one base, and those that were answered *no*."""

    own: int
    own_no: int
    foreign: int
    foreign_no: int

    def __str__(self) -> str:
        own, foreign = self.own_no / max(self.own, 1), self.foreign_no / max(self.foreign, 1)
        return f"{self.own:>6}{own:>8.1%}{self.foreign:>9}{foreign:>8.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 when a bar is missed over all bases."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default=",".join(set_names()))
    parser.add_argument("--own", type=int, default=60, help="questions of the base's own set")
    parser.add_argument("--foreign", type=int, default=12, help="questions of each other set")
    options = parser.parse_args(arguments)
    sets = [load_set(name) for name in options.sets.split(",")]
    print(f"{'':<12}{'own':>6}{'no':>8}{'foreign':>9}{'no':>8}")
    rows = []
    for base in sets:
        rows.append(asked(base, sets, options.own, options.foreign))
        print(f"{base.name:<12}{rows[-1]}", flush=True)
    every = Verdicts(*map(sum, zip(*rows, strict=True)))
    print(f"{'all':<12}{every}")
    missed = _missed(every)
    print("\n" + ("\n".join(f"MISSED: {bar}" for bar in missed) or "every bar is met"))
    return 1 if missed else 0


def asked(base: RetrievalSet, sets: Sequence[RetrievalSet], own: int, foreign: int) -> Verdicts:
    """Ask a base some questions of its own, and some of every other set."""
    mine = _sample(base, own, base.name)
    theirs = [
        text for other in sets if other is not base for text in _sample(other, foreign, base.name)
    ]
    with tempfile.TemporaryDirectory() as folder:
        engine = Sage()
        engine.build(Path(folder), base.pages)
        refused = [_is_no(engine, text) for text in (*mine, *theirs)]
    return Verdicts(len(mine), sum(refused[: len(mine)]), len(theirs), sum(refused[len(mine) :]))


def _is_no(engine: Sage, text: str) -> bool:
    return engine.snapshot.search(text, SearchOptions(3), Deadline()).verdict == "no"


def _sample(questions: RetrievalSet, most: int, seed: str) -> list[str]:
    texts = [query.text for query in questions.queries]
    return random.Random(seed).sample(texts, min(most, len(texts)))


def _missed(every: Verdicts) -> list[str]:
    met = {
        f"at most {BARS['own']:.0%} of own questions are answered no": (
            every.own_no <= BARS["own"] * every.own
        ),
        f"at least {BARS['foreign']:.0%} of foreign questions are answered no": (
            every.foreign_no >= BARS["foreign"] * every.foreign
        ),
    }
    return [bar for bar, is_met in met.items() if not is_met]


if __name__ == "__main__":
    raise SystemExit(main())
