"""The process that serves a team over HTTP, from its sockets to its end.

What it serves is put together in `serving`; how a connection behaves is in `connections`.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import NoReturn

import uvicorn

from sage import __version__
from sage.connections import MAX_HEAD_BYTES, bounded_protocol, sweep
from sage.errors import ConfigError
from sage.front import Front
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.logs import configure_json_logging
from sage.memory import keep_one_arena
from sage.serving import Door, HttpOptions, running_front
from sage.settings import Settings
from sage.tracing import Tracing, tracing_from

logger = logging.getLogger("sage.http")

BACKLOG = 2_048
# After the running calls had their time, what is stuck is left behind.
LAST_SECONDS = 2.0


def serve_http(settings: Settings, options: HttpOptions) -> NoReturn:
    """Serve the knowledge base over HTTP until a signal comes.

    Raises:
        ConfigError: it cannot be served, or not safely.
    """
    _raise_file_limit()
    keep_one_arena()
    sockets = bound_sockets(options.host, options.port)
    try:
        door = Door.at(addresses_of(sockets), options, settings)
        tracing = tracing_from(os.environ)
        configure_json_logging(settings.log_level)
        # The lines that say where it listens and that it ends are few, and always wanted.
        logger.setLevel(min(logging.INFO, logging.getLogger().level))

        def on_ready(server: "TeamServer") -> None:
            server.listen_to_signals()
            _tell(settings, options, sockets, door.doorkeeper.asks_for_nothing)
            # What was imported stays: the collector need not look at it again on every round.
            gc.collect()
            gc.freeze()

        knowledge = open_knowledge(settings)
        asyncio.run(serve_sockets(knowledge, options, door, sockets, on_ready, tracing))
    finally:
        for listening in sockets:
            listening.close()
    logger.info("ended")
    logging.shutdown()
    # A thread that is stuck in the file system must not hold up the end.
    os._exit(0)


async def serve_sockets(
    knowledge: KnowledgeBase,
    options: HttpOptions,
    door: Door,
    sockets: Sequence[socket.socket],
    on_ready: Callable[["TeamServer"], None],
    tracing: Tracing,
) -> None:
    """Serve on sockets until the server, which is handed over when it is ready, is told to end."""
    async with running_front(knowledge, options, door, tracing) as front:
        server = TeamServer(front, options)
        sweeping = asyncio.create_task(sweep(server, options.limits))
        on_ready(server)
        try:
            await server.serve(list(sockets))
        finally:
            sweeping.cancel()
    tracing.close()


def addresses_of(sockets: Sequence[socket.socket]) -> list[str]:
    """Where sockets are bound."""
    return [str(listening.getsockname()[0]) for listening in sockets]


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address of a host, all on one port.

    Raises:
        ConfigError: the host is unknown or the port is taken.
    """
    found: list[socket.socket] = []
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(addresses):
            # asyncio sends at once only on a socket that names its protocol; on any other, each
            # answer on a kept connection waited 40 ms for the client to acknowledge its head.
            listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            found.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = found[0].getsockname()[1] if len(found) > 1 else port
            listening.bind((address[0], chosen, *address[2:]))
            # Who connects from now on waits for the first answer and is not turned away.
            listening.listen(BACKLOG)
    except OSError as error:
        for listening in found:
            listening.close()
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return found


def _uvicorn_config(front: Front, options: HttpOptions) -> uvicorn.Config:
    limits = options.limits
    return uvicorn.Config(
        front,
        http=bounded_protocol(limits),
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(options.trust_proxies),
        forwarded_allow_ips=list(options.trust_proxies),
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=max(1, int(options.grace_seconds)),
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        backlog=BACKLOG,
    )


class TeamServer(uvicorn.Server):
    """A uvicorn that ends with the exit code 0 when it is asked to, and in any case in time."""

    def __init__(self, front: Front, options: HttpOptions) -> None:
        super().__init__(_uvicorn_config(front, options))
        self._front = front
        self._grace_seconds = options.grace_seconds
        self._is_asked_to_end = False

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the process."""
        yield

    def listen_to_signals(self) -> None:
        """Let the signals that ask a process to go end the server."""
        self._loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)

    def end(self) -> None:
        """Take no more calls, finish those that run, and end."""
        self.should_exit = True
        self._front.close()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._is_asked_to_end:
            os._exit(128 + number)  # asked twice: somebody does not want to wait
        self._is_asked_to_end = True
        # It may have come amid a line of the log, where another cannot be begun.
        self._loop.call_soon_threadsafe(self._begin_to_end)

    def _begin_to_end(self) -> None:
        logger.info("ending; running calls have %g s", self._grace_seconds)
        last = threading.Timer(self._grace_seconds + LAST_SECONDS, os._exit, (0,))
        last.daemon = True
        last.start()
        self.end()


def _raise_file_limit() -> None:
    """A connection is an open file, and many systems allow a process 1,024 unless it asks."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _tell(
    settings: Settings, options: HttpOptions, sockets: Sequence[socket.socket], is_open: bool
) -> None:
    """Say where it listens: a line for programs, and the next step for a person."""
    host, port = sockets[0].getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{options.path}"
    door = "open to this machine" if is_open else "asks for a token"
    fields = {"url": url, "root": settings.root, "door": door, "version": __version__}
    logger.info("listening", extra={"fields": fields})
    if sys.stderr is not None and sys.stderr.isatty():
        token = "" if is_open else ' --header "Authorization: Bearer TOKEN"'
        print(
            f"SAGE serves {settings.root} at {url} ({door}); Ctrl-C ends it.\n"
            f"To connect a client: claude mcp add --transport http sage {url}{token}",
            file=sys.stderr,
        )
