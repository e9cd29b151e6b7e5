"""Commands that write pages are killed, or the disk is full: the old page or the new one.

SAGE_KILLS sets how many are killed at random moments; SAGE_FUZZ_SEED other moments.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.faults.injector import compiled
from tests.faults.test_kills import KILLS, SEED
from tests.processes import clean_environment


def test_a_killed_command_leaves_the_old_page_or_the_new_one(tmp_path: Path) -> None:
    shim = compiled(tmp_path)
    words = [sys.executable, "-m", "tests.faults.page_kills", str(tmp_path / "world")]
    ended = subprocess.run(
        [*words, str(KILLS), str(SEED)],
        env=clean_environment(tmp_path, LD_PRELOAD=str(shim)),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    report = json.loads(ended.stdout.splitlines()[-1])
    print({name: report[name] for name in ("killed", "full", "left")})
    assert report["bad"] == []
    assert report["killed"]["any moment"] == KILLS
    for kind in ("write", "fsync", "rename"):
        assert report["killed"][kind] >= 4
        assert report["full"][kind] >= 4
