"""What a command costs before it answers, as ratios to Python itself and to importing Typer alone.

Processor time of whole processes, in turns in the same run; the median of each.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUNDS = 7
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import typer'": ["-c", "import typer; typer.Typer()"],
    "sage --help": ["-m", "sage", "--help"],
    "sage get core": ["-m", "sage", "get", "core"],
    "sage search": ["-m", "sage", "search", "how do we write tests?"],
    "sage check": ["-m", "sage", "check"],
}


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SAGE_CACHE_DIR": cache}
        for words in COMMANDS.values():
            _seconds(words, environment)  # the first run builds the index and the bytecode
        turns = [
            {name: _seconds(words, environment) for name, words in COMMANDS.items()}
            for _ in range(ROUNDS)
        ]
    cost = {name: statistics.median(turn[name] for turn in turns) for name in COMMANDS}
    bare, typer = (cost[name] for name in list(COMMANDS)[:2])
    print(f"{'':26} CPU ms  x python  x importing typer")
    for name, seconds in cost.items():
        print(f"{name:26} {seconds * 1000:6.0f}  {seconds / bare:8.1f}  {seconds / typer:17.1f}")
    return 0


def _seconds(words: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
