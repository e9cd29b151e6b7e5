"""Every hostile file beside healthy ones, over stdio and HTTP: named or cleaned, and no more.

Two servers run the whole time. Cases are planted before their eyes a few at a time, so that each
problem is among the first that `sage_info` names.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sage.deadline import no_deadline
from sage.documents.library import Library
from sage.documents.problems import Problem
from sage.knowledge import KnowledgeBase
from sage.sanitize import clean
from sage.settings import load_settings
from tests.hostile.cases import KNOWLEDGE, LONG, MAPPED, SOURCE, Case, Place, batches
from tests.hostile.links import layer_cases, link_cases, special_cases, tree_cases
from tests.hostile.markups import markup_cases
from tests.hostile.matters import matter_cases
from tests.hostile.names import name_cases
from tests.hostile.servers import Served, serving_http, serving_stdio
from tests.hostile.texts import text_cases

BY_PLACE = [*link_cases(), *layer_cases(), *special_cases(), *tree_cases(), *name_cases()]
BY_CONTENT = [*text_cases(), *markup_cases(), *matter_cases()]
EVERY = [*BY_PLACE, *BY_CONTENT]


CASES = [case for case in EVERY if KNOWLEDGE in case.kinds]


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
        expected = {place.shown(path): rule for c in batch for path, rule in c.problems.items()}
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


@pytest.mark.parametrize("kind", [MAPPED, SOURCE])
def test_mapped_folders_and_further_sources_are_as_safe(tmp_path: Path, kind: str) -> None:
    place = Place.made_in(tmp_path, kind)
    variables = {"SAGE_CACHE_DIR": str(tmp_path / "cache"), **place.environment}
    knowledge = KnowledgeBase(load_settings({"root": place.served}, variables, place.served))
    # What a page says is read alike wherever it lies: some of those are enough here.
    cases = [case for case in (*BY_PLACE, *BY_CONTENT[:: 1 if LONG else 8]) if kind in case.kinds]
    for batch in batches(cases):
        for case in batch:
            case.build(place)
        expected = {place.shown(path): rule for c in batch for path, rule in c.problems.items()}
        assert {one.path: one.rule for one in found_in(knowledge.library)} == expected
        for case in batch:
            for topic, says in case.served.items():
                content = clean(knowledge.get("all", topic, max_tokens=1_000_000)["content"])
                assert says in content, (case.name, content[:500])
                assert case.hidden not in content, case.name
        place.sweep()


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
