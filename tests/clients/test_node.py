"""The clients that hosts written in TypeScript are built on, and one such host, over stdio."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.processes import (
    PATIENCE_SECONDS,
    clean_environment,
    give_up,
    serve_command,
    write_base,
)

CLIENTS = Path(__file__).parent


def npm_install(folder: Path, *options: str) -> None:
    """Install the locked packages, once; without them the tests are skipped, but never in CI."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        give_up("node and npm are needed for the TypeScript clients")
    if (folder / "node_modules").is_dir():
        return
    command = ["npm", "ci", "--no-audit", "--no-fund", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=600, check=False)
    if done.returncode:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        give_up(f"npm could not install {folder.name}: {done.stderr.decode()[-500:]}")


@pytest.fixture(scope="module")
def typescript() -> Path:
    npm_install(CLIENTS, "--ignore-scripts")
    return CLIENTS / "client.mjs"


def converse(script: Path, flavour: str, root: Path) -> Mapping[str, Any]:
    done = subprocess.run(
        ["node", str(script), flavour, *serve_command(root)],
        env=clean_environment(root),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize(
    ("flavour", "version"),
    [("sdk1", "2025-11-25"), ("sdk2", "2025-11-25"), ("sdk2-auto", "2026-07-28")],
)
def test_a_conversation(typescript: Path, tmp_path: Path, flavour: str, version: str) -> None:
    report = converse(typescript, flavour, write_base(tmp_path))
    assert report["version"] == version
    assert report["failures"] == []
    assert report["server"]["name"] == "sage"
    assert len(report["tools"]) == len(report["calls"]) == 4
    for answer in report["calls"].values():
        assert not answer["isError"]
        assert json.loads(answer["text"]) == answer["structuredContent"]
    assert report["refusal"]["text"].startswith("INVALID_INPUT: limit must be")
    assert "knowledge://practices/go/errors" in report["resources"]
    assert report["page"]["mimeType"] == "text/markdown"
    assert report["prompt"] == 1
    assert report["completion"] == ["testing"]


def claude_command() -> str:
    """Claude Code's own command: the one on the PATH, or in CI the locked package."""
    found = shutil.which("claude")
    if found:
        return found
    if not os.environ.get("CI"):
        pytest.skip("UNTESTED: claude is not on the PATH")
    # Its install script puts the program for this machine in the place of a dummy.
    npm_install(CLIENTS / "claude-code")
    return str(CLIENTS / "claude-code" / "node_modules" / ".bin" / "claude")


def test_claude_code_connects(tmp_path: Path) -> None:
    claude = claude_command()
    home, root = tmp_path / "home", write_base(tmp_path)
    home.mkdir()
    environment = clean_environment(root, HOME=str(home))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [claude, "mcp", *arguments],
            cwd=home,
            env=environment,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        return done.stdout.decode()

    run("add", "--scope", "user", "sage", "--", *serve_command(root))
    assert "Connected" in run("list")
