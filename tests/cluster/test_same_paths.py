"""Pages of two sources that have the same path: none stands in for the other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sage.knowledge import KnowledgeBase
from tests.cluster.conftest import Team, beside

PATH = "payments/docs/practices/retries.md"
OWN_PAGE = "# Retries\n\nThe quokka of the repository retries calls.\n"
PAYMENTS_PAGE = "# Retries\n\nThe marmot of payments retries calls.\n{}"


def seen_by(knowledge: KnowledgeBase, *sources: str) -> KnowledgeBase:
    """The same for somebody who may see some sources."""
    narrowed = replace(knowledge.settings, is_narrowed=True, seen_sources=sources)
    return knowledge.narrowed(narrowed)


def answers(knowledge: KnowledgeBase) -> list[Any]:
    """What tools say, without the time that it took."""
    said: list[Any] = [knowledge.search(one)["results"] for one in ("marmot", "quokka", "retries")]
    said.append(knowledge.context("coding", task="retries of a marmot")["context"])
    said.append(knowledge.get("all", "retries#retries")["content"])
    return said


@pytest.fixture(params=["", "\n## Two\n\nMore words about it.\n"])
def replica(request: pytest.FixtureRequest, team: Team, tmp_path: Path) -> KnowledgeBase:
    """One of a base in which the folder of a source is called as another source is."""
    root, other = team.base.root, beside(team, tmp_path / "payments")
    (root / "sage.yaml").write_text(f"layers: {{practices: {Path(PATH).parent.as_posix()}}}\n")
    (root / PATH).parent.mkdir(parents=True)
    (root / PATH).write_text(OWN_PAGE)
    team.publish()
    (other.base.root / "sage.yaml").write_text("layers: {practices: docs/practices}\n")
    page = other.base.root / PATH.removeprefix("payments/")
    page.parent.mkdir(parents=True)
    page.write_text(PAYMENTS_PAGE.format(request.param))
    other.publish(source="payments")
    return team.replica()


@pytest.mark.parametrize("source", ["own", "payments"])
def test_what_others_asked_for_changes_nothing(
    replica: KnowledgeBase, team: Team, source: str
) -> None:
    before = answers(seen_by(team.replica(), source))
    answers(replica)
    assert answers(seen_by(replica, source)) == before
    assert ("marmot" in str(before), "quokka" in str(before)) == (
        source == "payments",
        source == "own",
    )


def test_no_page_is_lost_between_two_parts_of_a_list(
    replica: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.cluster.reader._PATHS", 1)
    assert replica.search("retries", sort="path")["results"]


def test_whoever_sees_both_gets_whole_pages(replica: KnowledgeBase) -> None:
    found = str(replica.search("retries", max_tokens=2_000)["results"])
    assert ("marmot of payments" in found) != ("quokka of the repository" in found)
