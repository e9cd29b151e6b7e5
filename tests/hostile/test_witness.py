"""What a serving process touches while everything is asked of it: the root, itself, its cache."""

import json
import mimetypes
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import httpkit, processes
from tests.hostile.calls import ordinary_requests, requests_with
from tests.hostile.cases import KNOWLEDGE, MAPPED, SOURCE, Place
from tests.hostile.links import link_cases, special_cases
from tests.hostile.payloads import payloads
from tests.hostile.servers import Served, serving_http, serving_stdio
from tests.processes import REPOSITORY

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="UNTESTED: only Linux tells where an open file really lies"
)

RECORDER = Path(__file__).with_name("recorder.py")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The system's files that Python's own library opens: what stands in for nothing, and the list of
# file types that `mimetypes` reads for an import of FastMCP's.
# The kernel says in the last one which file systems only this machine changes.
SYSTEM = {"/dev/null", *mimetypes.knownfiles, "/proc/self/mountinfo"}

BY_DESCRIPTOR = ("open", "os.listdir", "os.scandir", "os.chmod")

Event = list[Any]


@pytest.fixture(
    params=[
        (serving_stdio, KNOWLEDGE),
        (serving_http, KNOWLEDGE),
        (serving_stdio, MAPPED),
        (serving_stdio, SOURCE),
    ],
    ids=["stdio", "http", "stdio-mapped", "stdio-source"],
)
def events(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Place, list[Event]]]:
    """A hostile base, and everything its server did while every kind of request was made."""
    serving, kind = request.param
    place = hostile_place(tmp_path, kind)
    log = tmp_path / "events"
    record(monkeypatch, log)
    # Also with what an operator must switch on.
    variables = {"SAGE_NOTES_DRAFT_TOOL": "true", **place.environment}
    with serving(place.served, tmp_path / "cache", **variables) as server:
        ask_everything(server)
    yield place, [json.loads(line) for line in log.read_text().splitlines()]
    place.sweep()


def hostile_place(folder: Path, kind: str) -> Place:
    place = Place.made_in(folder, kind)
    for case in (*link_cases(), *special_cases()):
        if not case.alone:
            case.build(place)
    return place


def record(monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    """Start servers under the eyes of a witness."""

    def watched(command: Callable[..., list[str]]) -> Callable[..., list[str]]:
        def words(*given: Any) -> list[str]:
            python, _, _, *rest = command(*given)
            return [python, "-P", str(RECORDER), str(log), *rest]

        return words

    monkeypatch.setattr(processes, "serve_command", watched(processes.serve_command))
    monkeypatch.setattr(httpkit, "command", watched(httpkit.command))


def ask_everything(server: Served) -> None:
    server.wait_for_index()
    for method, params in ordinary_requests():
        server.result(method, params)
    for payload in list(payloads(Path("/nowhere/secret.md")))[::60]:
        for method, params in requests_with(payload):
            server.ask(method, params)
    server.check_healthy()


def test_nothing_outside_is_touched(events: tuple[Place, list[Event]]) -> None:
    place, seen = events
    assert len([event for event in seen if event[0] == "open"]) > 300
    assert not (found := outside(place, seen)), "\n".join(map(str, found))


@pytest.mark.parametrize(
    "event",
    [
        ["open", "/etc/passwd", "r", 524_288],
        ["open", "ROOT/new.md", "w", 524_865],
        ["open", "ROOT/new.md", None, os.O_WRONLY | os.O_CREAT],
        ["os.scandir", "/home"],
        ["os.remove", "ROOT/.knowledge/core/healthy.md", -1],
        ["os.rename", "/a", "/b", -1, -1],
        ["os.mkdir", "ROOT/new", 511, -1],
        ["socket.connect", "<socket>", ["127.0.0.1", 80]],
        ["socket.bind", "<socket>", ["0.0.0.0", 80]],
        ["subprocess.Popen", "/bin/sh", ["sh"], None, None],
        ["os.exec", "/bin/sh", ["sh"], None],
        ["os.fork"],
        ["os.system", "id"],
        ["os.kill", 1, 9],
        ["pickle.find_class", "os", "system"],
        ["ctypes.dlopen", "evil.so"],
    ],
    ids=lambda event: event[0],
)
def test_anything_else_would_be_noticed(tmp_path: Path, event: Event) -> None:
    place = Place(tmp_path / "repository", tmp_path / "outside")
    real = [
        str(part).replace("ROOT", str(place.root)) if type(part) is str else part for part in event
    ]
    assert outside(place, [real]) == [real]


def outside(place: Place, seen: list[Event]) -> list[Event]:
    """What a serving process may not do."""
    return [event for event in seen if not may(place, event)]


def may(place: Place, event: Event) -> bool:
    """Whether a serving process may do this."""
    name, *given = [*event, None] if len(event) == 1 else event
    cache = place.root.parent / "cache"
    if name == "refused" or given[0] == "/dev/null":
        return True
    if name in BY_DESCRIPTOR and isinstance(given[0], int):
        return True  # it was opened before, and noted
    if name == "open" and not is_writing(given):
        known = (place.root, place.served, cache, *installation())
        return is_below(given[0], *known) or given[0] in SYSTEM
    if name in ("os.listdir", "os.scandir"):
        listed = is_below(given[0], place.root, place.served, cache, *installation())
        return listed or given[0] in (str(REPOSITORY), *sys.path)  # where Python looks for us
    if name in ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod"):
        return is_below(given[0], cache) or is_named_beside_a_descriptor(name, given)
    return name in ALLOWED and ALLOWED[name](given)


def is_writing(given: list[Any]) -> bool:
    mode, flags = given[1], given[2]
    return bool(flags & WRITING) if mode is None else any(c in str(mode) for c in "wax+")


def is_below(path: object, *folders: Path) -> bool:
    """Whether a path, its links followed, lies below one of the folders."""
    real = Path(os.path.realpath(str(path)))
    return os.path.isabs(str(path)) and any(real.is_relative_to(folder) for folder in folders)


def is_named_beside_a_descriptor(name: str, given: list[Any]) -> bool:
    """A change below an open folder: the folder is one that was opened, and checked as such."""
    return name != "open" and "/" not in str(given[0]) and given[-1] != -1


def installation() -> list[Path]:
    """Where Python, its libraries and the package lie."""
    named = ("stdlib", "platstdlib", "purelib", "platlib")
    known = [sysconfig.get_path(name) for name in named]
    known += [path for path in sys.path if path.endswith(".zip")]
    return [Path(os.path.realpath(path)) for path in known] + [REPOSITORY / "sage", RECORDER]


def is_our_own_address(given: list[Any]) -> bool:
    return bool(given[-1][0] == "127.0.0.1")


ALLOWED: dict[str, Callable[[list[Any]], bool]] = {
    "socket.bind": is_our_own_address,
    "socket.getaddrinfo": lambda given: given[0] == "127.0.0.1",
    "ctypes.dlopen": lambda given: given[0] is None,  # the interpreter itself
}
