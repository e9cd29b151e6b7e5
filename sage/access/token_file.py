"""Who may ask: bearer tokens, kept as salted hashes in a file that only the server's user reads.

The file is looked at on every request, so a token that is revoked stops at once, in every process
that shares the file. It is written in place, never replaced: a container into which the single
file is mounted would keep seeing the file that was replaced. A token itself is shown once, when it
is made.
"""

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sage.atomic import open_folder, read_private, wait_for_lock, write_file
from sage.errors import ConfigError, InvalidInput, NotFound

logger = logging.getLogger("sage.access")

VERSION = 1
# A file that is being rewritten is read half old, half new; the tokens from before hold so long.
TORN_SECONDS = 1.0
# Times of files have steps of some milliseconds: what changed just now may change again unseen.
QUIET_SECONDS = 0.1
MAX_FILE_BYTES = 4 * 1024 * 1024

_TOKEN = re.compile(r"sage_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class TokenScope(NamedTuple):
    """What a token is for; None means all."""

    layers: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may see."""

    name: str
    layers: tuple[str, ...] | None = None
    """None means every layer."""
    sources: tuple[str, ...] | None = None
    """None means every source."""
    token_id: str = field(default="", compare=False)
    expires: float | None = field(default=None, compare=False)

    @property
    def scope(self) -> TokenScope:
        """What of the knowledge base it is for."""
        return TokenScope(self.layers, self.sources)


@dataclass(frozen=True, slots=True)
class BearerToken:
    """What is kept of a token."""

    id: str
    name: str
    salt: str
    hash: str
    layers: tuple[str, ...] | None
    created: float
    expires: float | None = None
    sources: tuple[str, ...] | None = None

    def matches(self, secret: str) -> bool:
        """Whether this is its secret, in a time that does not tell how nearly."""
        return hmac.compare_digest(self.hash, _hash(self.salt, secret))

    @property
    def lifetime_seconds(self) -> int | None:
        """How long it was made for; None means for ever."""
        return None if self.expires is None else round(self.expires - self.created)

    def has_expired(self, now: float) -> bool:
        """Whether it was valid only until before now."""
        return self.expires is not None and self.expires <= now


class Torn(ConfigError):
    """The file of tokens is being written, or was damaged."""


class TokenFile:
    """The tokens of a server, in a file outside the repository."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._stamp: tuple[int, ...] | None = None
        self._tokens: dict[str, BearerToken] = {}
        self._torn_since: float | None = None
        # Compared with when the id is unknown, so that both cases take the same time.
        self._nobody = _sealed("nobody", TokenScope(), secrets.token_urlsafe(32), now(), None)

    def verify(self, value: str) -> Grant | None:
        """What the bearer of a token may see; None when the token is not valid now."""
        match = _TOKEN.fullmatch(value)
        token_id, secret = match.groups() if match else ("", value)
        token = self._current().get(token_id, self._nobody)
        if not token.matches(secret) or token is self._nobody or token.has_expired(self._now()):
            return None
        return Grant(token.name, token.layers, token.sources, token.id)

    def holds(self, token_id: str) -> bool:
        """Whether a token is valid now, which it was when its bearer showed it."""
        token = self._current().get(token_id)
        return token is not None and not token.has_expired(self._now())

    def tokens(self) -> list[BearerToken]:
        """Every token that was not revoked, by name.

        Raises:
            ConfigError: the file is there but cannot be used.
        """
        return sorted(self._read(), key=lambda token: (token.name, token.created))

    def create(
        self,
        name: str,
        layers: Sequence[str] | None = None,
        lifetime_seconds: int | None = None,
        sources: Sequence[str] | None = None,
    ) -> str:
        """Make a token and return its value, which cannot be had again.

        Raises:
            InvalidInput: the name is taken or cannot be one.
        """
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{name!r} cannot name a token; use up to 64 letters, digits and . _ @ -"
            )
        with self._changing() as tokens:
            if any(token.name == name and not token.has_expired(self._now()) for token in tokens):
                raise InvalidInput(f"there is a token {name}; rotate or revoke it")
            tokens[:] = [token for token in tokens if token.name != name]
            scope = TokenScope(tuple(layers or ()) or None, tuple(sources or ()) or None)
            return self._add(tokens, name, scope, lifetime_seconds)

    def rotate(
        self, name: str, lifetime_seconds: int | None = None, overlap_seconds: int = 0
    ) -> str:
        """Replace a token by a new one for the same layers and sources.

        Args:
            lifetime_seconds: as long as the old one was made for, when not given.
            overlap_seconds: how long the old value still works.

        Raises:
            NotFound: there is no such token.
        """
        with self._changing() as tokens:
            last = max(self._named(tokens, name), key=lambda token: token.created)
            now = self._now()
            kept = [token for token in tokens if token.name != name]
            if overlap_seconds and not last.has_expired(now):
                until = min(now + overlap_seconds, last.expires or now + overlap_seconds)
                kept.append(BearerToken(**{**_fields(last), "expires": until}))
            tokens[:] = kept
            lifetime = lifetime_seconds or last.lifetime_seconds
            return self._add(tokens, name, TokenScope(last.layers, last.sources), lifetime)

    def revoke(self, name: str) -> None:
        """Make every value of a token worthless from now on.

        Raises:
            NotFound: there is no such token.
        """
        with self._changing() as tokens:
            self._named(tokens, name)
            tokens[:] = [token for token in tokens if token.name != name]

    def _add(
        self,
        tokens: list[BearerToken],
        name: str,
        scope: TokenScope,
        lifetime_seconds: int | None,
    ) -> str:
        secret, now = secrets.token_urlsafe(32), self._now()
        token = _sealed(name, scope, secret, now, lifetime_seconds)
        tokens.append(token)
        return f"sage_{token.id}_{secret}"

    @staticmethod
    def _named(tokens: list[BearerToken], name: str) -> list[BearerToken]:
        found = [token for token in tokens if token.name == name]
        if not found:
            known = ", ".join(sorted({token.name for token in tokens})) or "none yet"
            raise NotFound(f"there is no token {name}; the tokens: {known}")
        return found

    def _current(self) -> dict[str, BearerToken]:
        """The tokens as the file has them now; none when it cannot be trusted."""
        stamp = stamp_of(self.path)
        if stamp is None or stamp != self._stamp:
            self._stamp = stamp if stamp and _is_quiet(stamp, time.time()) else None
            try:
                self._tokens = {token.id: token for token in self._read()}
                self._torn_since = None
            except Torn as error:
                self._stamp = None
                self._wait_while_torn(error)
            except ConfigError as error:
                self._distrust(error)
        return self._tokens

    def _wait_while_torn(self, error: ConfigError) -> None:
        now = self._now()
        self._torn_since = self._torn_since or now
        if now - self._torn_since > TORN_SECONDS:
            self._distrust(error)

    def _distrust(self, error: ConfigError) -> None:
        """Let nobody in on the word of a file that is damaged or open to others."""
        if self._tokens:
            logger.error("%s", error)
        self._tokens = {}

    def _read(self) -> list[BearerToken]:
        data = read_private(self.path, MAX_FILE_BYTES)
        if data is None:
            return []
        try:
            written = json.loads(data)
            tokens, checksum = written["tokens"], written.get("sha256")
            # A file of an earlier version has none; it was never written in place.
            if checksum is not None and checksum != _checksum(tokens):
                raise ValueError("half old, half new")
            return [_loaded(fields) for fields in tokens]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Torn(
                f"{self.path} is damaged, so no token is accepted: restore it, or delete it and "
                "make the tokens again"
            ) from error

    @contextmanager
    def _changing(self) -> Iterator[list[BearerToken]]:
        """The tokens, to be changed by one process at a time and written whole."""
        with locked(self.path):
            restore_private(self.path)
            tokens = self._read()
            yield tokens
            fields = [_fields(token) for token in tokens]
            # The checksum comes first: no mixture of an old and a new file is without one.
            written = {"sha256": _checksum(fields), "version": VERSION, "tokens": fields}
            write_private(self.path, json.dumps(written, indent=1).encode())


def moment(seconds: float) -> str:
    """A point in time as people and programs read it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sealed(
    name: str,
    scope: TokenScope,
    secret: str,
    now: float,
    lifetime_seconds: int | None,
) -> BearerToken:
    salt = secrets.token_hex(16)
    return BearerToken(
        id=secrets.token_hex(6),
        name=name,
        salt=salt,
        hash=_hash(salt, secret),
        layers=scope.layers,
        created=now,
        expires=now + lifetime_seconds if lifetime_seconds else None,
        sources=scope.sources,
    )


def _hash(salt: str, secret: str) -> str:
    # A secret of 256 random bits cannot be guessed, so a slow hash would protect nothing and
    # would make every request, an attacker's too, cost a tenth of a second.
    return hashlib.sha256(f"{salt}:{secret}".encode("utf-8", "replace")).hexdigest()


def _checksum(tokens: object) -> str:
    return hashlib.sha256(json.dumps(tokens, sort_keys=True).encode()).hexdigest()


def _fields(token: BearerToken) -> dict[str, Any]:
    fields = asdict(token)
    if token.sources is None:  # an earlier version reads the file as well
        del fields["sources"]
    return fields


def _loaded(fields: dict[str, Any]) -> BearerToken:
    layers, sources = fields["layers"], fields.get("sources")
    scope = {"layers": layers, "sources": sources}
    return BearerToken(
        **{**fields, **{key: one if one is None else tuple(one) for key, one in scope.items()}}
    )


def write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody else can open, into the file that is there.

    The new bytes are first put beside it: whoever is killed while writing loses nothing.

    Raises:
        ConfigError: it cannot be written.
    """
    name, draft = path.name, _draft(path).name
    try:
        with open_folder(path.parent.resolve()) as folder:
            if not path.exists():
                write_file(folder, name, data)
                return
            write_file(folder, draft, data)
            _overwrite(path, data)
            os.unlink(folder.place(draft), dir_fd=folder.descriptor)
    except OSError as error:
        _draft(path).unlink(missing_ok=True)
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def restore_private(path: Path) -> None:
    """Finish what a process began that was killed while it wrote; to be called in the lock."""
    data = read_private(_draft(path), MAX_FILE_BYTES)
    if data is not None and path.exists():
        if path.stat().st_uid != _draft(path).lstat().st_uid:
            raise ConfigError(f"{_draft(path)} is a file of another user's; remove it")
        _overwrite(path, data)
    _draft(path).unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _overwrite(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file, whose folder is made when there is none.

    Raises:
        ConfigError: the folder cannot be written to, or somebody holds the lock.
    """
    if find_spec("fcntl") is None:  # Windows: two changes at the same moment are not expected there
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
        return
    lock = path.with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(f"{path.parent} cannot be written to: {error.strerror}") from error
    try:
        # One that an earlier version made could be opened, and held, by every user.
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
        wait_for_lock(descriptor, f"another process holds {lock}; end it and try again")
        yield
    finally:
        os.close(descriptor)


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """What changes when a file does, its last change at the end; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_nlink, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_quiet(stamp: tuple[int, ...], now: float) -> bool:
    return abs(now - stamp[-1] / 1e9) > QUIET_SECONDS
