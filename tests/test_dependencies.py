"""What SAGE depends on is bounded, pinned where it is tested, and has its reason written down."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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
    assert re.fullmatch(r"==[\d.]+|>=[\d.]+,<\d+", bound)


@pytest.mark.parametrize("requirement", NEEDED)
def test_what_users_install_is_tested_at_a_known_version(requirement: str) -> None:
    pinned = (ROOT / "constraints.txt").read_text("utf-8").lower()
    assert re.search(rf"^{re.escape(parts(requirement)[0])}==", pinned, re.MULTILINE)
