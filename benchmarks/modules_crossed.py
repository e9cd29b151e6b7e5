"""Which modules of the package one warm call over stdio crosses: a profiler in `sage serve`.

A module is crossed when any function of it runs between a request and its answer. The first calls
warm up and are not counted; the measured one asks something else, so that no cached answer hides
the way. `-v` lists the modules, each with the number of its calls. Needs signals (not Windows).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sage"
LIMIT_SECONDS = 300
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
TASKS = (
    "how do we write tests?",
    "add retries to the http client",
    "how is a release made?",
    "name a module and its errors",
    "where are settings read?",
)
"""All but the last warm up."""
JOURNEYS: dict[str, tuple[str, Callable[[str], dict[str, str]], int]] = {
    "search": ("sage_search", lambda task: {"query": task}, 20),
    "context": ("sage_get_context", lambda task: {"task_type": "coding", "task": task}, 35),
}
"""For each journey its tool, the arguments for a task, and the bar."""

# Runs in the server's process. A signal writes what was called since the last one.
PROBE = """
import collections, json, os, signal, sys, threading
calls = collections.Counter()
package, report = sys.argv[1], sys.argv[2]

def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        calls[frame.f_code.co_filename] += 1

def tell(*_):
    with open(report + ".new", "w") as file:
        json.dump(calls, file)
    calls.clear()
    os.replace(report + ".new", report)

signal.signal(signal.SIGUSR1, tell)
threading.setprofile(note)
sys.setprofile(note)
sys.argv = ["sage", "serve", "--root", sys.argv[3]]
from sage.cli.main import main
main()
"""


def main() -> int:
    """Print a line for each journey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true", help="list the modules")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (tool, arguments, bar) in JOURNEYS.items():
            counts = crossed(Path(folder), tool, [arguments(task) for task in TASKS])
            verdict = "ok" if len(counts) <= bar else "MISSED"
            print(f"a {name} crosses {len(counts)} modules  (<= {bar})  {verdict}")
            if chosen.verbose:
                for module, count in counts.most_common():
                    print(f"  {count:7}  {module}")
    return 0


def crossed(folder: Path, tool: str, calls: list[dict[str, str]]) -> Counter[str]:
    """How often each module was called into while the last call was answered."""
    report = folder / "calls.json"
    server = subprocess.Popen(
        [sys.executable, "-c", PROBE, f"{PACKAGE}{os.sep}", str(report), str(ROOT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SAGE_CACHE_DIR": str(folder / "cache")},
        text=True,
    )
    try:
        _request(server, 1, "initialize", INITIALIZE)
        _send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, arguments in enumerate(calls, start=2):
            _take(server, report)
            _request(server, number, "tools/call", {"name": tool, "arguments": arguments})
        counts = _take(server, report)
    finally:
        server.kill()
        server.communicate()
    return Counter({_module(name): count for name, count in counts.items()})


def _module(name: str) -> str:
    return Path(name).relative_to(PACKAGE).with_suffix("").as_posix()


def _request(
    server: "subprocess.Popen[str]", number: int, method: str, params: dict[str, Any]
) -> None:
    """Send a request and wait for its answer; an error is no measurement."""
    _send(server, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    assert server.stdout is not None
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            if "error" in message or message["result"].get("isError"):
                raise SystemExit(f"{method}: {line}")
            return
    raise SystemExit(f"the server ended before it answered {method}")


def _send(server: "subprocess.Popen[str]", message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()


def _take(server: "subprocess.Popen[str]", report: Path) -> dict[str, int]:
    """What was called since the last time."""
    server.send_signal(signal.SIGUSR1)
    ends = time.monotonic() + LIMIT_SECONDS
    while not report.exists():
        if time.monotonic() > ends:
            raise SystemExit("the server did not report its calls")
        time.sleep(0.01)
    calls: dict[str, int] = json.loads(report.read_text("utf-8"))
    report.unlink()
    return calls


if __name__ == "__main__":
    sys.exit(main())
