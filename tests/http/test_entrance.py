"""What a server answers while it waits for what it serves."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.httpkit import Client
from tests.processes import PATIENCE_SECONDS, clean_environment


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a cluster that takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextlib.contextmanager
def waiting(folder: Path, *flags: str) -> Iterator[Client]:
    """A server that waits for its cluster."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "sage", "serve", "--http", "--port", str(port), *flags]
    with subprocess.Popen(
        command, env=clean_environment(folder), cwd=folder, stderr=subprocess.DEVNULL
    ) as process:
        try:
            client = Client(port)
            wait_until_alive(client)
            yield client
        finally:
            process.terminate()


def wait_until_alive(client: Client) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionError):
            assert client.get("/healthz").status == 200
            return
        time.sleep(0.05)
    raise AssertionError("it does not listen")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_waits_for_its_cluster_lives_and_is_not_ready(
    tmp_path: Path, silent: str, workers: str
) -> None:
    flags = ("--engine", "opensearch", "--url", silent, "--workers", workers)
    with waiting(tmp_path, *flags) as client:
        assert client.get("/healthz").body == b"ok\n"
        ready = client.get("/readyz")
        assert (ready.status, ready.json) == (503, {"ready": False})
        assert client.get("/healthz", host="evil.example").status == 421
        call = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert (call.status, call.headers["retry-after"]) == (503, "2")
        assert "is starting" in call.json["error"]["message"]
