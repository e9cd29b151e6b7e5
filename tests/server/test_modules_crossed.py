"""A stranger can follow a call: it crosses few modules between the request and its answer."""

import signal
from pathlib import Path

import pytest

from benchmarks.modules_crossed import JOURNEYS, TASKS, crossed

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGUSR1"), reason="the profiler in the server is asked by a signal"
)


@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_call_crosses_few_modules(journey: str, tmp_path: Path) -> None:
    tool, arguments, most = JOURNEYS[journey]
    modules = crossed(tmp_path, tool, [arguments(task) for task in TASKS])
    assert len(modules) <= most, sorted(modules)
