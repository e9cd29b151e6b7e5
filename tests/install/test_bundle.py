"""What is published beside the package: the bundle, the registry's file, the hook, their page."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sage import __version__
from sage.check.rules import rules
from sage.safe_yaml import load_yaml

REPOSITORY = Path(__file__).parents[2]


def built(folder: Path) -> Path:
    command = [sys.executable, "-m", "docs.bundle", str(folder)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (bundle,) = folder.glob("*.mcpb")
    return bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("bundle"))


def manifest_of(bundle: Path) -> dict[str, Any]:
    with zipfile.ZipFile(bundle) as archive:
        tree: dict[str, Any] = json.loads(archive.read("manifest.json"))
    return tree


def test_the_bundle_holds_the_package_and_nothing_of_this_machine(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
    assert {"manifest.json", "pyproject.toml", "README.md", "LICENSE"} < names
    assert {"sage/__main__.py", "sage/templates/agents.md", "sage/py.typed"} < names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("/", "."))]
    assert len(manifest_of(bundle)["tools"]) == 4


def test_the_bundle_asks_for_the_root_and_passes_it_on(bundle: Path) -> None:
    manifest = manifest_of(bundle)
    assert manifest["version"] == __version__
    assert manifest["user_config"]["root"]["type"] == "directory"
    assert manifest["server"]["mcp_config"]["args"][-2:] == ["--root", "${user_config.root}"]
    assert manifest == json.loads(bundle.with_name("manifest.json").read_text("utf-8"))


def test_the_same_files_make_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    assert built(tmp_path).read_bytes() == bundle.read_bytes()


def test_the_registrys_file_agrees_with_the_package() -> None:
    server = json.loads((REPOSITORY / "server.json").read_text("utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert server["version"] == server["packages"][0]["version"] == __version__
    assert server["packages"][0]["identifier"] == project["name"]
    assert len(server["description"]) <= 100
    assert f"mcp-name: {server['name']} " in (REPOSITORY / "README.md").read_text("utf-8")


def test_the_hook_runs_a_command_that_exists() -> None:
    hooks = load_yaml((REPOSITORY / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert isinstance(hooks, list)
    assert [(hook["entry"], hook["pass_filenames"]) for hook in hooks] == [("sage check", False)]


def test_the_page_names_every_rule_with_its_level() -> None:
    page = (REPOSITORY / "docs" / "ci.md").read_text("utf-8")
    for rule in rules().values():
        if rule.level != "note":
            assert f"| `{rule.name}` | {rule.level} | {rule.about} |" in page
