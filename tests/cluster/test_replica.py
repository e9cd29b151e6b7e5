"""A replica that serves on is as right as one that was opened just now."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sage.cluster.conformance import PAGES
from sage.knowledge import KnowledgeBase
from tests.cluster.conftest import Team
from tests.conftest import Base

State = Mapping[str, str]


def page(word: str) -> str:
    return f"# About {word}\n\nThe {word} is kept by the team.\n"


A = {f"practices/{name}.md": page(name) for name in ("apple", "pear", "plum", "quince", "fig")}
B, C, D = ({**A, f"practices/{name}.md": page(name)} for name in ("badger", "civet", "dingo"))
C_AND_D = {**C, **D}
EDITED = {**A, "practices/apple.md": page("heron"), "core/new.md": page("ibis")}
WITHOUT = {name: text for name, text in A.items() if "fig" not in name}
WORDS = ("fig", "badger", "civet", "dingo", "heron")

WALKS: Mapping[str, Sequence[State]] = {
    "a revert and what comes after": [B, A, C, C_AND_D],
    "two reverts": [B, A, B, C, A, D, C_AND_D],
    "a page that comes back": [WITHOUT, A, WITHOUT, EDITED, A, C],
    "everything anew": [{"core/one.md": page("badger")}, A, B],
}


def publish(team: Team, state: State, **options: object) -> None:
    """Publish exactly these pages."""
    gone = [
        path.relative_to(team.base.path("")).as_posix() for path in team.base.path("").rglob("*.md")
    ]
    team.publish(state, *(name for name in gone if name not in state), **options)


def said(replica: KnowledgeBase) -> dict[str, object]:
    """All that it lists and finds."""
    found = {word: replica.search(word) for word in WORDS}
    return {
        "topics": replica.topics(),
        **{word: [one["topic"] for one in answer["results"]] for word, answer in found.items()},
        **{f"{word} missing": answer.get("missing") for word, answer in found.items()},
        "sections": replica.info()["index"]["sections"],
    }


@pytest.fixture
def payments(team: Team, tmp_path: Path) -> Team:
    """Another repository that publishes into the same base, as a source of its own."""
    base = Base(tmp_path / "payments" / "repo", tmp_path / "cache", team.base.open().counter)
    beside = Team(base, team.options.urls[0])
    beside.connection.close()
    beside.connection, beside.options = team.connection, team.options
    return beside


@pytest.mark.parametrize(
    ("walk", "grace_seconds"), [*((walk, 300.0) for walk in WALKS), ("two reverts", 0.0)]
)
def test_it_follows_every_step(walk: str, grace_seconds: float, team: Team) -> None:
    publish(team, A)
    every, some = team.replica(), team.replica()
    for step, state in enumerate(WALKS[walk]):
        publish(team, state, grace_seconds=grace_seconds)
        fresh = said(team.replica())
        assert said(every) == fresh, step
        assert fresh["topics"] == team.base.open().topics()
        if step % 2:
            assert said(some) == fresh, step


def test_it_follows_several_sources(team: Team, payments: Team) -> None:
    publish(team, A)
    publish(payments, B, source="payments")
    replica = team.replica()
    for own, theirs in ((B, A), (A, C), (C, B), (C_AND_D, EDITED), (A, A)):
        publish(team, own)
        publish(payments, theirs, source="payments")
        assert said(replica) == said(team.replica())


def test_only_what_changed_is_loaded_after_a_revert(team: Team) -> None:
    """What is in memory already is not loaded again, and neither is what a copy was made of."""
    publish(team, A)
    replica = team.replica()
    publish(team, B)
    replica.search("badger")
    asked: list[str] = []
    request = team.connection.request

    def noted(method: str, path: str, body: object, *rest: object, **more: object) -> object:
        if isinstance(body, bytes) and b'"gt": ' in body:
            asked.append(body.decode().partition('"gt": ')[2].partition("}")[0])
        return request(method, path, body, *rest, **more)  # type: ignore[arg-type]

    team.connection.request = noted  # type: ignore[method-assign,assignment]
    publish(team, A)
    assert not replica.search("badger")["results"]
    assert asked == []
    publish(team, C)
    assert replica.search("civet")["results"]
    assert set(asked) == {"0"}


def test_a_commit_that_is_published_again_says_since_when(team: Team) -> None:
    publish(team, PAGES)
    replica = team.replica()
    publish(team, A)
    replica.search("apple")
    publish(team, PAGES)
    replica.search("rollback")
    fresh = team.replica()
    fresh.search("rollback")
    assert replica.info()["published"] == fresh.info()["published"]  # type: ignore[typeddict-item]
