"""Sources: who may name which folder, and what is said of one that cannot be served."""

import os
from pathlib import Path

import pytest

from sage.errors import ConfigError
from sage.settings import Settings
from sage.sources import fault_of
from sage.values import OWN
from tests.conftest import Base


def configured(base: Base, config: str, **environment: str) -> Settings:
    base.write({"sage.yaml": config})
    base.environment |= environment
    return base.settings()


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_repository_names_its_own_folders_in_their_order(base: Base) -> None:
    put(base.root / "vendor/std", {".knowledge/core/a.md": "# A\n"})
    settings = configured(base, "sources:\n  std: vendor/std\n  more: {path: extra, layers: [new]}")
    assert [one.name for one in settings.served] == [OWN, "std", "more"]
    assert [one.place for one in settings.further] == [
        base.root / "vendor/std",
        base.root / "extra",
    ]
    assert settings.further[0].layers == ("core",)
    assert settings.layers == ("core", "guidelines", "frameworks", "practices", "new")
    assert settings.repository_layers == ("core", "guidelines", "frameworks", "practices")


@pytest.mark.parametrize(
    "entry",
    [
        "/etc",
        "../other",
        "~/notes",
        "a/../../b",
        "C:/x",
        ".git",
        "vendor/.git",
        "",
        "{layers: [core]}",
        "{path: 3}",
        "[a]",
        "3",
        "{path: a, layers: 3}",
        "{path: a, layers: {core: ../x}}",
        "{path: a, layers: [all]}",
        "{path: a, ignore: x}",
        "{path: a, order: 3}",
        ".",
    ],
)
def test_a_repository_cannot_name_what_lies_outside_or_makes_no_sense(
    base: Base, entry: str
) -> None:
    with pytest.raises(ConfigError):
        configured(base, f"sources:\n  std: {entry or chr(34) * 2}\n")


@pytest.mark.parametrize("name", ["own", "all", "a/b", "a:b", "'a b'", "x" * 41])
def test_a_name_that_cannot_be_one_is_refused(base: Base, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a source"):
        configured(base, f"sources:\n  {name}: vendor\n")


def test_a_link_out_of_the_repository_is_a_fault_and_no_way_out(base: Base, tmp_path: Path) -> None:
    put(tmp_path / "outside", {".knowledge/core/secret.md": "# Canary\n"})
    (base.root / "vendor").mkdir()
    os.symlink(tmp_path / "outside", base.root / "vendor/std")
    settings = configured(base, "sources: {std: vendor/std}")
    assert "leaves the repository" in fault_of(settings.further[0])
    assert base.open().search("canary")["total"] == 0


def test_whoever_runs_sage_names_any_folder(base: Base, tmp_path: Path) -> None:
    company = put(tmp_path / "company", {"docs/a.md": "# A\n"})
    (company / "sage.yaml").write_text("layers: {guides: docs}\nlog_level: debug\nignore: [b*]\n")
    config = tmp_path / "config/sage/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("sources: {mine: ../notes}\n")
    settings = configured(base, "{}", SAGE_SOURCES=f"company={company}, other = ../elsewhere")
    named = {one.name: one.place for one in settings.further}
    assert named == {
        "mine": tmp_path / "config/notes",
        "company": company,
        "other": tmp_path / "elsewhere",
    }
    assert settings.further[1].layer_paths == {"guides": ("docs",)}
    assert settings.further[1].ignore == ("b*",)
    assert settings.log_level == "warning"
    assert all(one.is_outside for one in settings.further)


def test_a_flag_names_a_source_again_and_wins(base: Base, tmp_path: Path) -> None:
    base.write({"sage.yaml": "sources: {std: vendor/std}"})
    settings = base.settings(sources=[f"std={tmp_path / 'elsewhere'}"])
    assert [one.place for one in settings.further] == [tmp_path / "elsewhere"]


@pytest.mark.parametrize("given", ["company", "=x", "company=", "a/b=c"])
def test_a_variable_of_another_form_is_refused(base: Base, given: str) -> None:
    with pytest.raises(ConfigError):
        configured(base, "{}", SAGE_SOURCES=given)


def test_one_folder_cannot_be_two_sources(base: Base) -> None:
    with pytest.raises(ConfigError, match="the same folder"):
        configured(base, "sources: {a: vendor, b: ./vendor/}")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "not there"),
        ({"README.md": "# R\n"}, "holds no .knowledge"),
        ({"sage.yaml": "layers: ["}, "sage.yaml"),
        ({"sage.yaml": "layers: {core: /etc}"}, "leaves the repository"),
        ({".knowledge/core/a.md": "# A\n", ".knowledge/sage.yaml": "layers: 3"}, "layers"),
        ({"sage.yaml": f"layers: {[f'l{number}' for number in range(51)]}"}, "at most 50"),
        ({"sage.yaml": f"layers: {{core: a}}\nignore: ['{'a*' * 60}']"}, "patterns of up to 100"),
        ({"sage.yaml": f"layers: {{core: a}}\nignore: {['x'] * 101}"}, "at most 100 patterns"),
    ],
)
def test_a_source_that_is_missing_or_broken_takes_nothing_else_down(
    base: Base, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    put(tmp_path / "company", files) if files else None
    base.write({"core/own.md": "# Own page\n\nWith words.\n"})
    base.environment["SAGE_SOURCES"] = f"company={tmp_path / 'company'}"
    knowledge = base.open()
    assert knowledge.search("words")["results"][0]["source"] == OWN
    info = knowledge.info()
    assert info["status"] == "degraded"
    assert "company" in info["reasons"][0]
    assert said in info["knowledge_base"]["sources"][1]["fault"]
    assert str(tmp_path) not in str(info)


def test_a_source_that_comes_and_goes_is_served_while_it_is_there(
    base: Base, tmp_path: Path
) -> None:
    base.environment["SAGE_SOURCES"] = f"company={tmp_path / 'company'}"
    knowledge = base.open({"core/own.md": "# Own\n"})
    assert knowledge.search("giraffe")["total"] == 0
    put(tmp_path / "company", {".knowledge/core/a.md": "# A giraffe\n"})
    assert knowledge.search("giraffe")["total"] == 1
    (tmp_path / "company").rename(tmp_path / "unmounted")
    assert knowledge.search("giraffe")["total"] == 0
    assert knowledge.search("own")["total"] == 1
