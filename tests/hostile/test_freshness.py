"""An edit is in the next answer, wherever the pages lie; and what was there before is gone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sage.deadline import Clocks
from sage.errors import NotFound
from sage.knowledge import KnowledgeBase
from sage.settings import load_settings
from tests.conftest import Clock
from tests.hostile.cases import KINDS, Place


def page(word: str) -> str:
    return f"# Page\n\nThe {word} reads this.\n"


def overwrite_in_the_same_size_and_time(place: Place) -> None:
    path = place.core / "page.md"
    stamp = path.stat()
    path.write_text(page("wombat"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def replace(place: Place) -> None:
    beside = place.core / "page.tmp"
    beside.write_text(page("numbat"))
    os.replace(beside, place.core / "page.md")


def new_folder(place: Place) -> None:
    place.write("practices/deep/er/new.md", page("bilby"))


def new_layer(place: Place) -> None:
    place.write("guidelines/first.md", page("quoll"))


def rename(place: Place) -> None:
    os.rename(place.core / "page.md", place.core / "renamed.md")


def move_a_folder(place: Place) -> None:
    os.rename(place.layers / "practices/deep", place.layers / "guidelines/deep")


def link_inside(place: Place) -> None:
    place.write("core/target.md", page("potoroo"))
    place.link("practices/linked.md", place.core / "target.md")


def edit_behind_the_link(place: Place) -> None:
    place.write("core/target.md", page("bettong"))


def delete(place: Place) -> None:
    (place.core / "renamed.md").unlink()


# Each edit, with the topics that then hold a word, and the words that are gone.
EDITS: tuple[tuple[Callable[[Place], object], dict[str, str], str], ...] = (
    (lambda place: place.write("core/page.md", page("dingos")), {"core/page": "dingos"}, ""),
    (overwrite_in_the_same_size_and_time, {"core/page": "wombat"}, "dingos"),
    (replace, {"core/page": "numbat"}, "wombat"),
    (new_folder, {"practices/deep/er/new": "bilby"}, ""),
    (new_layer, {"guidelines/first": "quoll"}, ""),
    (rename, {"core/renamed": "numbat"}, ""),
    (move_a_folder, {"guidelines/deep/er/new": "bilby"}, ""),
    (link_inside, {"core/target": "potoroo", "practices/linked": "potoroo"}, ""),
    (edit_behind_the_link, {"core/target": "bettong", "practices/linked": "bettong"}, "potoroo"),
    (delete, {}, "numbat"),
)
GONE = {rename: "core/page", move_a_folder: "practices/deep/er/new", delete: "core/renamed"}


def opened(place: Place, cache: Path) -> KnowledgeBase:
    clock = Clock()
    environment = {"SAGE_CACHE_DIR": str(cache), "SAGE_SEARCH_SEMANTIC": "off", **place.environment}
    settings = load_settings({"root": place.served}, environment, place.served)
    return KnowledgeBase(settings, Clocks(monotonic=clock, now=clock, sleep=clock.tick))


def found(knowledge: KnowledgeBase, word: str) -> set[str]:
    results = knowledge.search(word)["results"]
    return {one["topic"].partition("#")[0] for one in results if word in one["snippet"]}


@pytest.mark.parametrize("kind", KINDS)
def test_every_edit_is_in_the_next_answer(tmp_path: Path, kind: str) -> None:
    place = Place.made_in(tmp_path, kind)
    knowledge = opened(place, tmp_path / "cache")
    for edit, held, gone in EDITS:
        edit(place)
        for topic, word in held.items():
            assert word in knowledge.get("all", topic)["content"], (edit, topic)
            assert topic in found(knowledge, word) or len(held) > 1, (edit, topic)
        assert not gone or not found(knowledge, gone), edit
        if edit in GONE:
            with pytest.raises(NotFound):
                knowledge.get("all", GONE[edit])
    fresh = opened(place, tmp_path / "fresh")
    assert knowledge.topics() == fresh.topics()
    assert knowledge.search("reads this")["total"] == fresh.search("reads this")["total"]
