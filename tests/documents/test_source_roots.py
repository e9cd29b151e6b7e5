"""Pages of several sources: the nearer wins and says so, and nothing is read outside of one."""

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sage.deadline import no_deadline
from sage.errors import InvalidInput, NotFound
from sage.knowledge import KnowledgeBase
from sage.notes.changes import accepted
from sage.page_list import PageFilter, list_pages
from tests.conftest import Base
from tests.test_sources import put

OWN_PAGES = {
    "core/principles.md": "# Principles\n\nOur own rule: retry three times.\n",
    "practices/testing.md": "# Testing\n\nWe test with real files.\n",
}
THEIRS = {
    ".knowledge/core/Principles.md": "# Principles\n\nThe company's rule: never retry.\n",
    ".knowledge/core/naming.md": "# Naming\n\nNames are snake case, says the giraffe.\n",
    ".knowledge/security/keys.md": "# Keys\n\nRotate keys each quarter.\n",
    "sage.yaml": "layers: [core, security]\n",
}


@pytest.fixture(params=["inside", "outside"])
def company(request: pytest.FixtureRequest, base: Base) -> Path:
    """A source in a folder of the repository, and one elsewhere."""
    if request.param == "inside":
        base.write({"sage.yaml": "sources: {company: vendor/company}"})
        return put(base.root / "vendor/company", THEIRS)
    folder = put(base.root.parent / "company", THEIRS)
    base.environment["SAGE_SOURCES"] = f"company={folder}"
    return folder


def found(knowledge: KnowledgeBase, query: str) -> dict[str, Any]:
    return dict(knowledge.search(query)["results"][0])


def test_every_answer_tells_the_source(base: Base, company: Path) -> None:
    knowledge = base.open(OWN_PAGES)
    result = found(knowledge, "giraffe")
    assert (result["source"], result["topic"]) == ("company", "core/naming")
    assert (base.root / result["path"]).is_file() or result["path"].startswith("company:")
    assert found(knowledge, "real files")["source"] == "own"
    context = knowledge.context("coding", task="snake case names of the giraffe")
    assert {one["source"] for one in context["sources"]} >= {"company"}
    assert "company" in context["context"]
    sources = knowledge.info()["knowledge_base"]["sources"]
    assert [(one["name"], one["files"]) for one in sources] == [("own", 2), ("company", 2)]
    listed = list_pages(knowledge, "all", PageFilter(source="company"))
    assert [(one["topic"], one["source"]) for one in listed["pages"]] == [
        ("core/naming", "company"),
        ("security/keys", "company"),
    ]
    with pytest.raises(InvalidInput, match="there is no source 'compani'"):
        list_pages(knowledge, "all", PageFilter(source="compani"))


def test_the_nearer_of_two_pages_is_served_and_says_what_it_overrides(
    base: Base, company: Path
) -> None:
    knowledge = base.open(OWN_PAGES)
    answer = knowledge.search("principles retry")
    assert [(one["source"], one.get("overrides")) for one in answer["results"]] == [
        ("own", ["company"])
    ]
    read = knowledge.get("core", "principles")
    assert "three times" in read["content"]
    assert "never retry" not in read["content"]
    assert read["metadata"]["overrides"] == ["core/principles: company"]
    context = knowledge.context("coding", task="principles to retry")
    assert [one["overrides"] for one in context["sources"] if "overrides" in one] == [["company"]]
    assert knowledge.info()["knowledge_base"]["sources"][1]["overridden"] == 1
    base.path("core/principles.md").unlink()
    assert found(knowledge, "principles retry")["source"] == "company"
    assert "never retry" in knowledge.get("core", "principles")["content"]


def test_of_several_sources_the_first_named_is_nearest(base: Base, tmp_path: Path) -> None:
    for name in ("near", "far"):
        put(tmp_path / name, {".knowledge/core/a.md": f"# Page\n\nOf {name}.\n"})
    base.environment["SAGE_SOURCES"] = f"near={tmp_path}/near,far={tmp_path}/far"
    result = found(base.open(), "page")
    assert (result["source"], result["overrides"]) == ("near", ["far"])


def test_with_one_source_no_answer_speaks_of_sources(base: Base) -> None:
    knowledge = base.open(OWN_PAGES)
    assert "source" not in found(knowledge, "principles")
    assert "sources" not in knowledge.info()["knowledge_base"]
    assert "source" not in knowledge.context("coding", task="retry")["sources"][0]
    assert "source" not in list_pages(knowledge, "all", PageFilter())["pages"][0]


def test_an_edit_is_seen_by_the_next_call(base: Base, company: Path) -> None:
    knowledge = base.open(OWN_PAGES)
    assert knowledge.search("zebra")["total"] == 0
    page = company / ".knowledge/core/new.md"
    page.write_text("# New\n\nA zebra.\n")
    assert knowledge.search("zebra")["total"] == 1
    page.write_text("# New\n\nAn okapi now.\n")
    base.clock.tick(1)
    assert knowledge.search("zebra")["total"] == 0
    assert knowledge.search("okapi")["total"] == 1
    page.unlink()
    assert knowledge.search("okapi")["total"] == 0


def test_no_link_leaves_its_source(base: Base, company: Path, tmp_path: Path) -> None:
    put(tmp_path / "outside", {"secret.md": "# Secret canary\n"})
    base.write({"guidelines/private.md": "# Private canary of our own\n"})
    knowledge = base.open(OWN_PAGES)
    core = company / ".knowledge/core"
    os.symlink(tmp_path / "outside/secret.md", core / "link.md")
    os.symlink(tmp_path / "outside", core / "folder")
    os.symlink(base.path("guidelines/private.md"), core / "theirs.md")
    put(company, {".git/hidden.md": "# Hidden canary\n"})
    os.symlink("../../.git/hidden.md", core / "hidden.md")
    assert [one["source"] for one in knowledge.search("canary")["results"]] == ["own"]
    for topic in ("core/link", "core/folder/secret", "core/theirs", "core/hidden"):
        with pytest.raises(NotFound):
            knowledge.get("all", topic)
    assert knowledge.info()["problems"]["count"] == 4
    os.symlink("naming.md", core / "alias.md")
    assert "giraffe" in knowledge.get("all", "core/alias")["content"]


@pytest.mark.parametrize(
    "topic",
    [
        "company:../../etc/passwd",
        "company:/etc/passwd",
        "company:.knowledge/../../outside/secret.md",
        "../company/outside/secret",
        "vendor/company/../../../outside/secret.md",
        "company:outside/secret.md",
    ],
)
def test_no_topic_reaches_beyond_a_source(
    base: Base, company: Path, tmp_path: Path, topic: str
) -> None:
    put(tmp_path / "outside", {"secret.md": "# Secret canary\n"})
    put(company, {"outside/secret.md": "# Unserved canary\n"})
    with pytest.raises(NotFound):
        base.open(OWN_PAGES).get("all", topic)


@pytest.mark.parametrize("swapped", [".knowledge/core", ".knowledge", ""])
def test_a_folder_swapped_for_a_link_is_not_followed(
    base: Base, company: Path, tmp_path: Path, swapped: str
) -> None:
    put(tmp_path / "canary", {"naming.md": "# Secret canary\n"})
    put(tmp_path / "canary/core", {"naming.md": "# Secret canary\n"})
    put(tmp_path / "canary/.knowledge/core", {"naming.md": "# Secret canary\n"})
    knowledge = base.open(OWN_PAGES)
    files = knowledge.library.refresh(["core"], no_deadline())[0].files
    source = next(one for one in files if one.path.endswith("naming.md"))
    place = company / swapped if swapped else company
    place.rename(place.parent / "moved")
    os.symlink(tmp_path / "canary", place)
    assert knowledge.library.load(source, no_deadline()) is None
    assert knowledge.search("canary")["total"] == 0


def test_a_folder_above_a_source_swapped_for_a_link_is_not_followed(
    base: Base, tmp_path: Path
) -> None:
    base.write({"sage.yaml": "sources: {company: vendor/company}"})
    put(base.root / "vendor/company", THEIRS)
    put(tmp_path / "canary/company/.knowledge/core", {"naming.md": "# Secret canary\n"})
    knowledge = base.open(OWN_PAGES)
    source = knowledge.library.refresh(["core"], no_deadline())[0].files[-1]
    (base.root / "vendor").rename(base.root / "moved")
    os.symlink(tmp_path / "canary", base.root / "vendor")
    assert knowledge.library.load(source, no_deadline()) is None
    assert knowledge.search("canary")["total"] == 0


def test_hostile_files_of_a_source_are_reported_and_the_others_served(
    base: Base, company: Path
) -> None:
    core = company / ".knowledge/core"
    (core / "nul.md").write_bytes(b"# A\0canary\n")
    (core / "latin.md").write_bytes(b"# caf\xe9 canary\n")
    (core / "large.md").write_bytes(b"# canary\n" * 200_000)
    (core / "front.md").write_text("---\ntitle: [\n---\n# Front matter\n\nStill an okapi.\n")
    os.mkfifo(core / "pipe.md")
    knowledge = base.open(OWN_PAGES)
    assert knowledge.search("canary")["total"] == 0
    assert found(knowledge, "okapi")["source"] == "company"
    assert found(knowledge, "giraffe")["source"] == "company"
    paths = {
        problem["path"].rpartition("/")[2] for problem in knowledge.info()["problems"]["first"]
    }
    assert paths == {"nul.md", "latin.md", "large.md", "front.md", "pipe.md"}


def test_the_folder_of_a_source_is_not_served_as_our_own(base: Base) -> None:
    put(base.root / "libs/company", THEIRS)
    put(base.root, {"docs/a.md": "# Ours\n\nA page.\n"})
    base.write({"sage.yaml": "layers: {notes: .}\nsources: {company: libs/company}"})
    knowledge = base.open()
    pages = list_pages(knowledge, "all", PageFilter())["pages"]
    assert {(one["topic"], one["source"]) for one in pages} == {
        ("notes/docs/a", "own"),
        ("core/Principles", "company"),
        ("core/naming", "company"),
        ("security/keys", "company"),
    }


def test_a_folder_of_ours_cannot_pass_for_a_source(base: Base, tmp_path: Path) -> None:
    base.environment["SAGE_SOURCES"] = f"company={put(tmp_path / 'company', THEIRS)}"
    put(base.root / "company:.knowledge/core", {"naming.md": "# Canary\n"})
    base.write({"sage.yaml": "layers: {core: .}"})
    knowledge = base.open()
    assert knowledge.search("canary")["total"] == 0
    assert found(knowledge, "giraffe")["source"] == "company"


def test_a_page_of_a_source_is_only_read(base: Base, company: Path) -> None:
    knowledge = base.open(OWN_PAGES)
    page = next(one for one in knowledge.documents() if one.topic == "core/naming")
    with pytest.raises(InvalidInput, match="only read"):
        accepted(knowledge.settings, page, date(2027, 1, 1))


def test_a_layer_that_is_mapped_into_another_source_is_reported(base: Base) -> None:
    put(base.root / "vendor/company", THEIRS)
    base.write(
        {"sage.yaml": "sources: {company: vendor/company}\nlayers: {core: vendor/company}\n"}
    )
    knowledge = base.open({})
    listings = knowledge.library.refresh(knowledge.library.layers, no_deadline())
    problems = knowledge.library.problems(listings, no_deadline())
    assert "not-ours" in {one.rule for one in problems}
