"""Runs `sage` with a witness: every file, socket and process it touches is written down.

`python -P recorder.py LOG ARGUMENTS`: one JSON list a line, the name of the event first. Files
opened beside a descriptor are told by where they really lie, which the kernel knows.
"""

import json
import os
import runpy
import sys
import threading
from typing import Any

WATCHED = (
    "open",
    "os.",
    "shutil.",
    "socket.",
    "subprocess.",
    "pty.",
    "ctypes.dlopen",
    "pickle.find_class",
    "sqlite3.connect",
    "tempfile.",
    "urllib.",
    "http.client",
    "mmap.",
)
# Raised for every look at the environment or a module; they touch nothing.
UNTOUCHING = ("os.putenv", "os.unsetenv", "os.walk", "os.fwalk", "socket.__new__")


class Witness:
    """Writes down what happens in this process."""

    def __init__(self, log: str) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._told = threading.local()
        self._open = os.open

    def watch(self) -> None:
        """From now on everything is written down."""
        sys.addaudithook(self.hear)
        os.open = self.opened
        os.supports_dir_fd.add(self.opened)

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        """An audit event of Python."""
        if event.startswith(WATCHED) and event not in UNTOUCHING:
            if event == "open" and getattr(self._told, "already", False):
                return
            self.write(event, *given)

    def opened(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        """`os.open`, and where the opened file really lies."""
        self._told.already = True
        try:
            descriptor = self._open(path, flags, *more, **named)
        except OSError:
            # Nothing was opened: a link in the way, or nothing there.
            self.write("refused", os.fspath(path), None, flags)
            raise
        finally:
            self._told.already = False
        self.write("open", os.readlink(f"/proc/self/fd/{descriptor}"), None, flags)
        return descriptor

    def write(self, *event: Any) -> None:
        """One line of the log."""
        line = json.dumps(event, default=str)
        os.write(self._log, line.encode() + b"\n")


if __name__ == "__main__":
    witness = Witness(sys.argv[1])
    sys.argv = ["sage", *sys.argv[2:]]
    witness.watch()
    runpy.run_module("sage", run_name="__main__", alter_sys=True)
