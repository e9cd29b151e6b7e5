"""Layers that lie anywhere in the repository."""

import os
import re

import pytest

from sage.deadline import no_deadline
from sage.documents.places import Places
from sage.errors import ConfigError, NotFound
from sage.knowledge import KnowledgeBase
from tests.conftest import Base

MAPPED = """
layers:
  core: [AGENTS.md]
  guidelines: [docs/guides, docs/adr]
  practices: [docs]
  skills: ["**/SKILL.md"]
  own:
"""
FILES = {
    "AGENTS.md": "# Agents\n\nRead me.\n",
    "docs/index.md": "# Docs\n",
    "docs/howto.mdx": "# How to\n\nA zebra.\n",
    "docs/guides/index.md": "# Guides\n",
    "docs/guides/retries.md": "# Retries\n\n## Limits\n\nSee [adr](../adr/0001-use-x.md).\n",
    "docs/adr/0001-use-x.md": "# Use X\n",
    "docs/picture.png": "png",
    "tools/a/SKILL.md": "# Skill A\n",
    "node_modules/b/SKILL.md": "# Not ours\n",
    "src/notes.md": "# Not named\n",
    ".knowledge/own/page.md": "# Own\n",
}


def put(base: Base, files: dict[str, str], config: str = MAPPED) -> KnowledgeBase:
    for path, text in {**files, "sage.yaml": config}.items():
        target = base.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return base.open()


def topics(knowledge: KnowledgeBase) -> dict[str, str]:
    return {one.topic: one.path for one in knowledge.documents()}


def test_layers_are_served_from_where_they_are_mapped_to(base: Base) -> None:
    assert topics(put(base, FILES)) == {
        "core/AGENTS": "AGENTS.md",
        "guidelines/guides/index": "docs/guides/index.md",
        "guidelines/guides/retries": "docs/guides/retries.md",
        "guidelines/adr/0001-use-x": "docs/adr/0001-use-x.md",
        "practices/index": "docs/index.md",
        "practices/howto": "docs/howto.mdx",
        "skills/tools/a/SKILL": "tools/a/SKILL.md",
        "own/page": ".knowledge/own/page.md",
    }


@pytest.mark.parametrize(
    "topic",
    [
        "guidelines/guides/retries",
        "retries",
        "docs/guides/retries.md",
        "../guides/retries.md",
        "/docs/guides/retries/",
        "docs/guides/retries.md#limits",
    ],
)
def test_mapped_page_is_named_by_topic_path_and_link(base: Base, topic: str) -> None:
    content = put(base, FILES).get("all", topic)["content"]
    assert re.match(r"<!-- docs/guides/retries\.md(:3-5)? -->", content)


def test_mapped_pages_are_searched_with_their_real_paths(base: Base) -> None:
    results = put(base, FILES).search("zebra")["results"]
    assert [(one["path"], one["topic"]) for one in results] == [
        ("docs/howto.mdx", "practices/howto")
    ]


def test_repository_without_knowledge_folder_is_served(base: Base) -> None:
    base.path("").rmdir()
    knowledge = put(base, {"docs/a.md": "# A\n"}, "layers: {practices: docs}")
    assert topics(knowledge) == {"practices/a": "docs/a.md"}
    assert knowledge.info()["status"] == "healthy"


def test_edit_is_seen_by_the_next_call(base: Base) -> None:
    knowledge = put(base, FILES)
    assert knowledge.search("giraffe")["total"] == 0
    (base.root / "docs/new.md").write_text("# New\n\nA giraffe.\n")
    assert knowledge.search("giraffe")["total"] == 1
    (base.root / "docs/new.md").unlink()
    assert knowledge.search("giraffe")["total"] == 0


def test_nothing_outside_the_repository_is_reached_through_a_mapped_folder(
    base: Base, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.md").write_text("# Secret canary\n")
    knowledge = put(base, FILES)
    os.symlink(outside / "secret.md", base.root / "docs/link.md")
    os.symlink(outside, base.root / "docs/folder")
    (base.root / ".git").mkdir()
    (base.root / ".git/hidden.md").write_text("# Hidden canary\n")
    os.symlink("../.git/hidden.md", base.root / "docs/hidden.md")
    assert knowledge.search("canary")["total"] == 0
    for topic in (
        "link",
        "hidden",
        "docs/../../outside/secret.md",
        "folder/secret",
        "docs/link.md",
    ):
        with pytest.raises(NotFound):
            knowledge.get("all", topic)
    assert knowledge.info()["problems"]["count"] == 3


def test_folder_swapped_for_a_link_is_not_followed(
    base: Base, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "retries.md").write_text("# Secret canary\n")
    knowledge = put(base, FILES)
    files = knowledge.library.refresh(["guidelines"], no_deadline())[0].files
    (base.root / "docs/guides").rename(base.root / "docs/old")
    os.symlink(outside, base.root / "docs/guides")
    source = next(one for one in files if one.path.endswith("retries.md"))
    assert knowledge.library.load(source, no_deadline()) is None


def test_ignore_patterns_hold_in_mapped_folders(base: Base) -> None:
    knowledge = put(base, FILES, MAPPED + "ignore: [docs/adr, '*.mdx']\n")
    assert not {"docs/adr/0001-use-x.md", "docs/howto.mdx"} & set(topics(knowledge).values())


def test_mapped_folder_that_is_missing_is_reported(base: Base) -> None:
    info = put(base, {"docs/a.md": "x"}, "layers: {core: [docs, gone]}").info()
    assert info["problems"]["first"] == [
        {"path": "gone", "what": "sage.yaml maps core to it; it is not there"}
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "/etc",
        "../other",
        "docs/../../x",
        "~/notes",
        "C:\\x",
        ".git",
        ".git/hooks",
        "docs/.ssh",
        "a" * 300,
        "*" * 20,
        "{a: b}",
        "7",
    ],
)
def test_place_outside_the_repository_is_refused(base: Base, entry: str) -> None:
    with pytest.raises(ConfigError, match=r"layers\.core"):
        put(base, {}, f"layers: {{core: [{entry if entry in ('{a: b}', '7') else repr(entry)}]}}")


def test_page_of_two_layers_belongs_to_the_closer_one() -> None:
    places = Places(("a", "b"), {"a": ("docs",), "b": ("docs/x", "docs/y.md")})
    for path, layer in (("docs/x/1.md", "b"), ("docs/y.md", "b"), ("docs/z.md", "a")):
        owners = [one for one in "ab" if (places.of_layer(one).address or str)(path)]
        assert owners == [layer]
