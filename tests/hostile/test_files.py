"""Every hostile file beside healthy ones, over stdio and HTTP: named or cleaned, and no more.

Two servers run the whole time. Cases are planted before their eyes a few at a time, so that each
problem is among the first that `sage_info` names.
"""

from collections.abc import Iterator
from itertools import chain

import pytest

from sage.deadline import no_deadline
from sage.documents.library import Library
from sage.documents.problems import Problem
from sage.settings import load_settings
from tests.hostile.cases import Case, Place, batches
from tests.hostile.links import layer_cases, link_cases, special_cases, tree_cases
from tests.hostile.markups import markup_cases
from tests.hostile.matters import matter_cases
from tests.hostile.names import name_cases
from tests.hostile.servers import Served, serving_http, serving_stdio
from tests.hostile.texts import text_cases

CASES = list(
    chain(
        link_cases(),
        layer_cases(),
        special_cases(),
        tree_cases(),
        name_cases(),
        text_cases(),
        markup_cases(),
        matter_cases(),
    )
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place.made_in(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def servers(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    caches = tmp_path_factory.mktemp("caches")
    with (
        serving_stdio(place.root, caches / "stdio") as stdio,
        serving_http(place.root, caches / "http") as over_http,
    ):
        yield [stdio, over_http]


@pytest.fixture(scope="module")
def library(place: Place) -> Library:
    return Library(load_settings({"root": place.root}, {}, place.root))


def found_in(library: Library) -> list[Problem]:
    """What is wrong with the files, missing layers aside."""
    listings = library.refresh(library.layers, no_deadline())
    problems = library.problems(listings, no_deadline())
    return [problem for problem in problems if problem.rule != "no-folder"]


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 300


@pytest.mark.parametrize("batch", list(batches(CASES)), ids=lambda batch: batch[0].name)
def test_bad_files_are_named_and_healthy_ones_served(
    batch: list[Case], place: Place, servers: list[Served], library: Library
) -> None:
    try:
        for case in batch:
            case.build(place)
        problems = found_in(library)
        expected = {f".knowledge/{path}": rule for c in batch for path, rule in c.problems.items()}
        assert {problem.path: problem.rule for problem in problems} == expected
        named = [problem for problem in problems if problem.level != "note"]
        for server in servers:
            check(server, batch, named)
    finally:
        place.sweep()


def check(server: Served, batch: list[Case], named: list[Problem]) -> None:
    """What one server must answer while a batch of cases lies in its base."""
    for case in batch:
        for topic, says in case.served.items():
            content = server.read(topic)
            assert says in content, (case.name, server.speaker.name, content[:500])
            assert case.hidden not in content, case.name
    server.check_healthy()
    info = server.info_of_all()
    assert info["problems"] == {
        "count": len(named),
        "first": [{"path": one.path, "what": one.message} for one in named],
    }
    assert info["status"] == ("degraded" if named else "healthy"), info["reasons"]


def test_everything_at_once_is_survived_from_the_start(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("together")
    place = Place.made_in(folder)
    for case in CASES:
        if not case.alone:
            case.build(place)
    library = Library(load_settings({"root": place.root}, {}, place.root))
    wrong = [problem for problem in found_in(library) if problem.level != "note"]
    assert len(wrong) == sum(problem.rule not in NOTES for problem in found_in(library))
    for serving in (serving_stdio, serving_http):
        with serving(place.root, folder / "cache") as server:
            server.wait_for_index()
            server.check_healthy()
            assert server.info_of_all()["problems"]["count"] == len(wrong)
    place.sweep()


NOTES = ("hidden", "listed-twice", "not-markdown", "ignored")
