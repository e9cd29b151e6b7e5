"""`sage hook`: one event on stdin, one envelope on stdout or nothing; it never fails its host.

Whatever goes wrong, the exit code is 0, stdout stays empty and the reason goes to a log in the
private cache folder. What an event does not need is not imported for it.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from sage.errors import ConfigError
from sage.hooks.events import MAX_EVENT_BYTES, Event, parse_event
from sage.hooks.hosts import EventHost, host_named, hosts, reminder_envelope
from sage.hooks.relevance import content_words
from sage.hooks.session import HookSession, PrivateFolder
from sage.paths import find_cache_dir, find_root, here

_READING_SECONDS = 5.0
"""How long a host may take to send an event."""
_SLACK_SECONDS = 0.5
"""How long after its deadline an event is dropped from outside: a loop may look at it too late."""


def main(arguments: Sequence[str]) -> None:
    """Run the command in this process and end it, with 0."""
    environment = dict(os.environ)
    watch = Watch()
    watch.end_after(_READING_SECONDS)
    stdout, sys.stdout = sys.stdout, sys.stderr  # only the envelope may be written there
    try:
        data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
        answer = run(arguments, data, environment, here(), watch)
        watch.stop()
        if answer:
            stdout.buffer.write(answer)
            stdout.buffer.flush()
    except BaseException as error:  # a host must not feel any failure of ours
        note(environment, f"hook: {_told(error)}")
    finally:
        # Not `sys.exit`: a thread that still works, or a closed pipe, would show in the exit code.
        os._exit(0)


def run(
    arguments: Sequence[str],
    data: bytes,
    environment: Mapping[str, str],
    working_dir: Path,
    watch: "Watch | None" = None,
) -> bytes:
    """The envelope for an event, or nothing; whatever goes wrong goes to the log."""
    name = root = ""
    try:
        name, root = _options(arguments)
        host = host_named(name)
        if host is None:
            raise ConfigError(
                f"--host is {name!r}; use one of {', '.join(h.name for h in hosts())}"
            )
        event = parse_event(data, host)
        if event is None or not _is_worth_a_look(event):
            return b""
        return _answered(host, event, root, environment, working_dir, watch)
    except Exception as error:  # a host must not feel any failure of ours
        note(environment, f"{name}: {_told(error)}")
        return b""


class Watch:
    """Ends the process when time is up, wherever it is."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def end_after(self, seconds: float) -> None:
        """Let the process end, with 0, unless it is told otherwise before."""
        self.stop()
        self._timer = threading.Timer(seconds, os._exit, (0,))
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Let the process live."""
        if self._timer is not None:
            self._timer.cancel()


def note(environment: Mapping[str, str], line: str) -> None:
    """Write a reason to the log, if that is possible."""
    PrivateFolder(find_cache_dir(environment)).log(line)


def _options(arguments: Sequence[str]) -> tuple[str, str]:
    """The values of --host and --root."""
    values = {"--host": "", "--root": ""}
    rest = list(arguments)
    while rest:
        option, _, value = rest.pop(0).partition("=")
        if option not in values:
            raise ConfigError(f"{option!r} is not an option; use --host NAME and --root PATH")
        values[option] = value or (rest.pop(0) if rest else "")
    return values["--host"], values["--root"]


def _is_worth_a_look(event: Event) -> bool:
    """Whether an event can lead to anything: most do not, and should cost next to nothing."""
    if event.moment == "prompt":
        return len(content_words(event.prompt)) > 1
    if event.moment == "end":
        return bool(event.session)
    return event.moment == "session" or bool(event.files)


def _answered(
    host: EventHost,
    event: Event,
    root: str,
    environment: Mapping[str, str],
    working_dir: Path,
    watch: Watch | None,
) -> bytes:
    folder = working_dir / event.folder
    try:
        find_root(root, environment, folder)
    except ConfigError:
        return b""  # a hook of the user's runs in every repository, and most have no base
    from sage.deadline import Deadline
    from sage.hooks.delivery import Delivery
    from sage.knowledge import open_knowledge
    from sage.settings import load_settings

    settings = load_settings({"root": root or None}, environment, folder)
    limits = settings.hooks
    limit_ms = limits.session_timeout_ms if event.moment == "session" else limits.timeout_ms
    if watch is not None:
        watch.end_after(limit_ms / 1000 + _SLACK_SECONDS)
    session = HookSession(PrivateFolder(settings.cache_dir), settings.root, event.session)
    knowledge = open_knowledge(settings)
    try:
        delivery = Delivery(knowledge, host, session, Deadline(limit_ms))
        text = delivery.answer(event)
    finally:
        knowledge.close()
    if not text:
        return b""
    is_end = event.moment == "end"
    envelope = reminder_envelope(text) if is_end else host.envelope(event.name, text)
    return json.dumps(envelope).encode() + b"\n"


def _told(error: BaseException) -> str:
    """An error in one line, without anything of the event."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")
