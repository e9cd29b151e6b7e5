"""Every command over hostile repositories: nothing is started, nothing outside is written.

A few are made in each run; `python -m tests.hostile --repositories 500` makes that many.
"""

import sys
from pathlib import Path

import pytest
import typer

from sage.cli.main import app
from tests.hostile.repositories import COMMANDS, misled

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="UNTESTED: only Linux tells where an open file really lies"
)


@pytest.mark.parametrize("number", range(6))
def test_no_command_is_misled_by_a_hostile_repository(number: int, tmp_path: Path) -> None:
    assert misled(number, tmp_path) == []


def test_every_command_is_tried() -> None:
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert known - {words[0] for words in COMMANDS} == set()
