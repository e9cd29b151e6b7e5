"""Every way to ask for a file outside, through every argument and address, on both transports."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.calls import requests_with
from tests.hostile.cases import CANARY, KINDS, LONG, Place
from tests.hostile.links import link_cases
from tests.hostile.payloads import payloads
from tests.hostile.servers import Served, serving_http, serving_stdio
from tests.processes import REPOSITORY

# By default each payload goes through every tenth argument, another one each time, so that every
# payload and every argument is met; the long version sends all through all.
STRIDE = 1 if LONG else 10
# What only the file outside, the system's list of users or this process's own variables say.
FOREIGN = (CANARY, "root:x:0", "SAGE_CACHE_DIR", "Traceback", "site-packages")


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place.made_in(tmp_path_factory.mktemp("traversal"), request.param)
    for case in link_cases():
        if not case.alone:
            case.build(place)
    return place


@pytest.fixture(scope="module", params=[serving_stdio, serving_http], ids=["stdio", "http"])
def server(request: pytest.FixtureRequest, place: Place) -> Iterator[Served]:
    cache = place.root.parent / "cache"
    variables = {"SAGE_NOTES_DRAFT_TOOL": "true", **place.environment}
    with request.param(place.served, cache, **variables) as server:
        yield server


def test_there_are_enough_payloads(place: Place) -> None:
    found = list(payloads(place.outside / "secret.md"))
    assert len(set(found)) == len(found) >= 200
    assert len(list(requests_with("x"))) >= 20


def test_no_payload_reads_a_byte_from_outside(place: Place, server: Served) -> None:
    asked = 0
    for number, payload in enumerate(payloads(place.outside / "secret.md")):
        for position, (method, params) in enumerate(requests_with(payload)):
            if (number + position) % STRIDE:
                continue
            asked += 1
            answer = server.ask(method, params)
            assert foreign_in(answer, place.root) == [], (method, params)
    server.check_healthy()
    assert asked >= 200 * 20 // STRIDE


def foreign_in(answer: object, root: Path) -> list[str]:
    """What an answer says that it may not: contents from outside, and where things lie here.

    The payloads name a folder beside the root; an asker's own words may come back.
    """
    told = json.dumps(answer, ensure_ascii=False)
    places = (str(root), str(root.parent / "cache"), str(REPOSITORY / "sage"), sys.prefix)
    return [word for word in (*FOREIGN, *places) if word in told]
