"""A base searched by meaning: made in the background, kept, and never mixed."""

import threading
from collections.abc import Callable

import pytest

from sage.errors import ConfigError
from sage.knowledge import KnowledgeBase
from sage.semantic import models
from sage.semantic.weights import ModelUnavailable
from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS
from tests.semantic.tiny import Tiny, tiny_model

PAGES = {
    "core/a.md": "# Cache\n\nIt is stored, stored for an hour.\n\n## Keys\n\nName the cache.\n",
    "core/b.md": "# Retry\n\nCall again, and repeat it after a pause.\n",
    "practices/c.md": "# Deploy\n\nShip the release.\n",
}
Open = Callable[..., KnowledgeBase]


@pytest.fixture
def tiny() -> Tiny:
    return Tiny()


@pytest.fixture
def opened(base: Base, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens the base with the tiny model."""
    base.environment["SAGE_SEARCH_SEMANTIC"] = "on"
    monkeypatch.setattr(models, "model_named", lambda _: tiny_model(tiny))
    base.write(PAGES)
    return lambda **flags: base.open(**flags)


def embedded(knowledge: KnowledgeBase) -> KnowledgeBase:
    """The same, with a vector for every section."""
    knowledge.warm()
    assert knowledge.meaning is not None
    knowledge.meaning.embed()
    return knowledge


def test_a_question_without_a_word_of_the_page_finds_it_and_the_answer_says_how(
    opened: Open,
) -> None:
    answer = embedded(opened()).search("remember memos")
    assert answer["results"][0]["topic"] == "core/a"
    assert answer["results"][0]["by"] == "meaning"
    assert answer["found"] == "partly"


def test_a_base_is_searched_by_words_until_there_are_vectors(opened: Open) -> None:
    knowledge = opened()
    assert knowledge.search("remember memos")["results"] == []
    assert knowledge.search("stored for an hour")["found"] == "yes"
    info = knowledge.info()["meaning"]
    assert (info["state"], info["sections"], info["of"]) == ("waiting", 0, 4)


def test_answers_that_were_ready_before_there_were_vectors_are_not_given_again(
    opened: Open,
) -> None:
    knowledge = opened()
    assert knowledge.search("remember memos")["results"] == []
    assert embedded(knowledge).search("remember memos")["results"]


def test_the_background_makes_all_vectors_and_says_so(opened: Open) -> None:
    knowledge = opened()
    knowledge.warm()
    assert knowledge.meaning is not None
    told = threading.Event()
    known = knowledge.meaning._tell

    def tell() -> None:
        known()
        if knowledge.info()["meaning"]["state"] == "ready":
            told.set()

    knowledge.meaning._tell = tell  # type: ignore[method-assign]
    knowledge.meaning.start()
    assert told.wait(PATIENCE_SECONDS)
    knowledge.close()
    assert knowledge.info()["meaning"]["sections"] == 4


def test_only_changed_sections_are_embedded_again(opened: Open, tiny: Tiny, base: Base) -> None:
    knowledge = embedded(opened())
    tiny.given.clear()
    base.write({"core/a.md": PAGES["core/a.md"].replace("Name the", "Call the")})
    base.clock.tick(10)
    embedded(knowledge)
    assert len(tiny.given) == 1
    assert "Call the cache" in tiny.given[0]


def test_vectors_that_no_section_has_any_more_are_dropped(opened: Open, base: Base) -> None:
    knowledge = embedded(opened())
    assert knowledge.meaning is not None
    before = knowledge.meaning.state.size_bytes
    for number in range(40):
        base.write({"core/a.md": PAGES["core/a.md"].replace("Name the", f"Call {number} the")})
        base.clock.tick(10)
        embedded(knowledge)
    assert knowledge.meaning.state.size_bytes == before
    (base.root / ".knowledge" / "core" / "a.md").unlink()
    base.clock.tick(10)
    embedded(knowledge)
    assert knowledge.meaning.state.size_bytes == before * 4 // 7


def test_what_was_edited_is_kept_as_it_is_now(opened: Open, tiny: Tiny, base: Base) -> None:
    knowledge = embedded(opened())
    base.write({"core/a.md": PAGES["core/a.md"].replace("Name the", "Call the")})
    base.clock.tick(10)
    embedded(knowledge).close()
    tiny.given.clear()
    embedded(opened()).close()
    assert tiny.given == []


def test_vectors_are_kept_for_the_next_start(opened: Open, tiny: Tiny) -> None:
    embedded(opened()).close()
    tiny.given.clear()
    again = opened()
    assert again.meaning is not None
    again.meaning.recall()
    assert again.search("remember memos")["results"][0]["topic"] == "core/a"
    assert tiny.given == ["remember memos"]
    assert again.info()["meaning"]["sections"] == 4


def test_vectors_of_another_model_are_never_used(
    opened: Open, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded(opened()).close()
    monkeypatch.setattr(models, "model_named", lambda _: tiny_model(tiny, "tiny-2"))
    again = opened()
    assert again.meaning is not None
    again.meaning.recall()
    assert again.info()["meaning"]["sections"] == 0


def test_a_damaged_file_is_made_again(opened: Open, base: Base) -> None:
    embedded(opened()).close()
    cache = base.environment["SAGE_CACHE_DIR"]
    (kept,) = (base.root.parent / "cache" / "index").glob("*vectors*")
    assert str(kept).startswith(cache)
    data = bytearray(kept.read_bytes())
    data[-40] ^= 0xFF
    kept.write_bytes(data)
    again = opened()
    assert again.meaning is not None
    again.meaning.recall()
    assert again.info()["meaning"]["sections"] == 0
    assert embedded(again).info()["meaning"]["sections"] == 4


def test_what_was_asked_for_is_embedded_first(opened: Open, tiny: Tiny) -> None:
    knowledge = opened()
    knowledge.warm()
    assert knowledge.meaning is not None
    knowledge.meaning._load()
    knowledge.search("ship the release")
    tiny.given.clear()
    knowledge.meaning.embed()
    assert tiny.given[0].startswith("Deploy")


def test_a_layer_is_asked_for_inside_the_query(opened: Open) -> None:
    knowledge = embedded(opened())
    assert knowledge.search("remember memos", layer="practices", limit=1)["found"] == "no"
    topics = knowledge.topics_for("remember rollout", "practices", 5)
    assert topics == ["practices/c"]


def test_a_deleted_page_is_no_result(opened: Open, base: Base) -> None:
    knowledge = embedded(opened())
    base.path("core/a.md").unlink()
    base.clock.tick(10)
    assert knowledge.topics_for("remember memos", "all", 5) == []


def test_the_task_of_a_context_finds_by_meaning(opened: Open) -> None:
    knowledge = embedded(opened())
    answer = knowledge.context("coding", task="remember memos")
    found = {source["topic"].partition("#")[0]: source["why"] for source in answer["sources"]}
    assert found["core/a"].startswith("task, by meaning")


def test_a_model_that_cannot_be_loaded_is_said_and_words_still_answer(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Tiny:
        raise ModelUnavailable("the weights are broken")

    base.environment["SAGE_SEARCH_SEMANTIC"] = "auto"
    broken = tiny_model(Tiny())._replace(load=fail)
    monkeypatch.setattr(models, "model_named", lambda _: broken)
    knowledge = base.open(PAGES)
    knowledge.warm()
    assert knowledge.meaning is not None
    with pytest.raises(ModelUnavailable, match="broken"):
        knowledge.meaning.embed()
    assert knowledge.info()["meaning"]["message"] == "the weights are broken"
    assert knowledge.search("stored for an hour")["found"] == "yes"


def test_on_refuses_to_work_without_the_model(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.environment |= {"SAGE_SEARCH_SEMANTIC": "on", "SAGE_SEARCH_MODEL": "granit"}
    with pytest.raises(ConfigError, match="did you mean granite"):
        base.open(PAGES).search("anything")


@pytest.mark.parametrize("name", ["granit", "/no/such/folder"])
def test_auto_goes_on_without_the_model_and_says_what_is_wrong(base: Base, name: str) -> None:
    base.environment |= {"SAGE_SEARCH_SEMANTIC": "auto", "SAGE_SEARCH_MODEL": name}
    knowledge = base.open(PAGES)
    assert knowledge.search("stored for an hour")["found"] == "yes"
    info = knowledge.info()["meaning"]
    assert (info["model"], info["state"], info["sections"]) == (name, "unavailable", 0)
    assert "search.model" in info["message"]
    assert knowledge.meaning is not None
    with pytest.raises(ModelUnavailable, match=r"search\.model"):
        knowledge.meaning.embed()


def test_auto_says_nothing_where_a_part_of_the_extra_is_missing(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.environment["SAGE_SEARCH_SEMANTIC"] = "auto"
    monkeypatch.setattr(models, "NEEDED", ("no_such_library",))
    knowledge = base.open(PAGES)
    assert knowledge.search("stored for an hour")["found"] == "yes"
    assert "meaning" not in knowledge.info()
