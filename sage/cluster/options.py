"""Where a cluster is and as whom it is asked, from what an operator gives.

All of it is checked before anything is sent. Credentials are repeated in no message.
"""

import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from sage.atomic import read_private
from sage.cluster.connection import ClusterOptions
from sage.errors import ConfigError, WrongOption

_BASE = re.compile(r"[a-z0-9][a-z0-9_]{0,99}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MOST_CREDENTIALS_BYTES = 64_000


def cluster_options(
    urls: Iterable[str],
    base: str,
    environment: Mapping[str, str],
    credentials: Path | None = None,
    ca_file: Path | None = None,
) -> ClusterOptions:
    """The options, checked.

    Args:
        credentials: a file with `user:password` in its first line; without it they are taken from
            `SAGE_OPENSEARCH_USER` and `SAGE_OPENSEARCH_PASSWORD`.

    Raises:
        ConfigError: an address, a name or a file is wrong.
    """
    given = tuple(part.strip().rstrip("/") for url in urls for part in url.split(","))
    given = tuple(url for url in given if url)
    if not given:
        raise WrongOption("--url is missing; name the cluster: --url https://search.example.com")
    user = environment.get("SAGE_OPENSEARCH_USER", "")
    password = environment.get("SAGE_OPENSEARCH_PASSWORD", "")
    if credentials is not None:
        user, password = _credentials_in(credentials)
    elif bool(user) != bool(password):
        there, missing = ("USER", "PASSWORD") if user else ("PASSWORD", "USER")
        raise ConfigError(
            f"SAGE_OPENSEARCH_{there} is set and SAGE_OPENSEARCH_{missing} is not; set both or none"
        )
    elif ":" in user:
        raise ConfigError("SAGE_OPENSEARCH_USER holds a colon, which no name of a user can")
    for url in given:
        _check_url(url, has_credentials=bool(user))
    if ca_file is not None:
        _check_ca_file(ca_file, given)
    if not _BASE.fullmatch(base):
        raise WrongOption(
            f"--base {base!r}: use at most 100 lower-case letters, digits and underscores, "
            "a letter or digit first"
        )
    return ClusterOptions(given, base, user, password, ca_file)


def _credentials_in(file: Path) -> tuple[str, str]:
    """The user and the password that the first line of a file names."""
    data = read_private(file, _MOST_CREDENTIALS_BYTES)
    if data is None:
        raise ConfigError(f"--credentials {file}: there is no such file")
    line, end, _ = data.partition(b"\n")
    try:
        # Of lines only "\n" ends one: a password may hold what else separates lines of text.
        first = line.decode("utf-8-sig").strip(" \t\r")
    except UnicodeDecodeError as error:
        raise ConfigError(f"--credentials {file}: it is not UTF-8; save it as UTF-8") from error
    user, _, password = first.partition(":")
    if not user or not password or (not end and len(data) == _MOST_CREDENTIALS_BYTES):
        raise ConfigError(f"--credentials {file}: its first line is not user:password")
    return user, password


def _check_ca_file(file: Path, urls: Iterable[str]) -> None:
    try:
        is_file = stat.S_ISREG(file.stat().st_mode)
    except OSError as error:
        raise ConfigError(f"--ca-file {file} cannot be read: {error.strerror}") from error
    if not is_file:
        raise WrongOption(f"--ca-file {file} is not a file; name one of certificates in PEM")
    if not any(url.lower().startswith("https:") for url in urls):
        raise WrongOption(
            f"--ca-file {file} would not be used: no --url begins with https://; "
            "correct the address, or leave the file away"
        )


def _check_url(url: str, *, has_credentials: bool) -> None:
    try:
        parts = urlsplit(url)
        is_address = parts.port != 0 and bool((parts.hostname or "").encode("idna"))
    except ValueError:  # a port that is no number, half of an IPv6 address, a name of no host
        is_address = False
    if not is_address or not url.isprintable() or any(one in url for one in " ?#"):
        # What is wrong with it is not repeated: it may hold credentials.
        raise WrongOption("--url is no address; write it as https://search.example.com:9200")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongOption("--url must begin with https:// and name a host")
    if "@" in url:  # also behind a slash: there it would be part of the path
        raise WrongOption(
            "--url must not hold credentials, which would be logged; "
            "use --credentials or SAGE_OPENSEARCH_USER and SAGE_OPENSEARCH_PASSWORD"
        )
    if parts.scheme == "http" and has_credentials and parts.hostname not in _LOOPBACK:
        raise WrongOption(f"{url} would carry credentials in the clear; use https://")
