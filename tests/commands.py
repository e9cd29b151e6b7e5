"""The `sage` command in this process, in a repository of its own: for the tests of commands."""

import os
import sys
from collections.abc import Callable

import pytest

from sage.cli.main import main
from tests.conftest import Base

FILES: dict[str, str | bytes] = {
    "core/principles.md": "# Principles\n\nSay why.\n\n## Small steps\n\nShip often. 设计 é\n",
    "practices/testing.md": "# Testing\n\nUse fixtures, not mocks.\n",
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(base: Base, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in the repository; its exit code and what it printed come back."""
    base.write(FILES)
    for name in [name for name in os.environ if name.startswith(("SAGE_", "CLAUDE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SAGE_CACHE_DIR", base.environment["SAGE_CACHE_DIR"])
    monkeypatch.chdir(base.root)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sage", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        printed = capsys.readouterr()
        assert isinstance(code, int)
        return code, printed.out, printed.err

    return run
