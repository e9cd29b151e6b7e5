"""The process that serves one client, from its first byte to its end."""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.processes import (
    INITIALIZE,
    PATIENCE_SECONDS,
    REPOSITORY,
    Process,
    cache_of,
    clean_environment,
    serve_command,
    serving,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small knowledge base."""
    core = tmp_path / "repository" / ".knowledge" / "core"
    core.mkdir(parents=True)
    (core / "principles.md").write_text("# Principles\n\nÜber alles: Klarheit 🎉\n", "utf-8")
    return core.parent.parent


def test_the_end_of_input_ends_the_server_in_silence(root: Path) -> None:
    with serving(root) as server:
        server.greet()
        assert server.hang_up() == 0
        assert server.errors() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_says_so_in_the_exit_code(
    root: Path, number: signal.Signals
) -> None:
    with serving(root) as server:
        server.greet()
        server.popen.send_signal(number)
        assert server.popen.wait(PATIENCE_SECONDS) == 128 + number
        assert server.errors() == ""


def test_a_signal_during_the_start_ends_it_too(root: Path) -> None:
    with serving(root) as server:
        server.popen.terminate()
        assert server.popen.wait(PATIENCE_SECONDS) in (-signal.SIGTERM, 128 + signal.SIGTERM)


def test_requests_piped_in_are_all_answered_before_the_end(root: Path) -> None:
    methods = ["tools/list", "prompts/list", "resources/templates/list", "ping", "tools/list"]
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}]
    lines += [
        {"jsonrpc": "2.0", "id": number, "method": method}
        for number, method in enumerate(methods, 1)
    ]
    done = subprocess.run(
        serve_command(root),
        input="\n".join(map(json.dumps, lines)).encode(),
        capture_output=True,
        env=clean_environment(root),
        cwd=root,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    answered = {json.loads(line)["id"] for line in done.stdout.splitlines()}
    assert answered == set(range(6))
    assert done.stderr == b""


def test_the_index_is_kept_for_the_next_start(root: Path) -> None:
    with serving(root) as server:
        server.greet()
        server.call("sage_search", {"query": "clarity"})
        assert server.hang_up() == 0
    assert any(path.is_file() for path in cache_of(root).rglob("*"))


def test_text_leaves_as_utf_8_whatever_the_locale(root: Path) -> None:
    with serving(root, LC_ALL="C", LANG="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii") as server:
        server.greet()
        asked = {"layer": "core", "timeout_ms": 60_000}
        content = server.call("sage_get_knowledge", asked)["structuredContent"]
        assert "Über alles: Klarheit 🎉" in content["content"]


def test_what_a_client_sends_comes_back_clean(root: Path) -> None:
    with serving(root) as server:
        server.greet()
        error = server.request("no\u202e/such\x1b[31m/method", {})["error"]
        assert error["code"] == -32601
        assert error["data"] == "no/such/method"


HOSTILE_ENV = {
    "transport": b"FASTMCP_TRANSPORT=http\nFASTMCP_PORT=1\nFASTMCP_LOG_LEVEL=nonsense\n",
    "not text": b"\xff\xfe\x00A=\xd8",
    "sage": b"SAGE_ROOT=/\nSAGE_LOG_LEVEL=debug\n",
}


@pytest.mark.parametrize("content", HOSTILE_ENV.values(), ids=HOSTILE_ENV.keys())
def test_a_hostile_env_file_changes_nothing(root: Path, content: bytes) -> None:
    (root / ".env").write_bytes(content)
    with serving(root) as server:
        assert server.greet()["serverInfo"]["name"] == "sage"
        assert server.hang_up() == 0
        assert server.errors() == ""


def test_hostile_variables_of_fastmcp_change_nothing(root: Path) -> None:
    with serving(
        root, FASTMCP_LOG_LEVEL="nonsense", FASTMCP_TRANSPORT="http", FASTMCP_PORT="x"
    ) as server:
        assert server.greet()["serverInfo"]["name"] == "sage"
        assert server.hang_up() == 0


NOISE = """
import builtins, os
real_import = builtins.__import__

def noisy_import(name, *rest, **more):
    if name == "fastmcp":
        builtins.__import__ = real_import
        print("noise of an import")
        os.write(1, b"raw noise\\n")
        os.system("echo noise of a child")
        os.system("cat")  # a child that reads must not get what the client sends
    return real_import(name, *rest, **more)

builtins.__import__ = noisy_import
"""


def test_whatever_prints_or_reads_does_not_touch_the_protocol(root: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    with serving(root, PYTHONPATH=path) as server:
        server.greet()
        assert server.hang_up() == 0
        errors = server.errors()
    for noise in ("noise of an import", "raw noise", "noise of a child"):
        assert noise in errors


def test_log_lines_go_to_stderr_with_their_level(root: Path) -> None:
    with serving(root, SAGE_LOG_LEVEL="debug") as server:
        server.greet()
        assert server.hang_up() == 0
        assert "DEBUG sage.server: serving" in server.errors()


def test_what_is_asked_is_logged_at_no_level(root: Path) -> None:
    with serving(root, SAGE_LOG_LEVEL="debug") as server:
        server.greet()
        server.call("sage_search", {"query": "okapi zebra"})
        server.call("sage_get_knowledge", {"layer": "core", "topic": "okapi"})
        assert server.hang_up() == 0
        assert "okapi" not in server.errors()


def test_verbose_is_for_a_server_on_stdio_too(root: Path) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    done = subprocess.run(
        [*serve_command(root), "--verbose"],
        input=ping,
        capture_output=True,
        env=clean_environment(root),
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert json.loads(done.stdout)["result"] == {}
    assert b"sage: root " in done.stderr


def test_started_by_hand_it_says_what_it_serves_and_how_to_connect(root: Path) -> None:
    pty = pytest.importorskip("pty", reason="UNTESTED: this system has no terminals")
    controller, terminal = pty.openpty()
    server = subprocess.Popen(
        serve_command(root),
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        env=clean_environment(root),
        cwd=root,
    )
    with server:
        os.close(terminal)
        assert server.stderr is not None
        said = b"".join(server.stderr.readline() for _ in range(3)).decode()
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_SECONDS) == 130
    os.close(controller)
    assert str(root) in said
    assert "core 1, guidelines 0" in said
    assert "waits for a client" in said
    assert f"sage serve --root {root}" in said


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_without_a_stream_it_says_what_is_wrong(root: Path, closed: str) -> None:
    command = shlex.join(serve_command(root))
    done = subprocess.run(
        ["sh", "-c", f"{command} {closed}"],
        capture_output=True,
        env=clean_environment(root),
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 4
    assert b"stdin or stdout is closed" in done.stderr


def test_a_wrong_recipe_ends_it_with_one_line(root: Path) -> None:
    (root / ".knowledge" / "sage.yaml").write_text("recipes: {onboarding: {extends: planning}}\n")
    done = subprocess.run(
        serve_command(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=clean_environment(root),
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"recipes.onboarding.extends" in done.stderr


def test_a_client_that_dies_takes_the_server_with_it(root: Path) -> None:
    with serving(root) as server:
        server.greet()
        assert server.popen.stdout is not None
        server.popen.stdout.close()
        server.send({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})
        assert server.popen.wait(PATIENCE_SECONDS) == 0


def flood(server: Process, count: int) -> None:
    for number in range(1000, 1000 + count):
        params = {"name": "sage_get_knowledge", "arguments": {"layer": "all", "topic": "x" * 300}}
        server.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def test_a_signal_ends_a_busy_server_soon(root: Path) -> None:
    with serving(root) as server:
        server.greet()
        flood(server, 150)
        server.popen.terminate()
        assert server.popen.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
