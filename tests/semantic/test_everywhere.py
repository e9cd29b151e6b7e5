"""Meaning beside words wherever pages are compared: related pages, duplicates, notes, care."""

import json
from datetime import date

import pytest

from sage.care.evidence import gather_evidence
from sage.care.work_list import work_list
from sage.deadline import no_deadline
from sage.knowledge import KnowledgeBase
from sage.notes.draft import Note
from sage.notes.duplicates import duplicates
from sage.notes.known import known_about
from sage.notes.related import Relations
from sage.page.site import Site
from sage.semantic import models
from sage.server.note_drafts import draft_note
from sage.server.related_pages import related_text
from tests.cluster.conftest import narrowed
from tests.commands import Run, run
from tests.conftest import Base
from tests.page.test_site import ask
from tests.semantic.test_meaning import embedded
from tests.semantic.tiny import Tiny, tiny_model

__all__ = ["run"]


def told(word: str, vowel: str) -> str:
    """A section on a subject, with words around it that no other section has."""
    return " ".join(f"{word} {consonant}{vowel}{vowel}n" for consonant in "bcdfghjklmnprstvwz")


PAGES = {
    "core/a.md": f"# Cache\n\n{told('stored', 'a')}\n",
    "practices/b.md": f"# Memo\n\n{told('remember', 'e')}\n",
    "practices/c.md": f"# Deploy\n\n{told('ship', 'i')}\n",
    "practices/d.md": f"# Retry\n\n{told('again', 'o')}\n",
    "guidelines/e.md": "# Empty\n",
}


@pytest.fixture
def knowledge(base: Base, monkeypatch: pytest.MonkeyPatch) -> KnowledgeBase:
    base.environment["SAGE_SEARCH_SEMANTIC"] = "on"
    monkeypatch.setattr(models, "model_named", lambda _: tiny_model(Tiny()))
    base.write(PAGES)
    return embedded(base.open())


def test_a_page_that_shares_no_word_is_related_and_says_why(knowledge: KnowledgeBase) -> None:
    documents = knowledge.documents()
    relations = Relations(documents)
    by_words = relations.related(documents[0])
    both = relations.related(documents[0], nearness=knowledge.nearness())
    assert "practices/b" not in {one.topic for one in by_words}
    assert (both[0].topic, both[0].reasons) == ("practices/b", ("near in meaning",))


def test_the_resource_and_the_page_of_a_browser_say_it_too(knowledge: KnowledgeBase) -> None:
    text = related_text(knowledge, "core/a", no_deadline())
    assert "practices/b) Memo: near in meaning" in text
    assert "near in meaning" in ask(Site(knowledge), "/around/core/a")[1]


def test_sections_that_say_the_same_in_other_words_are_duplicates_by_meaning(
    knowledge: KnowledgeBase,
) -> None:
    documents = knowledge.documents()
    assert duplicates(documents) == []
    (found,) = duplicates(documents, nearness=knowledge.nearness())
    assert (found.first, found.second, found.by) == ("core/a#cache", "practices/b#memo", "meaning")
    assert found.likeness > 0.9


def test_only_the_pages_that_are_asked_about_are_compared(knowledge: KnowledgeBase) -> None:
    some = [one for one in knowledge.documents() if one.topic != "practices/b"]
    assert duplicates(some, nearness=knowledge.nearness()) == []
    note = Note("keep a memo of it")
    assert known_about(note, some, nearness=knowledge.nearness())[0].topic == "core/a#cache"


def test_a_pair_that_words_found_is_listed_once(base: Base, knowledge: KnowledgeBase) -> None:
    base.write({"practices/copy.md": PAGES["core/a.md"]})
    base.clock.tick(10)
    found = duplicates(embedded(knowledge).documents(), nearness=knowledge.nearness())
    pairs = [frozenset(one[:2]) for one in found]
    assert len(pairs) == len(set(pairs))
    (copy,) = [one for one in found if {*one[:2]} == {"core/a#cache", "practices/copy#cache"}]
    assert (copy.by, copy.likeness) == ("", 1.0)


def test_short_sections_are_no_duplicates(base: Base, knowledge: KnowledgeBase) -> None:
    base.write({"practices/b.md": "# Memo\n\nremember\n"})
    base.clock.tick(10)
    documents = embedded(knowledge).documents()
    assert duplicates(documents, nearness=knowledge.nearness()) == []


def test_a_note_is_compared_by_meaning(knowledge: KnowledgeBase) -> None:
    answer = draft_note(knowledge, text="Keep a memo.", deadline=no_deadline())
    found = {one["topic"]: one["why"] for one in answer["known"]}
    assert found["core/a#cache"] == "near in meaning"
    assert "practices/c#deploy" not in found


def test_care_names_what_is_said_twice_in_other_words(knowledge: KnowledgeBase) -> None:
    evidence = gather_evidence(knowledge, None, date(2026, 1, 1))
    (task,) = work_list(evidence, ["duplicate"])
    assert task.what == "practices/b#memo says in other words what core/a#cache says (by meaning)"


def test_a_base_of_some_layers_knows_of_no_others(knowledge: KnowledgeBase) -> None:
    narrow = embedded(narrowed(knowledge, ["practices", "guidelines"]))
    nearness = narrow.nearness()
    assert nearness is not None
    assert nearness.to_page(".knowledge/core/a.md") == {}
    everything = knowledge.documents()
    found = nearness.to_text("keep a memo", everything, 5)
    assert [one.topic for one in found] == ["practices/b#memo"]
    assert duplicates(everything, nearness=nearness) == []


def test_commands_use_the_vectors_that_are_kept(run: Run, knowledge: KnowledgeBase) -> None:
    knowledge.close()
    assert "near in meaning" in run("related", "core/a")[1]
    _, said, _ = run("duplicates", "--json")
    assert json.loads(said)["duplicates"][0]["by"] == "meaning"
    assert "by meaning" in run("duplicates")[1]
    assert "near in meaning" in run("note", "Keep a memo.", "--dry-run")[1]
    assert "by meaning" in run("search", "rollout")[1]
    assert "in other words" in run("care")[1]


def test_the_page_says_which_result_came_by_meaning_and_why(knowledge: KnowledgeBase) -> None:
    site = Site(knowledge)
    assert "by meaning" in ask(site, "/", q="rollout")[1]
    _, html = ask(site, "/why", q="rollout", topic="practices/c")
    assert "No word led here" in html
    assert "counts 1.0 against the words" in html
