"""`sage serve` as a real process on pipes, and the few lines of protocol that tests speak to it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

PATIENCE_SECONDS = 300
REPOSITORY = Path(__file__).parent.parent
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


# What every request of a client of 2026-07-28 carries, in place of a handshake.
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def serve_command(root: Path) -> list[str]:
    """The command that a client's configuration holds."""
    return [sys.executable, "-m", "sage", "serve", "--root", str(root)]


def cache_of(root: Path) -> Path:
    """The cache folder of a root: beside it, as one within a repository is refused."""
    return root.with_name(f"{root.name}-cache")


def clean_environment(root: Path, **more: str) -> dict[str, str]:
    """The variables of this process without anything that steers SAGE."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAGE_")}
    return {
        **kept,
        "PYTHONPATH": str(REPOSITORY),
        "SAGE_CACHE_DIR": str(cache_of(root)),
        **more,
    }


class Process:
    """A server process spoken to line by line."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.popen = popen
        self.meta: dict[str, Any] = {}
        self._id = 0

    def greet(self) -> dict[str, Any]:
        """Do the handshake of a host."""
        result: dict[str, Any] = self.request("initialize", INITIALIZE)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool."""
        params = {"name": tool, "arguments": arguments}
        result: dict[str, Any] = self.request("tools/call", params)["result"]
        return result

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._id += 1
        params = {**params, "_meta": self.meta} if self.meta else params
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self._id:
                return message

    def send(self, message: object) -> None:
        """Send one message."""
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        """Send one line, whatever it holds."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(line + b"\n")
        self.popen.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message; stdout holds nothing else, or this fails."""
        message: dict[str, Any] = json.loads(self.receive_line())
        assert message["jsonrpc"] == "2.0"
        return message

    def receive_line(self) -> bytes:
        """The next line."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line, f"the server ended: {self.errors()}"
        return line

    def errors(self) -> str:
        """What was written to stderr, after the end."""
        assert self.popen.stderr is not None
        return self.popen.stderr.read().decode()

    def hang_up(self) -> int:
        """Close the client's end and wait for the exit code."""
        assert self.popen.stdin is not None
        self.popen.stdin.close()
        return self.popen.wait(PATIENCE_SECONDS)


@contextmanager
def serving(root: Path, cwd: Path | None = None, **environment: str) -> Iterator[Process]:
    """A server of a root, ended when the test is over."""
    popen = subprocess.Popen(
        serve_command(root),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd or root,
        env=clean_environment(root, **environment),
    )
    # A test that waits for an answer in vain fails instead of waiting for ever.
    last = threading.Timer(PATIENCE_SECONDS, popen.kill)
    last.start()
    with popen:
        try:
            yield Process(popen)
        finally:
            last.cancel()
            popen.kill()


def write_base(folder: Path) -> Path:
    """A repository with a small knowledge base; its path."""
    pages = {
        "core/principles.md": "# Principles\n\nClarity first.\n\n## Reversible\n\nÜber alles 🎉\n",
        "practices/testing.md": (
            "---\ntitle: How we test\nsummary: Real files, no mocks.\nlanguages: [python]\n---\n"
            "# How we test\n\nEvery test runs in a temporary folder.\n\n"
            "## Fixtures\n\nFixtures build real files.\n"
        ),
        "practices/go/errors.md": "---\nlanguages: [go]\n---\n# Errors in Go\n\nWrap them.\n",
        "guidelines/naming.md": "# Naming\n\nFunctions are verbs.\n",
    }
    root = folder / "repository"
    for path, text in pages.items():
        page = root / ".knowledge" / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
    return root


def give_up(reason: str) -> NoReturn:
    """What a test needs is not here: said aloud on a user's machine, a failure in CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(f"UNTESTED: {reason}")
