"""The process that serves a team over HTTP, from its sockets to its end.

What it serves is put together in `app`; how a connection behaves is in `connections`.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import NoReturn

import uvicorn

from sage import __version__
from sage.access.auth import Access
from sage.access.options import HttpOptions
from sage.errors import ConfigError
from sage.http.app import TeamApp, running_app
from sage.http.connections import MAX_HEAD_BYTES, bounded_protocol, sweep
from sage.http.entrance import Entrance
from sage.http.json_logs import configure_json_logging
from sage.http.tracing import Tracing, tracing_from
from sage.http.workers import SharedMemory, Siblings, Supervisor, divided
from sage.knowledge import KnowledgeBase, open_knowledge
from sage.server.process import isolate_fastmcp, keep_one_arena, raise_file_limit, set_aside
from sage.settings import Settings

logger = logging.getLogger("sage.http")

OpenBase = Callable[[], KnowledgeBase]

BACKLOG = 2_048
# asyncio takes as many connections at once as may queue: a flood of them held up everybody else's
# calls. The rest stays in the system's queue for the next round.
ACCEPTED_AT_ONCE = 16
# How long a thread that computes keeps the others waiting. A call gives way hundreds of times while
# it looks at files: at Python's 5 ms, one long call beside it made a search four times slower.
SWITCH_SECONDS = 0.0005
# After the running calls had their time, what is stuck is left behind.
LAST_SECONDS = 2.0


def serve_http(
    settings: Settings,
    options: HttpOptions,
    on_listening: Callable[[str], None] | None = None,
    open_base: Callable[[Settings], KnowledgeBase] = open_knowledge,
) -> NoReturn:
    """Serve the knowledge base over HTTP until a signal comes.

    Args:
        on_listening: told the address of the server, in place of whoever reads the log.
        open_base: opens what is served, in each process.

    Raises:
        ConfigError: it cannot be served, or not safely.
    """
    raise_file_limit()
    keep_one_arena()
    isolate_fastmcp()
    sys.setswitchinterval(SWITCH_SECONDS)
    if options.workers > 1:
        _serve_with_workers(settings, options, open_base)
    sockets = bound_sockets(options.host, options.port)
    try:
        access = Access.at(addresses_of(sockets), options, settings)
        tracing = tracing_from(os.environ)
        if on_listening is None:
            _begin_to_log(settings)

        def on_ready(server: "TeamServer") -> None:
            server.listen_to_signals()
            if on_listening is not None:
                on_listening(origin_of(sockets[0]))
            else:
                _tell(settings, options, sockets, access.authenticator.asks_for_nothing)
            set_aside()  # what was imported stays

        opening = partial(open_base, settings)
        asyncio.run(
            serve_sockets(opening, options, access, sockets, on_ready, tracing, on_warm=set_aside)
        )
    finally:
        for listening in sockets:
            listening.close()
    logger.info("ended")
    logging.shutdown()
    # A thread that is stuck in the file system must not hold up the end.
    os._exit(0)


def _serve_with_workers(
    settings: Settings, options: HttpOptions, open_base: Callable[[Settings], KnowledgeBase]
) -> NoReturn:
    """Serve with several processes until a signal comes."""
    limits = divided(options.limits, options.workers)
    # Bound and not listening: it holds the port for the workers, whose sockets share it.
    reserved = bound_sockets(options.host, options.port, is_shared=True, listens=False)
    access = Access.at(addresses_of(reserved), options, settings)
    port: int = reserved[0].getsockname()[1]
    memory = SharedMemory(options.workers)
    _begin_to_log(settings)
    # Imported before there are workers, so that they share its memory.
    import sage.server.mcp_server  # noqa: F401

    def work(worker: int, is_first: bool) -> NoReturn:
        siblings = Siblings(memory, worker)
        own = replace(options, port=port, limits=limits[worker])
        asyncio.run(_serve_as_worker(partial(open_base, settings), own, access, siblings, is_first))
        logging.shutdown()
        os._exit(0)

    def tell() -> None:
        _tell(settings, options, reserved, access.authenticator.asks_for_nothing)

    code = Supervisor(memory, work, tell, options.grace_seconds).run()
    logger.info("ended")
    logging.shutdown()
    os._exit(code)


async def _serve_as_worker(
    open_base: OpenBase,
    options: HttpOptions,
    access: Access,
    siblings: Siblings,
    is_first: bool,
) -> None:
    tracing = tracing_from(os.environ)
    if is_first:
        sockets = bound_sockets(options.host, options.port, is_shared=True)
        await serve_sockets(
            open_base,
            options,
            access,
            sockets,
            TeamServer.listen_to_signals,
            tracing,
            siblings,
            set_aside,
        )
        return
    async with running_app(open_base(), options, access, tracing, siblings, set_aside) as app:
        await app.until_ready()  # the others answer meanwhile
        server = TeamServer(app, options)
        server.listen_to_signals()
        await server.serve(bound_sockets(options.host, options.port, is_shared=True))
    tracing.close()


def _begin_to_log(settings: Settings) -> None:
    configure_json_logging(settings.log_level)
    # The lines that say where it listens and that it ends are few, and always wanted.
    logger.setLevel(min(logging.INFO, logging.getLogger("sage").level))


async def serve_sockets(
    open_base: OpenBase,
    options: HttpOptions,
    access: Access,
    sockets: Sequence[socket.socket],
    on_ready: Callable[["TeamServer"], None],
    tracing: Tracing,
    siblings: Siblings | None = None,
    on_warm: Callable[[], None] = lambda: None,
) -> None:
    """Serve on sockets until the server, which is handed over when it is ready, is told to end.

    Args:
        open_base: opens what is served, while the server says that it is not ready.
    """
    entrance = Entrance(access.rules)
    server = TeamServer(entrance, options)
    serving = asyncio.create_task(server.serve(list(sockets)))
    try:
        knowledge = await _beside(open_base)
        async with running_app(knowledge, options, access, tracing, siblings, on_warm) as app:
            entrance.open(app)
            on_ready(server)
            await serving
    finally:
        serving.cancel()
    tracing.close()


async def _beside(open_base: OpenBase) -> KnowledgeBase:
    """What is served, opened in a thread that does not hold up the end of the process."""
    opening: Future[KnowledgeBase] = Future()
    opening.set_running_or_notify_cancel()

    def work() -> None:
        try:
            opening.set_result(open_base())
        except BaseException as error:  # whoever waits for it raises it
            opening.set_exception(error)

    threading.Thread(target=work, name="sage-open", daemon=True).start()
    return await asyncio.wrap_future(opening)


def addresses_of(sockets: Sequence[socket.socket]) -> list[str]:
    return [str(listening.getsockname()[0]) for listening in sockets]


def origin_of(listening: socket.socket) -> str:
    """The beginning of every address of a server."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def bound_sockets(
    host: str, port: int, is_shared: bool = False, listens: bool = True
) -> list[socket.socket]:
    """Sockets on every address of a host, all on one port.

    Args:
        is_shared: other processes of the same user may have the port too; the system deals
            connections out to those that listen.

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
            if is_shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = found[0].getsockname()[1] if len(found) > 1 else port
            listening.bind((address[0], chosen, *address[2:]))
            # Who connects from now on waits for the first answer and is not turned away.
            if listens:
                listening.listen(BACKLOG)
    except OSError as error:
        for listening in found:
            listening.close()
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return found


def _uvicorn_config(app: TeamApp | Entrance, options: HttpOptions) -> uvicorn.Config:
    limits = options.limits
    return uvicorn.Config(
        app,
        http=bounded_protocol(limits, options.trust_proxies),
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
        backlog=ACCEPTED_AT_ONCE,
    )


class TeamServer(uvicorn.Server):
    """A uvicorn that ends with the exit code 0 when it is asked to, and in any case in time."""

    def __init__(self, app: TeamApp | Entrance, options: HttpOptions) -> None:
        super().__init__(_uvicorn_config(app, options))
        self._app = app
        self._limits = options.limits
        self._grace_seconds = options.grace_seconds
        self._is_asked_to_end = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections, few at a time out of a long queue."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the process."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is told to end, and drop connections that are overdue."""
        sweeping = asyncio.create_task(sweep(self, self._limits))
        try:
            await super().serve(sockets)
        finally:
            sweeping.cancel()

    def listen_to_signals(self) -> None:
        """Let the signals that ask a process to go end the server."""
        self._loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)

    def end(self) -> None:
        """Take no more calls, finish those that run, and end."""
        self.should_exit = True
        self._app.close()

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


def _tell(
    settings: Settings, options: HttpOptions, sockets: Sequence[socket.socket], is_open: bool
) -> None:
    """Say where it listens: a line for programs, and the next step for a person."""
    url = f"{origin_of(sockets[0])}{options.path}"
    access = "open to this machine" if is_open else "asks for a token"
    fields = {"url": url, "root": settings.root, "access": access, "version": __version__}
    logger.info("listening", extra={"fields": fields})
    if sys.stderr is not None and sys.stderr.isatty():
        token = "" if is_open else ' --header "Authorization: Bearer TOKEN"'
        print(
            f"SAGE serves {settings.root} at {url} ({access}); Ctrl-C ends it.\n"
            f"To connect a client: claude mcp add --transport http sage {url}{token}",
            file=sys.stderr,
        )
