"""Who may in: bearer tokens, kept as salted hashes in a file that only the server's user reads.

The file is looked at on every request, so a token that is revoked stops at once, in every process
that shares the file. A token itself is shown once, when it is made.
"""

import hashlib
import hmac
import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sage.errors import ConfigError, InvalidInput, NotFound
from sage.privatefiles import locked, read_private, stamp_of, write_private

logger = logging.getLogger("sage.access")

VERSION = 1
MAX_FILE_BYTES = 4 * 1024 * 1024

_TOKEN = re.compile(r"sage_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DURATION = re.compile(r"([0-9]{1,5})([mhdw])")
_UNIT_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may see."""

    name: str
    layers: tuple[str, ...] | None = None
    """None means every layer."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token."""

    id: str
    name: str
    salt: str
    hash: str
    layers: tuple[str, ...] | None
    created: float
    expires: float | None = None

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


class TokenFile:
    """The tokens of a server, in a file outside the repository."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._stamp: tuple[int, ...] | None = None
        self._tokens: dict[str, Token] = {}
        # Compared with when the id is unknown, so that both cases take the same time.
        self._nobody = _sealed("nobody", None, secrets.token_urlsafe(32), now(), None)

    def verify(self, value: str) -> Grant | None:
        """What the bearer of a token may see; None when the token is not valid now."""
        match = _TOKEN.fullmatch(value)
        token_id, secret = match.groups() if match else ("", value)
        token = self._current().get(token_id, self._nobody)
        if not token.matches(secret) or token is self._nobody or token.has_expired(self._now()):
            return None
        return Grant(token.name, token.layers)

    def tokens(self) -> list[Token]:
        """Every token that was not revoked, by name.

        Raises:
            ConfigError: the file is there but cannot be used.
        """
        return sorted(self._read(), key=lambda token: (token.name, token.created))

    def create(
        self, name: str, layers: Sequence[str] | None = None, lifetime_seconds: int | None = None
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
            return self._add(tokens, name, tuple(layers) if layers else None, lifetime_seconds)

    def rotate(
        self, name: str, lifetime_seconds: int | None = None, overlap_seconds: int = 0
    ) -> str:
        """Replace a token by a new one for the same layers.

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
                kept.append(Token(**{**_fields(last), "expires": until}))
            tokens[:] = kept
            lifetime = lifetime_seconds or last.lifetime_seconds
            return self._add(tokens, name, last.layers, lifetime)

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
        tokens: list[Token],
        name: str,
        layers: tuple[str, ...] | None,
        lifetime_seconds: int | None,
    ) -> str:
        secret, now = secrets.token_urlsafe(32), self._now()
        token = _sealed(name, layers, secret, now, lifetime_seconds)
        tokens.append(token)
        return f"sage_{token.id}_{secret}"

    @staticmethod
    def _named(tokens: list[Token], name: str) -> list[Token]:
        found = [token for token in tokens if token.name == name]
        if not found:
            known = ", ".join(sorted({token.name for token in tokens})) or "none yet"
            raise NotFound(f"there is no token {name}; the tokens: {known}")
        return found

    def _current(self) -> dict[str, Token]:
        """The tokens as the file has them now; none when it cannot be trusted."""
        stamp = stamp_of(self.path)
        if stamp != self._stamp or stamp is None:
            try:
                self._tokens = {token.id: token for token in self._read()}
            except ConfigError as error:
                # Nobody is let in on the word of a file that is damaged or open to others.
                logger.error("%s", error)
                self._tokens = {}
            self._stamp = stamp
        return self._tokens

    def _read(self) -> list[Token]:
        data = read_private(self.path, MAX_FILE_BYTES)
        if data is None:
            return []
        try:
            return [_loaded(fields) for fields in json.loads(data)["tokens"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigError(f"tokens: {self.path} is not a file of tokens") from error

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The tokens, to be changed by one process at a time and written whole."""
        with locked(self.path):
            tokens = self._read()
            yield tokens
            fields = [_fields(token) for token in tokens]
            text = json.dumps({"version": VERSION, "tokens": fields}, indent=1)
            write_private(self.path, text.encode())


def parse_duration(text: str) -> int:
    """The seconds of a duration such as 90d.

    Raises:
        InvalidInput: it is none.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise InvalidInput(f"{text!r} is no duration; use a number and a unit: 30m, 12h, 90d, 4w")
    return int(match[1]) * _UNIT_SECONDS[match[2]]


def moment(seconds: float) -> str:
    """A point in time as people and programs read it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sealed(
    name: str,
    layers: tuple[str, ...] | None,
    secret: str,
    now: float,
    lifetime_seconds: int | None,
) -> Token:
    salt = secrets.token_hex(16)
    return Token(
        id=secrets.token_hex(6),
        name=name,
        salt=salt,
        hash=_hash(salt, secret),
        layers=layers,
        created=now,
        expires=now + lifetime_seconds if lifetime_seconds else None,
    )


def _hash(salt: str, secret: str) -> str:
    # A secret of 256 random bits cannot be guessed, so a slow hash would protect nothing and
    # would make every request, an attacker's too, cost a tenth of a second.
    return hashlib.sha256(f"{salt}:{secret}".encode("utf-8", "replace")).hexdigest()


def _fields(token: Token) -> dict[str, Any]:
    return asdict(token)


def _loaded(fields: dict[str, Any]) -> Token:
    layers = fields["layers"]
    return Token(**{**fields, "layers": None if layers is None else tuple(layers)})
