"""What the documentation says is what happens: commands run, pages are generated, links resolve."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import FOLDER, pages
from sage.documents.document import parse_document
from tests.processes import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^(```+).*?^\1\s*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == pages()[name], "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_ours_that_is_named_exists(page: Path) -> None:
    for name in re.findall(r"`((?:tests|benchmarks)/[\w./-]*)`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", _text("docs/tutorial.md"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    script = "set -eu\n" + "\n".join(blocks)
    done = _shell(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Restore the column first" in done.stdout
    assert "2 queries: hit rate 1.000" in done.stdout


def test_every_command_of_the_readme_is_known(tmp_path: Path) -> None:
    known = _shell("sage --help", tmp_path).stdout
    commands = set(re.findall(r"^(?:\$ )?sage (\w+)", _text("README.md"), re.MULTILINE))
    assert commands
    assert [name for name in commands if not re.search(rf"\b{name}\b", known)] == []


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _anchors(page: Path) -> set[str]:
    document = parse_document(page.read_text("utf-8"), page.name, "docs")
    return {section.anchor for section in document.sections}


def _shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "SAGE_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "120",
    }
    (folder / "home").mkdir(exist_ok=True)
    return subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_every_journey_of_the_architecture_leads_through_files_that_exist() -> None:
    page = ROOT / "docs" / "architecture.md"
    journeys = [line for line in page.read_text("utf-8").splitlines() if " → [" in line]
    assert len(journeys) == 7
    for journey in journeys:
        for shown, link in re.findall(r"\[`([\w/]+)`\]\(([^)]+)\)", journey):
            assert (page.parent / link).is_file(), link
            assert link == f"../sage/{shown}.py"


def test_every_test_that_security_names_exists() -> None:
    """A way in that is said to be closed has a test of that name, in that file."""
    text = (FOLDER / "security.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 40
    root = FOLDER.parent
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"\ndef {test}(" not in (root / file).read_text("utf-8")
    ]
    assert missing == []
