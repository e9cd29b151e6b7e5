"""Tries every command over generated hostile repositories.

    python -m tests.hostile [--repositories 500] [--first 0]

Each number is one repository, always the same. What is wrong is shown, and ends it with 1.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.hostile.repositories import COMMANDS, misled


def main() -> int:
    parser = argparse.ArgumentParser(description="Try every command over hostile repositories.")
    parser.add_argument("--repositories", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    failed = 0
    for number in range(given.first, given.first + given.repositories):
        # Not removed by Python: a folder in it may be deeper than its recursion goes.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            found = misled(number, Path(folder))
        failed += bool(found)
        for one in found:
            print(f"repository {number}: {one}", flush=True)
        if (number + 1) % 10 == 0:
            print(f"{number + 1 - given.first} repositories, {failed} misled us", flush=True)
    print(f"{given.repositories} repositories, {len(COMMANDS)} commands each: {failed} misled us")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
