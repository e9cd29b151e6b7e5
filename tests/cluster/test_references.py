"""What a source calls its pages means these pages, whatever other sources have."""

from pathlib import Path

import pytest

from sage.documents.front_matter import split_front_matter
from sage.publish.repository_pages import RepositoryPages, pages_of
from sage.values import OWN
from tests.cluster.conftest import Team, beside
from tests.conftest import Base

OLD = "---\ntitle: Old\nsuperseded_by: {}\n---\n# Old retries\n\nThe wombat retries for ever.\n"
RETRIES = "---\nid: n7k2m9\n---\n# Retry Policy\n\nThe numbat retries thrice.\n"
PAGES = {"practices/retries.md": RETRIES, "core/deep/clocks.md": "# Clocks\n\nTime.\n"}


def published(base: Base, written: str, name: str = "web-ui") -> RepositoryPages:
    base.write({**PAGES, "practices/old.md": OLD.format(written)})
    base.clock.tick(60)
    return pages_of(base.open(), name, "")


def successor(pages: RepositoryPages, path: str = "web-ui/.knowledge/practices/old.md") -> str:
    """What a page is published to be replaced by."""
    text = pages.by_path[path].data.decode()
    return split_front_matter(text, path).meta.superseded_by


@pytest.mark.parametrize(
    ("written", "topic"),
    [
        ("practices/retries", "practices/web-ui/retries"),
        ("retries", "practices/web-ui/retries"),
        ("retries.md", "practices/web-ui/retries"),
        ("./retries.md", "practices/web-ui/retries"),
        (".knowledge/practices/retries.md", "practices/web-ui/retries"),
        ("'practices/retries#retry-policy'", "practices/web-ui/retries#retry-policy"),
        ("Retry Policy", "practices/web-ui/retries"),
        ("n7k2m9", "practices/web-ui/retries"),
        ("../core/deep/clocks.md", "core/web-ui/deep/clocks"),
        ("clocks", "core/web-ui/deep/clocks"),
        ("practices/web-ui/retries", "practices/web-ui/retries"),
        ("practices/idem", "practices/idem"),
        ("old", "old"),
        ("https://example.com/practices/retries", "https://example.com/practices/retries"),
    ],
)
def test_the_successor_of_a_page_is_one_of_its_own_source(
    written: str, topic: str, base: Base
) -> None:
    assert successor(published(base, written)) == topic


def test_nothing_else_of_a_page_is_published_otherwise_than_it_is_written(base: Base) -> None:
    text = OLD.format("retries  # ours").replace("\n", "\r\n")
    base.write(PAGES)
    base.path("practices/old.md").write_bytes(text.encode())
    base.clock.tick(60)
    pages = pages_of(base.open(), "web-ui", "").by_path
    said = pages["web-ui/.knowledge/practices/old.md"].data.decode()
    assert said == text.replace("retries  #", "practices/web-ui/retries  #")
    page = pages["web-ui/.knowledge/practices/retries.md"]
    assert page.data == RETRIES.encode()


def test_the_pages_of_the_source_without_a_name_are_published_as_they_are(base: Base) -> None:
    pages = published(base, "retries", OWN)
    path = ".knowledge/practices/old.md"
    assert pages.by_path[path].data == base.path("practices/old.md").read_bytes()


def test_a_page_is_written_again_when_its_successor_moves(base: Base) -> None:
    path = "web-ui/.knowledge/practices/old.md"
    before = published(base, "clocks").by_path[path]
    base.path("core/deep/clocks.md").rename(base.path("core/clocks.md"))
    after = published(base, "clocks")
    assert successor(after) == "core/web-ui/clocks"
    assert after.by_path[path].hashed != before.hashed


@pytest.mark.parametrize(
    ("value", "newline"), [("'''retries'''", "\n"), ("'retries'", "\r")], ids=["form", "lines"]
)
def test_what_cannot_be_written_otherwise_is_told(value: str, newline: str, base: Base) -> None:
    page = f"+++\nsuperseded_by = {value}\n+++\n# Old\n".replace("\n", newline).encode()
    base.write(PAGES)
    base.path("practices/old.md").write_bytes(page)
    base.clock.tick(60)
    pages = pages_of(base.open(), "web-ui", "")
    (problem,) = pages.problems
    assert (problem.path, problem.rule) == (".knowledge/practices/old.md", "front-matter")
    assert "superseded_by is published as it is written, write the whole topic" in problem.message
    assert pages.by_path["web-ui/.knowledge/practices/old.md"].data == page


def test_a_replica_leads_to_the_pages_of_the_same_source(team: Team, tmp_path: Path) -> None:
    team.publish({"practices/retries.md": "# Retries\n\nThe quokka of the repository retries.\n"})
    other = beside(team, tmp_path / "web-ui")
    (other.base.root / "sage.yaml").write_text(
        "recipes: {payops: {always: [practices/idem#keys, retries.md]}}\n"
    )
    idem = {"practices/idem.md": "# Idem\n\nOnce.\n\n## Keys\n\nThe marmot has a key.\n"}
    old = {"practices/old.md": OLD.format("practices/retries")}
    other.publish({**PAGES, **idem, **old}, source="web-ui")
    replica = team.replica()
    read = replica.get("all", "practices/web-ui/old")["content"]
    assert "practices/web-ui/retries" in read
    (found,) = (
        one for one in replica.search("wombat")["results"] if one["topic"] == "practices/web-ui/old"
    )
    assert found["superseded_by"] == "practices/web-ui/retries"
    given = replica.context("coding", task="the wombat for ever")["sources"]
    assert [one["topic"] for one in given] == ["practices/web-ui/retries"]
    given = replica.context("payops")["sources"]
    always = {one["topic"] for one in given if "always for payops" in one["why"]}
    assert always == {"practices/web-ui/idem", "practices/web-ui/retries"}
