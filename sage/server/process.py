"""What a serving process sets up about itself: its environment, its memory, its open files."""

import ctypes
import gc
import logging
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

# From glibc's malloc.h.
_M_ARENA_MAX = -8


def isolate_fastmcp(environment: MutableMapping[str, str] = os.environ) -> None:
    """Keep FastMCP from taking settings out of the surroundings; call it before its import.

    FastMCP reads its settings when it is imported. Left alone, a `.env` in whatever directory a
    host starts us in, or a stray variable, turns the server into another one or keeps it from
    starting.
    """
    for name in [name for name in environment if name.startswith("FASTMCP_")]:
        del environment[name]
    environment["FASTMCP_ENV_FILE"] = os.devnull
    environment["FASTMCP_LOG_ENABLED"] = "false"
    environment["FASTMCP_CHECK_FOR_UPDATES"] = "off"
    try:
        Path.home()
    except RuntimeError:
        # It also wants a home folder to exist, which the user of a container may not have.
        environment["HOME"] = os.sep


def is_isolated(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Whether FastMCP was, or will be, imported without the settings of its surroundings."""
    return environment.get("FASTMCP_ENV_FILE") == os.devnull


def set_log_level(level: str) -> None:
    """Log our own lines from a level on, and of libraries only what goes wrong in them.

    Below that, libraries repeat what was asked: at `debug` word for word. FastMCP also has a
    traceback for every unknown resource, and asyncio a line for every client that went away.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger().setLevel(max(number, logging.WARNING))
    logging.getLogger("sage").setLevel(number)
    logging.getLogger("fastmcp").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(max(number, logging.ERROR))


def keep_one_arena() -> bool:
    """Have all threads allocate from one arena; whether the C library has arenas to limit.

    glibc gives each thread its own, and what a dozen of them leave half empty adds up: a server
    that followed an edit every second grew by 11 % in a quarter of an hour, and with one arena
    by 2 %. Python runs one thread at a time, so they do not wait for each other.
    """
    if sys.platform != "linux":
        return False
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    return change is not None and bool(change(_M_ARENA_MAX, 1))


def give_back_memory() -> bool:
    """Return what was freed to the system; whether the C library can.

    After a build of 26,000 pages two thirds of the process was memory that nothing used.
    """
    if sys.platform != "linux":
        return False
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))


def set_aside() -> None:
    """Let the garbage collector look no more at what there is now, which stays until the end.

    While it looks nobody is answered: over an index of 3 MB of pages for up to a tenth of a second.
    """
    gc.collect()
    gc.freeze()


def raise_file_limit() -> None:
    """Ask for more open files: a connection is one, and many systems allow 1,024 unless asked."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
