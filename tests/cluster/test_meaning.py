"""Vectors in the cluster: published with the pages, and compared by every replica."""

import pytest

# First: without the extra it skips all of this file.
from tests.semantic.tiny import Tiny, tiny_model  # isort: skip

from sage.cluster.backend import ClusterBackend
from sage.deadline import Deadline
from sage.knowledge import KnowledgeBase
from sage.semantic import models
from sage.semantic.weights import NotInstalled
from tests.cluster.conftest import Team, narrowed
from tests.semantic.test_meaning import PAGES

ASKED = ("remember memos", "stored for an hour", "again", "ship", "release the memo", "nothing")


@pytest.fixture
def tiny(team: Team, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """The model of whoever publishes and of every replica."""
    team.base.environment["SAGE_SEARCH_SEMANTIC"] = "on"
    encoder = Tiny()
    monkeypatch.setattr(models, "model_named", lambda _: tiny_model(encoder))
    return encoder


def ready(knowledge: KnowledgeBase) -> KnowledgeBase:
    """The same, once its model is loaded."""
    assert isinstance(knowledge._backend, ClusterBackend)
    knowledge._backend.load_model()
    return knowledge


def follow(knowledge: KnowledgeBase) -> None:
    """Let a replica see what is published now."""
    assert isinstance(knowledge._backend, ClusterBackend)
    knowledge._backend._replica.view(Deadline(60_000), fresh=True)


def kept(knowledge: KnowledgeBase) -> int:
    """How many vectors a replica has in memory."""
    assert isinstance(knowledge._backend, ClusterBackend)
    meaning = knowledge._backend._replica.vectors.meaning
    assert meaning is not None
    assert meaning._vectors is not None
    return len(meaning._vectors)


def answered(knowledge: KnowledgeBase, query: str, **options: object) -> object:
    answer = knowledge.search(query, **options)  # type: ignore[arg-type]
    return answer["found"], answer["total"], answer["results"]


def test_a_replica_answers_by_meaning_as_the_files_do(team: Team, tiny: Tiny) -> None:
    team.publish(PAGES)
    replica, files = ready(team.replica()), team.base.open()
    files.warm()
    assert files.meaning is not None
    files.meaning.embed()
    for query in ASKED:
        assert answered(replica, query) == answered(files, query), query
    assert replica.search("remember memos")["results"][0]["by"] == "meaning"
    assert replica.info()["meaning"]["sections"] == files.info()["meaning"]["sections"] == 4


def test_only_sections_that_changed_are_embedded_again(team: Team, tiny: Tiny) -> None:
    more = {f"core/p{number}.md": f"# Page {number}\n\nText.\n" for number in range(8)}
    team.publish(PAGES | more)
    replica = ready(team.replica())
    assert replica.search("rollout")["results"][0]["topic"] == "practices/c"
    tiny.given.clear()
    team.publish({"core/a.md": PAGES["core/a.md"].replace("Name the cache", "Repeat")})
    assert len(tiny.given) == 1
    assert "Repeat" in tiny.given[0]
    follow(replica)
    fresh = ready(team.replica())
    assert fresh.info()["meaning"] == replica.info()["meaning"]
    assert answered(fresh, "memo repeat") == answered(replica, "memo repeat")


def test_vectors_of_pages_that_are_gone_are_dropped(team: Team, tiny: Tiny) -> None:
    more = {f"core/p{number}.md": f"# Page {number}\n\nText {number}.\n" for number in range(8)}
    team.publish(PAGES | more)
    replica = ready(team.replica())
    assert replica.search("memo")["results"]
    before = kept(replica)
    team.publish({}, "core/a.md")
    follow(replica)
    assert kept(replica) == before - 3
    assert replica.search("remember memos")["results"] == []


def test_scopes_and_filters_hold_before_the_limit(team: Team, tiny: Tiny) -> None:
    team.publish(PAGES)
    replica = ready(team.replica())
    seen = narrowed(replica, ["practices"])
    assert seen.search("remember memos")["results"] == []
    assert seen.info()["meaning"]["sections"] == 1
    found = replica.search("memo rollout", layer="practices", limit=1)["results"]
    assert [one["path"] for one in found] == [".knowledge/practices/c.md"]
    assert replica.search("memo", types=["decision"])["results"] == []


def test_a_replica_with_another_model_answers_by_words_and_says_why(
    team: Team, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.publish(PAGES)
    monkeypatch.setattr(models, "model_named", lambda _: tiny_model(tiny, "other"))
    replica = ready(team.replica())
    assert replica.search("remember memos")["results"] == []
    assert replica.search("stored for an hour")["found"] == "yes"
    told = replica.info()["meaning"]
    assert (told["state"], told["sections"]) == ("unavailable", 0)
    assert told["message"].startswith("published with vectors of tiny-1")


def test_a_replica_without_the_extra_answers_by_words_and_says_why(
    team: Team, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> models.Model:
        raise NotInstalled("numpy cannot be imported")

    team.publish(PAGES)
    team.base.environment["SAGE_SEARCH_SEMANTIC"] = "auto"
    monkeypatch.setattr(models, "model_named", missing)
    replica = team.replica()
    assert replica.search("remember memos")["results"] == []
    assert "install SAGE with its extra" in replica.info()["meaning"]["message"]


def test_what_was_published_without_vectors_says_so(team: Team, tiny: Tiny) -> None:
    team.base.environment["SAGE_SEARCH_SEMANTIC"] = "off"
    team.publish(PAGES)
    assert "meaning" not in team.replica().info()
    team.base.environment["SAGE_SEARCH_SEMANTIC"] = "on"
    replica = ready(team.replica())
    assert replica.info()["meaning"]["message"].startswith("published without vectors")
    team.publish()
    assert ready(team.replica()).search("remember memos")["results"]


def test_a_question_before_the_model_is_loaded_is_answered_by_words(team: Team, tiny: Tiny) -> None:
    team.publish(PAGES)
    replica = team.replica()
    assert replica.info()["meaning"]["state"] == "loading"
    assert replica.search("stored for an hour")["found"] == "yes"
    ready(replica)
    assert replica.search("remember memos")["results"]
