"""The process that serves one client on stdin and stdout, from its first byte to its end.

Stdout carries the protocol and nothing else: it is taken away from everybody before anything is
imported that could print. Signals and end of input end the process soon, whatever is stuck.
"""

import gc
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from sage.deadline import Deadline
from sage.errors import ConfigError
from sage.server.process import isolate_fastmcp, keep_one_arena, set_log_level
from sage.settings import Settings

if TYPE_CHECKING:
    import asyncio

    from sage.knowledge import KnowledgeBase

GREETING_MS = 5_000
# Running calls get a while to be answered (see `stdio_transport`); what still runs is left behind.
STOP_SECONDS = 1.75


def serve_stdio(settings: Settings) -> NoReturn:
    """Serve the knowledge base on stdin and stdout until the client goes or a signal comes.

    Raises:
        ConfigError: stdin or stdout is closed, or a recipe is wrong.
    """
    source, sink = claim_streams()
    by_hand = os.isatty(source)
    configure_logging(settings.log_level)
    shutdown = Shutdown()
    shutdown.listen_to_signals()
    keep_one_arena()
    isolate_fastmcp()
    # What is imported now lives as long as the process: to look for garbage in it is wasted time,
    # a twentieth of the start.
    gc.disable()

    from sage.context.recipes import load_recipes
    from sage.knowledge import open_knowledge

    load_recipes(settings)  # a wrong one is told before anything is said to a client
    logging.getLogger("sage.server").debug("serving %s on stdin and stdout", settings.root)
    knowledge = open_knowledge(settings)
    if by_hand:
        print(greeting(knowledge), file=sys.stderr)
    try:
        _serve(knowledge, source, sink, shutdown)
        knowledge.close()
    except Exception:  # the last place that can say why the process ends
        logging.getLogger("sage").exception("the server failed")
        shutdown.begin(1)
    shutdown.leave()


def _serve(knowledge: "KnowledgeBase", source: int, sink: int, shutdown: "Shutdown") -> None:
    import asyncio

    from sage.server.mcp_server import create_server, serve_transport
    from sage.server.stdio_transport import StdioTransport

    with asyncio.Runner() as runner:
        transport = StdioTransport(source, sink, on_end=shutdown.begin)
        shutdown.before_leaving(runner.get_loop(), transport.finish)
        server = create_server(knowledge)
        gc.freeze()
        gc.enable()
        runner.run(serve_transport(server, transport))


def claim_streams() -> tuple[int, int]:
    """Private descriptors for the protocol; whoever else prints goes to stderr, and reads nothing.

    Raises:
        ConfigError: stdin or stdout is closed.
    """
    if sys.stdin is None or sys.stdout is None:
        raise ConfigError("stdin or stdout is closed; the client that starts the server holds both")
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(nothing, 1)
    os.close(nothing)
    # What was printed before now leaves on the new way, and from now on line by line: the process
    # ends without asking anybody to flush.
    sys.stdout.flush()
    line_by_line = getattr(sys.stdout, "reconfigure", None)
    if line_by_line is not None:
        line_by_line(line_buffering=True)
    return source, sink


def configure_logging(level: str) -> None:
    """Log to stderr as UTF-8, from the given level on."""
    reconfigure = getattr(sys.stderr, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="backslashreplace")
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True)
    set_log_level(level)


class Shutdown:
    """How the process ends: in order if it can, and in any case soon."""

    def __init__(self) -> None:
        self._code = 0
        self._begun = threading.Lock()
        self._finish: Callable[[], object] | None = None

    def listen_to_signals(self) -> None:
        """Let the signals that ask a process to go end this one."""
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)

    def before_leaving(self, loop: "asyncio.AbstractEventLoop", finish: Callable[[], None]) -> None:
        """What a signal asks for, in the loop, so that running calls can still be answered."""
        self._finish = lambda: loop.call_soon_threadsafe(finish)

    def begin(self, code: int = 0) -> None:
        """Begin to end; from now on it cannot take longer than the limit."""
        if self._begun.acquire(blocking=False):
            self._code = code
            last = threading.Timer(STOP_SECONDS, self.leave)
            last.daemon = True
            last.start()

    def leave(self) -> NoReturn:
        """Leave now, without waiting for threads that may be stuck."""
        os._exit(self._code)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._finish is None or self._begun.locked():
            self._code = 128 + number
            self.leave()
        self.begin(128 + number)
        self._finish()


def greeting(knowledge: "KnowledgeBase") -> str:
    """What a person reads who starts the server by hand."""
    settings = knowledge.settings
    listings = knowledge.library.refresh(settings.layers, Deadline(GREETING_MS))
    layers = ", ".join(f"{listing.layer} {len(listing.files)}" for listing in listings)
    # Without -P a folder named sage where the client starts would be run instead of us.
    python = [sys.executable, "-P", "-m", "sage"]
    command = shlex.join([*python, "serve", "--root", str(settings.root)])
    return (
        f"SAGE serves {settings.root} (documents: {layers}).\n"
        "It speaks MCP on stdin and stdout and waits for a client; Ctrl-C ends it.\n"
        f"To connect one: claude mcp add sage -- {command}"
    )
