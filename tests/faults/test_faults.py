"""Every call to the system that loading, indexing, updating and searching make fails once.

The answer is right or says what it lacks, or a `SageError` is raised; nothing stays open; the
next call and the next start serve everything. SAGE_FAULTS=all tries every error for each call.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.injector import compiled
from tests.faults.trials import OPERATIONS
from tests.processes import clean_environment

ALL = os.environ.get("SAGE_FAULTS") == "all"
# What each operation is known to do: fewer calls that failed would mean that the shim missed some.
AT_LEAST = {
    "start": {"open": 1, "read": 2, "stat": 12, "getcwd": 1},
    "load": {"open": 50, "read": 14, "stat": 60, "list": 30, "dup": 5, "readlink": 3},
    "count": {"open": 2, "read": 4, "thread": 1},
    "build": {"open": 50, "write": 1, "fsync": 1, "rename": 1, "mkdir": 2, "thread": 1},
    "reopen": {"open": 20, "read": 8, "write": 1, "unlink": 1, "chmod": 1, "rename": 1},
    "update": {"open": 15, "read": 4, "stat": 30, "write": 1, "fsync": 1, "rename": 1},
    "search": {"open": 10, "stat": 20, "list": 20},
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("shim"))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_whatever_call_fails_nothing_is_lost_leaked_or_wrong(
    tmp_path: Path, shim: Path, operation: str
) -> None:
    command = [sys.executable, "-m", "tests.faults.trials", operation, str(tmp_path / "world")]
    ended = subprocess.run(
        [*command, *(["--all"] if ALL else [])],
        env=clean_environment(tmp_path, LD_PRELOAD=str(shim)),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    report = json.loads(ended.stdout)
    print(operation, report["injected"], f"{report['cpu_s']} CPU s")
    assert report["bad"] == []
    for kind, least in AT_LEAST[operation].items():
        assert report["injected"].get(kind, 0) >= least
