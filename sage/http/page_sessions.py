"""Sessions of people who look at the page: a cookie that stands for a token, kept in memory only.

The token behind a session is checked again on every request, so one that is revoked ends its
sessions at once. Workers share a table of sessions: who signed in with one is known to all, and
signing out ends a session everywhere. A server that is opened for one person has an address that
works once instead.
"""

import contextlib
import hashlib
import hmac
import mmap
import os
import secrets
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass

MAX_SESSIONS = 1_000
MAX_SESSIONS_EACH = 20
"""Of one token: whoever signs in again and again signs nobody else out."""
LIFETIME_SECONDS = 12 * 3600.0
MAX_TOKEN_BYTES = 16 * 1024
_LENGTH = 32
# The name of a session, its number, when it ends, the length of its token, and a checksum.
_HEAD = struct.Struct("=32sQdII")
_NAME_BYTES = 32
_NOBODY = bytes(_NAME_BYTES)


@dataclass(frozen=True, slots=True)
class PageSession:
    """Who looks: the token that was shown, or nobody in particular."""

    token: str
    expires: float


Sessions = MutableMapping[bytes, PageSession]
"""What is open, the oldest first. A session is named by the digest of its cookie."""


class PageSessions:
    """The sessions of one server."""

    def __init__(
        self,
        once: str = "",
        now: Callable[[], float] = time.monotonic,
        port: int = 0,
        opened: Sessions | None = None,
    ) -> None:
        """Args:
        once: what the address that works once ends with; empty for none.
        port: sets the cookies of several servers of one machine apart, which browsers do not.
        opened: what other processes share; its clock is theirs, too.
        """
        self.cookie = f"sage_page_{port}" if port else "sage_page"
        self._once = once
        self._now = now
        self._open: Sessions = {} if opened is None else opened

    def open(self, token: str = "") -> str:
        """Begin a session; the value of its cookie."""
        now = self._now()
        # Another process may end one meanwhile.
        opened = {name: one for name in list(self._open) if (one := self._open.get(name))}
        ended = [name for name, session in opened.items() if session.expires <= now]
        own = [name for name, session in opened.items() if session.token == token]
        if len(own) >= MAX_SESSIONS_EACH:
            ended.append(own[0])
        elif len(opened) - len(ended) >= MAX_SESSIONS:
            ended.append(next(iter(opened)))
        for name in ended:
            self._open.pop(name, None)
        key = secrets.token_urlsafe(_LENGTH)
        self._open[_name(key)] = PageSession(token, now + LIFETIME_SECONDS)
        return key

    def open_once(self, secret: str) -> str | None:
        """Begin the session of whoever has the address that works once."""
        given, known = secret.encode(), self._once.encode()
        if not known or not hmac.compare_digest(given, known):
            return None
        self._once = ""
        return self.open()

    def find(self, cookies: str) -> PageSession | None:
        """The session of a Cookie header."""
        session = self._open.get(_name(_value(cookies, self.cookie)))
        return session if session is not None and session.expires > self._now() else None

    def close(self, cookies: str) -> None:
        """End the session of a Cookie header."""
        self._open.pop(_name(_value(cookies, self.cookie)), None)

    def set_cookie(self, key: str, secure: bool) -> str:
        """The header that hands a browser its session."""
        lasting = f"; Max-Age={int(LIFETIME_SECONDS)}" if key else "; Max-Age=0"
        return f"{self.cookie}={key}; Path=/; HttpOnly; SameSite=Strict{lasting}" + (
            "; Secure" if secure else ""
        )


class SharedSessions(MutableMapping[bytes, PageSession]):
    """Sessions that processes share which were forked from one; made before they are.

    Whoever writes has a lock that ends with its process. A name is written last and removed first,
    so that a process which dies meanwhile leaves a free place.
    """

    def __init__(self) -> None:
        self._heads = mmap.mmap(-1, MAX_SESSIONS * _HEAD.size)
        # Of what nobody wrote to the system keeps nothing.
        self._tokens = mmap.mmap(-1, MAX_SESSIONS * MAX_TOKEN_BYTES)
        self._lock = _unnamed_file()

    def __getitem__(self, name: bytes) -> PageSession:
        place = self._place(name)
        if place is None:
            raise KeyError(name)
        session = self._read(place)
        if session is None or self._name(place) != name:
            # It was written or removed in between: once more while nobody writes.
            with self._alone():
                place = self._place(name)
                session = self._read(place) if place is not None else None
        if session is None:
            raise KeyError(name)
        return session

    def __setitem__(self, name: bytes, session: PageSession) -> None:
        token = session.token.encode()
        if len(token) > MAX_TOKEN_BYTES:
            raise ValueError(f"a token has {MAX_TOKEN_BYTES} bytes at most")
        with self._alone():
            place = self._place(name)
            if place is None:
                place = self._place(_NOBODY)
            if place is None:
                place = min(range(MAX_SESSIONS), key=self._number)
            number = 1 + max(map(self._number, range(MAX_SESSIONS)))
            self._clear(place)
            start = place * MAX_TOKEN_BYTES
            self._tokens[start : start + len(token)] = token
            checksum = _checksum(name, session.expires, token)
            head = _HEAD.pack(name, number, session.expires, len(token), checksum)
            at = place * _HEAD.size
            self._heads[at + _NAME_BYTES : at + _HEAD.size] = head[_NAME_BYTES:]
            self._heads[at : at + _NAME_BYTES] = name

    def __delitem__(self, name: bytes) -> None:
        with self._alone():
            place = self._place(name)
            if place is None:
                raise KeyError(name)
            self._clear(place)

    def __iter__(self) -> Iterator[bytes]:
        used = [place for place in range(MAX_SESSIONS) if self._name(place) != _NOBODY]
        return iter([self._name(place) for place in sorted(used, key=self._number)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        # Only systems that fork have workers, and these have it.
        import fcntl

        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)

    def _place(self, name: bytes) -> int | None:
        """Where a name stands; of no name the first free place."""
        at = self._heads.find(name)
        while at >= 0 and at % _HEAD.size:
            at = self._heads.find(name, at + 1)
        return at // _HEAD.size if at >= 0 else None

    def _name(self, place: int) -> bytes:
        return self._heads[place * _HEAD.size : place * _HEAD.size + _NAME_BYTES]

    def _number(self, place: int) -> int:
        """A higher one for what was written later; 0 where nothing is."""
        number: int = _HEAD.unpack_from(self._heads, place * _HEAD.size)[1]
        return number

    def _read(self, place: int) -> PageSession | None:
        """The session of a place; None while it is being written."""
        name, _, expires, length, checksum = _HEAD.unpack_from(self._heads, place * _HEAD.size)
        start = place * MAX_TOKEN_BYTES
        token = self._tokens[start : start + min(length, MAX_TOKEN_BYTES)]
        if name == _NOBODY or _checksum(name, expires, token) != checksum:
            return None
        return PageSession(token.decode(), expires)

    def _clear(self, place: int) -> None:
        at, start = place * _HEAD.size, place * MAX_TOKEN_BYTES
        self._heads[at : at + _NAME_BYTES] = _NOBODY
        length = min(_HEAD.unpack_from(self._heads, at)[3], MAX_TOKEN_BYTES)
        self._tokens[start : start + length] = bytes(length)
        self._heads[at + _NAME_BYTES : at + _HEAD.size] = bytes(_HEAD.size - _NAME_BYTES)


def _unnamed_file() -> int:
    """An open file that nothing is ever written to, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("sage-sessions")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _checksum(name: bytes, expires: float, token: bytes) -> int:
    return zlib.crc32(name + struct.pack("=d", expires) + token)


def _name(key: str) -> bytes:
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=_NAME_BYTES).digest()


def _value(cookies: str, name: str) -> str:
    for part in cookies.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
