"""What `sage_info` says, from the first call on."""

import pytest

from sage.answers import InfoAnswer
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded
from sage.knowledge import KnowledgeBase
from tests.conftest import Base


def unserved(info: InfoAnswer) -> dict[tuple[str, str], int]:
    return {(one["folder"], one["reason"]): one["files"] for one in info.get("unserved", [])}


def sections(info: InfoAnswer) -> dict[str, int | None]:
    layers = info["knowledge_base"]["layers"]
    return {layer["name"]: layer.get("sections") for layer in layers if layer.get("files")}


def test_what_lies_beside_the_layers_is_counted_by_folder_and_reason(base: Base) -> None:
    info = base.open(
        {
            "core/a.md": "# A\n",
            "core/b.rst": "B",
            "core/sub/c.RST": "C",
            "core/picture.png": "p",
            "references/x.md": "# X\n",
            "references/deep/er/y.mdx": "# Y\n",
            "references/z.txt": "z",
            "loose.md": "# L\n",
            "sage.yaml": "",
            ".hidden/x.md": "x",
        }
    ).info()
    assert unserved(info) == {
        (".knowledge/references", "not a layer"): 2,
        (".knowledge/core", ".rst pages are not read"): 2,
        (".knowledge", "in no layer's folder"): 1,
    }
    assert info["status"] == "degraded"
    assert "not served: 2 pages in .knowledge/references (not a layer)" in info["reasons"]


def test_misspelt_layer_is_named(base: Base) -> None:
    info = base.open({"core/a.md": "x", "guideline/b.md": "# B\n"}).info()
    assert unserved(info) == {(".knowledge/guideline", "not a layer; did you mean guidelines?"): 1}


def test_what_was_ignored_on_purpose_is_not_told(base: Base) -> None:
    knowledge = base.open({"core/a.md": "x", "attic/b.md": "b"}, ignore=("attic",))
    assert unserved(knowledge.info()) == {}
    assert knowledge.info()["status"] == "healthy"


def test_layer_that_somebody_named_needs_a_folder(base: Base) -> None:
    info = base.open({"core/a.md": "x"}, layers=["core", "recipes"]).info()
    assert info["reasons"] == ["layers without a folder: recipes"]
    assert base.open({"core/a.md": "x"}).info()["reasons"] == []


def test_a_recipe_that_no_server_starts_with_is_named(base: Base) -> None:
    info = base.open({"core/a.md": "x"}, recipes={"onboarding": {"extends": "planning"}}).info()
    assert info["status"] == "degraded"
    assert "recipes.onboarding.extends: not a part of a recipe" in info["reasons"][0]


def test_sections_are_those_of_the_files_now(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# A\n", "core/b.md": "# B\n"})
    assert sections(knowledge.info()) == {"core": 2}
    knowledge.search("a")
    base.write({"core/a.md": "# A\n\n## One\n\n## Two\n", "practices/c.md": "# C\n"})
    assert sections(knowledge.info()) == {"core": 4, "practices": 1}
    base.path("core/b.md").unlink()
    assert sections(knowledge.info()) == {"core": 3, "practices": 1}


def test_index_that_nobody_needed_is_no_illness_and_has_no_numbers(base: Base) -> None:
    info = base.open({"core/a.md": "# A\n"}).info()
    assert info["index"] == {"state": "empty"}
    assert info["status"] == "healthy"


def test_index_that_is_being_built_says_how_far_it_is(base: Base) -> None:
    knowledge = base.open({f"core/{n}.md": f"# Page {n}\n" for n in range(10)})
    seen: list[InfoAnswer] = []

    def look(done: int, total: int) -> None:
        if done == total // 4:
            seen.append(knowledge.info())

    knowledge.warm(progress=look)
    assert seen[0]["status"] == "healthy"
    assert seen[0]["index"]["state"] == "building"
    assert seen[0]["index"]["progress"] == 0.25
    assert "sections" not in seen[0]["index"]
    assert knowledge.info()["index"]["sections"] == 10
    assert "progress" not in knowledge.info()["index"]


def test_numbers_that_are_not_known_in_time_are_left_out(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open({"core/a.md": "# A\n", "practices/b.md": "# B\n"})
    refresh = knowledge.library.refresh

    def slow(layers: tuple[str, ...], deadline: Deadline) -> object:
        if "practices" in layers:
            raise TimeoutExceeded("stuck")
        return refresh(layers, deadline)

    monkeypatch.setattr(knowledge.library, "refresh", slow)
    base_info = knowledge.info()["knowledge_base"]
    assert "content_files" not in base_info
    assert [layer.get("files") for layer in base_info["layers"]] == [1, 0, 0, None]
    assert "does not answer in time" in knowledge.info()["reasons"][0]


def test_pages_that_were_not_looked_at_are_counted(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open({f"core/{n}.md": "---\ntitle: [\n---\n" for n in range(5)})
    slow_down(knowledge, base, monkeypatch)
    info = knowledge.info(Deadline(1_000, base.clock))
    assert info["problems"]["count"] == 2
    assert info["problems"]["unread"] == 3
    assert knowledge.info(Deadline(60_000, base.clock))["problems"]["count"] > 2


def slow_down(knowledge: KnowledgeBase, base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every page take its time to load."""
    look_up = knowledge.library.look_up

    def slowly(*given: object) -> object:
        base.clock.tick(0.15)
        return look_up(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(knowledge.library, "look_up", slowly)
