"""`sage publish` as a process of its own: what a person sees of it, and what its end leaves."""

import os
import pty
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cluster.conftest import Team, free_the_lock
from tests.processes import PATIENCE_SECONDS, REPOSITORY

PAGES = 400


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


class Between(ThreadingHTTPServer):
    """Stands between a publish and its node, and ends the publish at a request."""

    daemon_threads = True

    def __init__(self, node: str, part: str, *, is_done: bool) -> None:
        """Args:
        part: of the method and path of the request.
        is_done: whether the node gets the request before.
        """
        super().__init__(("127.0.0.1", 0), _Passing)
        self.node = node
        self.part = part
        self.is_done = is_done
        self.process: subprocess.Popen[bytes] | None = None
        self.has_killed = threading.Event()

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.has_killed.set()


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Between

    def passed(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_it = self.server.part in f"{self.command} {self.path}"
        if is_it and not self.server.is_done:
            self.server.kill()
            return
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.server.node + self.path, body or None, head)
        request.method = self.command
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                status, data = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, data = error.code, error.read()
        if is_it:
            self.server.kill()
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.passed()

    def do_PUT(self) -> None:
        self.passed()

    def do_POST(self) -> None:
        self.passed()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


STEPS = [
    ("PUT /{base}-publishing/_doc", False),
    ("PUT /{base}-publishing/_doc", True),
    ("_clone", False),
    ("_clone", True),
    ("_bulk", False),
    ("_bulk", True),
    ("_refresh", True),
    ("_settings", True),
    ("POST /_aliases", False),
    ("POST /_aliases", True),
]


@pytest.mark.parametrize(("step", "is_done"), STEPS)
def test_a_publish_that_is_killed_leaves_a_whole_generation(
    team: Team, step: str, is_done: bool
) -> None:
    old = team.publish(marked("alpha"))
    pages = marked("beta", PAGES // 4)
    team.base.write(pages)
    with Between(team.options.urls[0], step.format(base=team.options.base), is_done=is_done) as way:
        thread = threading.Thread(target=way.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{way.server_address[1]}"
        at = ("publish", "--url", url, "--base", team.options.base, "--quiet")
        way.process = subprocess.Popen(  # with those that describe pages for it
            [sys.executable, "-m", "sage", *at],
            cwd=team.base.root,
            env=environment(team),
            start_new_session=True,
        )
        assert way.process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        way.has_killed.wait(PATIENCE_SECONDS)
        way.shutdown()
        thread.join()
    (served,) = team.served
    has_moved = (step, is_done) == STEPS[-1]
    assert (served != old.index) == has_moved
    found = team.replica().search("marker", limit=50, max_tokens=8_000)
    marks = {result["title"].split()[0] for result in found["results"]}
    assert found["total"] == PAGES
    assert has_moved or marks == {"alpha"}
    free_the_lock(team)
    done = team.publish(grace_seconds=0.0)
    assert team.served == team.indexes == [done.index]
    replica = team.replica()
    assert replica.search("marker beta")["total"] == PAGES
    assert all("beta" in replica.get("all", path[:-3])["content"] for path in list(pages)[::50])
