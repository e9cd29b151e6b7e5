"""Compiles the shim that fails calls, and drives it from inside the process it is loaded into.

Every call that the interpreter makes to the C library passes the shim, so no way of opening or
writing a file is missed; `strace` shows no other file call in what is tested here. One process
makes thousands of trials, which starting one for each would not allow.
"""

import ctypes
import errno
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.processes import give_up

SHORT = 0
"""In place of an error: the call does a part of its work, as the system may do at any time."""

KILL = -1
"""In place of an error: the process ends on the spot."""

ERRORS = {
    "open": (errno.EIO, errno.EMFILE, errno.EACCES, errno.EINTR, errno.ENFILE, errno.ENOSPC),
    "read": (errno.EIO, SHORT, errno.EINTR, errno.EISDIR),
    "write": (errno.ENOSPC, SHORT, errno.EIO, errno.EINTR, errno.EROFS),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EINTR, errno.EROFS),
    "rename": (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS),
    "stat": (errno.EIO, errno.EACCES, errno.ENOMEM),
    "list": (errno.EIO, errno.EMFILE, errno.EACCES),
    "unlink": (errno.EROFS, errno.EIO, errno.EACCES),
    "mkdir": (errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EIO),
    "chmod": (errno.EROFS, errno.EACCES, errno.EIO),
    "dup": (errno.EMFILE,),
    "close": (errno.EIO, errno.ENOSPC),
    "readlink": (errno.EIO, errno.EACCES),
    "getcwd": (errno.ENOENT, errno.EACCES),
    "thread": (errno.EAGAIN,),
}
"""The errors that each kind of call can meet, the likeliest first."""


class Fault(NamedTuple):
    """One call that fails: the Nth of its kind, or all from there on."""

    kind: str
    nth: int
    error: int
    lasting: bool

    def __str__(self) -> str:
        what = {SHORT: "short", KILL: "killed"}.get(self.error) or errno.errorcode[self.error]
        return f"{self.kind} {self.nth}{' and all after it' if self.lasting else ''}: {what}"


class Injector:
    """The shim in this process."""

    def __init__(self) -> None:
        self._shim = ctypes.CDLL(None)
        self._shim.faults_name.restype = ctypes.c_char_p
        self._shim.faults_disarm.restype = self._shim.faults_count.restype = ctypes.c_long
        names = (self._shim.faults_name(number) for number in range(len(ERRORS)))
        self.numbers = {name.decode(): number for number, name in enumerate(names)}
        assert list(self.numbers) == list(ERRORS)

    def arm(self, fault: Fault) -> None:
        """From now on calls are counted, and this one fails."""
        number = self.numbers[fault.kind]
        self._shim.faults_arm(
            number, ctypes.c_long(fault.nth), fault.error, ctypes.c_int(fault.lasting)
        )

    def disarm(self) -> int:
        """Let everything through again; how many calls failed."""
        return int(self._shim.faults_disarm())

    def counts(self) -> dict[str, int]:
        """How many calls of each kind were made while it was armed."""
        return {kind: int(self._shim.faults_count(n)) for kind, n in self.numbers.items()}


def faults_of(kind: str, nth: int, thorough: bool) -> Iterator[Fault]:
    """The ways in which a call fails: with every error, or with each in turn as N grows."""
    errors = ERRORS[kind]
    once = errors if thorough else (errors[nth % len(errors)],)
    for error in once:
        yield Fault(kind, nth, error, False)
    # One interrupted for ever is tried for ever, by Python itself.
    lasting = [error for error in errors if error not in (errno.EINTR, SHORT)]
    for error in lasting if thorough else lasting[nth % len(lasting) :][: nth % 5 == 1]:
        yield Fault(kind, nth, error, True)


def compiled(folder: Path) -> Path:
    """The shim, or the end of the test where there is none to be had."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        give_up("faults are injected with a C compiler, on Linux")
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library
