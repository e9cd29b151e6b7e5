"""Starting a server as a client does, and waiting for its answer to `initialize`.

The protocol is spoken by hand, line by line: nothing of the server's libraries is imported.
"""

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

TIMEOUT_SECONDS = 30.0
_GRACE_SECONDS = 3.0
# What a program that failed said at the end: the cause is rarely in the last line alone.
LAST_LINES = 3
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "sage-doctor", "version": "1"},
    },
}
# A program with windows does not inherit what the shell set up: it must work without.
_SHELL_ONLY = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SAGE_ROOT", "SAGE_CONFIG")


@dataclass(frozen=True, slots=True)
class Greeting:
    """Whether a server answered, and what, or why not."""

    is_ready: bool
    message: str


def greet(
    words: Sequence[str],
    variables: Mapping[str, str],
    timeout_seconds: float = TIMEOUT_SECONDS,
    folder: Path | None = None,
) -> Greeting:
    """Start a command and greet it; the process is over when this returns.

    Args:
        folder: where the client starts it; by default at the top of the file system, as programs
            with windows do.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        try:
            with _running(words, variables, errors, folder) as process:
                answer = _answer(process, timeout_seconds)
                code = process.poll()
                if answer is None:
                    process.terminate()  # what does not speak does not hang up either
        except OSError as error:
            return Greeting(False, f"{words[0]} cannot be started: {error.strerror or error}")
        if answer is None:
            return Greeting(False, _silence(code, timeout_seconds, errors))
    return _read(answer, time.monotonic() - started)


@contextlib.contextmanager
def _running(
    words: Sequence[str], variables: Mapping[str, str], errors: IO[bytes], folder: Path | None
) -> Iterator["subprocess.Popen[bytes]"]:
    kept = {name: value for name, value in os.environ.items() if name not in _SHELL_ONLY}
    process = subprocess.Popen(  # noqa: S603 - the command that the user registered
        list(words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=folder or Path.cwd().anchor,
        env={**kept, **variables},
    )
    with process:
        try:
            yield process
        finally:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Hang up as a client does; what does not end by itself is ended."""
    with contextlib.suppress(OSError):
        if process.stdin:
            process.stdin.close()
    for end in (process.terminate, process.kill):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
            return
        end()


def _answer(process: "subprocess.Popen[bytes]", timeout_seconds: float) -> object:
    """The first message with our id; None when none comes in time."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    if process.stdin is None or process.stdout is None:
        return None
    threading.Thread(target=_pass_on, args=(process.stdout, lines), daemon=True).start()
    with contextlib.suppress(OSError):  # it ended before it read: its silence tells
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
    deadline = time.monotonic() + timeout_seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            return None
        if not line:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
            return None
        message = _message(line)
        if message is None:
            return f"it prints {line[:60].decode('utf-8', 'replace')!r} where only messages may be"
        if message.get("id") == 1:
            return message
    return None


def _pass_on(stream: IO[bytes], lines: "queue.SimpleQueue[bytes]") -> None:
    # Closing the pipe at the end may come between two reads.
    with contextlib.suppress(OSError, ValueError):
        for line in iter(stream.readline, b""):
            lines.put(line)
    lines.put(b"")


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _read(answer: object, seconds: float) -> Greeting:
    if not isinstance(answer, dict):
        return Greeting(False, str(answer))
    if "error" in answer:
        return Greeting(False, f"it answered with an error: {answer['error']}")
    server = answer.get("result", {}).get("serverInfo", {})
    name = f"{server.get('name', 'a server')} {server.get('version', '')}".strip()
    return Greeting(True, f"starts and answers in {seconds:.1f} s ({name})")


def _silence(code: int | None, timeout_seconds: float, errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    said = f": {' | '.join(lines[-LAST_LINES:])}" if lines else ""
    if code is None:
        return f"it did not answer within {timeout_seconds:.0f} s{said}"
    return f"it ended with exit code {code}{said}"
