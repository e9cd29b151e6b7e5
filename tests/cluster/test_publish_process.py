"""`sage publish` as a process of its own: what a person sees of it, and what its end leaves."""

import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from sage.deadline import Deadline
from sage.publish.lock import PublishLock
from sage.values import OWN
from tests.cluster.conftest import Team
from tests.processes import PATIENCE_SECONDS, REPOSITORY

PAGES = 400
MOMENTS = 6


def marked(mark: str, pages: int = PAGES) -> dict[str, str]:
    """Pages that all say which generation they are of."""
    text = "# {0} page {1}\n\nA marker of {0}, w{1}.\n\n## More\n\nSome text of {0}.\n"
    return {f"practices/page-{number}.md": text.format(mark, number) for number in range(pages)}


def command(team: Team, *words: str) -> list[str]:
    at = ("--url", team.options.urls[0], "--base", team.options.base)
    return [sys.executable, "-m", "sage", "publish", *at, *words]


def environment(team: Team) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAGE_")}
    return {**kept, **team.base.environment, "PYTHONPATH": str(REPOSITORY), "TERM": "xterm"}


def watched(team: Team, *words: str) -> tuple[int, str]:
    """Run a command, or publish, on a terminal; the exit code and what was seen there."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        words or command(team),
        cwd=team.base.root,
        env={**environment(team), "COLUMNS": "100"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen = b"".join(read(controller))
    os.close(controller)
    return process.wait(PATIENCE_SECONDS), seen.decode()


def read(controller: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(controller, 4096)
        except OSError:  # how Linux says that nobody has the other end any more
            return
        if not part:
            return
        yield part


def test_a_person_sees_from_the_beginning_how_far_it_is(team: Team) -> None:
    team.base.write(marked("alpha"))
    code, seen = watched(team)
    assert code == 0, seen
    assert -1 < seen.index("reading") < seen.index("publishing") < seen.index("is served")
    assert seen.index("0%") < seen.index("100%")
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h") == 2  # the cursor is back


HALF_WAY = """
from sage.cli import main, terminal
from sage.errors import SageError

def app(**_):
    terminal.progress_bar("publishing")(1, 400)
    raise SageError("it broke half way")

main.app = app
main.main()
"""


def test_an_error_stays_on_the_terminal_when_the_bar_goes(team: Team) -> None:
    code, seen = watched(team, sys.executable, "-c", HALF_WAY)
    assert code == 1
    assert "it broke half way" in seen.rpartition("\x1b[?25h")[2]


@pytest.mark.parametrize("number", range(MOMENTS))
def test_a_publish_that_is_killed_leaves_the_old_generation_whole(team: Team, number: int) -> None:
    old = team.publish(marked("alpha"))
    team.base.write(marked("beta", PAGES if number % 2 else PAGES // 4))
    moment = random.Random(number)
    process = subprocess.Popen(  # with those that describe pages for it
        command(team, "--quiet"), cwd=team.base.root, env=environment(team), start_new_session=True
    )
    until = time.monotonic() + PATIENCE_SECONDS
    while len(team.indexes) < 2 and process.poll() is None:
        assert time.monotonic() < until
    time.sleep(moment.uniform(0.0, 1.5))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (served,) = team.served
    found = team.replica().search("marker", limit=50)
    marks = {result["title"].split()[0] for result in found["results"]}
    assert found["total"] == PAGES
    if served == old.index:
        assert marks == {"alpha"}
    ahead = PublishLock(team.connection, OWN, now=lambda: 9e9)
    ahead.acquire(Deadline(30_000))  # as a minute later
    ahead.release(Deadline(30_000))
    done = team.publish(grace_seconds=0.0)
    assert team.served == team.indexes == [done.index]
    replica = team.replica()
    assert replica.search("marker beta")["total"] == PAGES
    pages = marked("beta", PAGES if number % 2 else PAGES // 4)
    assert all("beta" in replica.get("all", path[:-3])["content"] for path in list(pages)[::50])
