"""Processes that build or update an index are killed: the next start serves all, and no rest grows.

SAGE_KILLS sets how many are killed at random moments; SAGE_FUZZ_SEED other moments.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.injector import compiled
from tests.processes import clean_environment
from tests.processes import write_base as write_small_base

KILLS = int(os.environ.get("SAGE_KILLS", "10"))
SEED = int(os.environ.get("SAGE_FUZZ_SEED", "1"))
COMMANDS = (["search", "temporary folder", "--json"], ["info", "--json"])


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("shim"))


def test_a_killed_writer_leaves_the_old_index_or_the_new_one(tmp_path: Path, shim: Path) -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.faults.kills",
            str(tmp_path / "world"),
            str(KILLS),
            str(SEED),
        ],
        env=clean_environment(tmp_path, LD_PRELOAD=str(shim)),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    report = json.loads(ended.stdout)
    print(report["killed"])
    assert report["bad"] == []
    assert report["killed"]["any moment"] == KILLS
    for kind in ("open", "write", "fsync", "rename", "mkdir", "close"):
        assert report["killed"][kind] >= 2


def test_a_killed_command_does_not_hinder_the_next_one(tmp_path: Path) -> None:
    root = write_small_base(tmp_path)
    chance = random.Random(SEED)
    started = time.monotonic()
    expected = results(root)
    lasts = time.monotonic() - started
    for number in range(max(4, KILLS // 20)):
        command = COMMANDS[number % 2]
        with subprocess.Popen(
            sage(root, *command),
            env=clean_environment(root),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as running:
            try:
                running.wait(chance.uniform(0, lasts))
            except subprocess.TimeoutExpired:
                running.kill()
        assert results(root) == expected
        # An edit of the same words: the next one has an index to update.
        page = root / ".knowledge" / "practices" / "testing.md"
        page.write_text(page.read_text("utf-8") + "\n", "utf-8")


def sage(root: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "sage", *arguments, "--root", str(root)]


def results(root: Path) -> list[tuple[str, str]]:
    """What a command finds that nobody kills."""
    command = sage(root, *COMMANDS[0])
    done = subprocess.run(command, env=clean_environment(root), capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer.get("complete", True)
    return [(one["path"], one["snippet"]) for one in answer["results"]]
