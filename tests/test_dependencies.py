"""What SAGE depends on is bounded, pinned where it is tested, and has its reason written down."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sage"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NEEDED: list[str] = PROJECT["dependencies"]
OPTIONAL: list[str] = [one for group in PROJECT["optional-dependencies"].values() for one in group]
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[\w+\])?(?P<bound>.*)")


def parts(requirement: str) -> tuple[str, str]:
    match = _REQUIREMENT.fullmatch(requirement)
    assert match, requirement
    return match["name"], match["bound"]


def reasons() -> dict[str, str]:
    """The bound of each package in the tables of the decisions."""
    text = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    found: dict[str, str] = {}
    for names, bounds in re.findall(r"^\| ([\w, -]+) \| ([^|]+) \| [^|]+ \|$", text, re.MULTILINE):
        found |= zip(names.split(", "), re.split(r", (?=`|any)", bounds), strict=False)
    return found


@pytest.mark.parametrize("requirement", NEEDED + OPTIONAL)
def test_a_dependency_has_its_bound_and_reason_written_down(requirement: str) -> None:
    name, bound = parts(requirement)
    assert reasons().get(name) == (f"`{bound}`" if bound else "any")


@pytest.mark.parametrize("requirement", NEEDED)
def test_what_users_install_is_bounded_on_both_sides(requirement: str) -> None:
    _, bound = parts(requirement)
    assert re.fullmatch(r"==[\d.]+|>=[\d.]+,<[\d.]+", bound)


@pytest.mark.parametrize("requirement", NEEDED)
def test_what_users_install_is_tested_at_a_known_version(requirement: str) -> None:
    pinned = (ROOT / "constraints.txt").read_text("utf-8").lower()
    assert re.search(rf"^{re.escape(parts(requirement)[0])}==", pinned, re.MULTILINE)


def imported_packages() -> set[str]:
    """The top-level name of everything that the package imports, wherever in it."""
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).split(".")[0])
    return names - {"sage"} - sys.stdlib_module_names


def offering(package: str) -> set[str]:
    """The distributions a package may come from: fastmcp only brings fastmcp-slim along."""
    return {name.lower() for name in packages_distributions().get(package, [])} | {package}


@pytest.mark.parametrize("package", sorted(imported_packages()))
def test_what_is_imported_is_declared(package: str) -> None:
    declared = {parts(one)[0].lower() for one in NEEDED + OPTIONAL}
    assert offering(package) & declared, f"pyproject names none of {offering(package)}"


def test_what_users_install_is_imported() -> None:
    offered = {name for package in imported_packages() for name in offering(package)}
    assert {parts(one)[0].lower() for one in NEEDED} - offered == set()
