"""Which Host and Origin headers are answered: pure predicates, tested without a socket.

The attack they stop is DNS rebinding. A page on evil.example lets its own name point to 127.0.0.1
and the browser of whoever reads it then carries the page's requests to this server, past every
firewall, as "same origin". The page cannot change what the browser writes of its own accord: Host
names evil.example, and Origin names the page. So both must be names that belong to this server.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from sage.errors import WrongOption

# Browsers resolve these to the own machine only, so no page of somebody else can claim them.
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_AUTHORITY = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([a-zA-Z0-9._-]+))(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)")
_WILDCARD = "*."
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Authority(NamedTuple):
    """A host name or address and the port behind it, when one is written."""

    name: str
    port: int | None = None


class Origin(NamedTuple):
    """Where a page comes from; the port is None when it is the usual one of the scheme."""

    scheme: str
    host: Authority


def parse_authority(text: str) -> Authority | None:
    """The host and port of a Host header; None when it is not one plain authority."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    bracketed, plain, port = match.groups()
    number = int(port) if port else None
    if number is not None and not 0 < number < 65536:
        return None
    if bracketed:
        address = _address(bracketed)
        return Authority(address, number) if address and ":" in address else None
    name = plain.lower().removesuffix(".")
    return Authority(_address(name) or name, number) if name else None


def parse_origin(text: str) -> Origin | None:
    """The scheme and host of an Origin header; None for `null` and whatever else is not one."""
    match = _ORIGIN.fullmatch(text.lower())
    host = parse_authority(match[2]) if match else None
    if match is None or host is None:
        return None
    usual = _DEFAULT_PORTS.get(match[1])
    return Origin(match[1], Authority(host.name, None if host.port == usual else host.port))


def is_loopback(address: str) -> bool:
    """Whether an address reaches no further than this machine."""
    if address.lower() == "localhost":
        return True
    plain = _address(address.strip("[]"))
    return plain is not None and ip_address(plain).is_loopback


@dataclass(frozen=True, slots=True)
class HostRules:
    """What a server answers to, besides the names of the own machine and its own address."""

    hosts: tuple[Authority, ...] = ()
    origins: tuple[Origin, ...] = ()

    @classmethod
    def named(cls, hosts: Sequence[str], origins: Sequence[str]) -> "HostRules":
        """Rules from what an operator wrote.

        Raises:
            WrongOption: a host or an origin cannot be one.
        """
        return cls(tuple(map(_allowed_host, hosts)), tuple(map(_allowed_origin, origins)))

    @property
    def beyond_this_machine(self) -> bool:
        """Whether a name is answered that others than this machine can reach it by."""
        return any(not is_loopback(host.name) for host in self.hosts)

    def allow_host(self, header: str, local_address: str) -> bool:
        """Whether a Host header names this server.

        Args:
            local_address: where the connection arrived. A Host that spells this address out is
                never a rebound name, and it is how probes and people on the network ask.
        """
        asked = parse_authority(header)
        if asked is None:
            return False
        if asked.name in LOOPBACK_NAMES or asked.name == _address(local_address):
            return True
        return any(_covers(allowed, asked) for allowed in self.hosts)

    def allow_origin(self, header: str, host_header: str) -> bool:
        """Whether a page may ask: it comes from this very server, or from an origin allowed."""
        origin = parse_origin(header)
        if origin is None:
            return False
        return origin in self.origins or self._is_own(origin, host_header)

    def named_origin(self, header: str) -> bool:
        """Whether an operator allowed this origin by name."""
        return parse_origin(header) in self.origins

    @staticmethod
    def _is_own(origin: Origin, host_header: str) -> bool:
        host = parse_authority(host_header)
        if host is None or origin.scheme not in _DEFAULT_PORTS:
            return False
        usual = _DEFAULT_PORTS[origin.scheme]
        return origin.host == Authority(host.name, None if host.port == usual else host.port)


def _covers(allowed: Authority, asked: Authority) -> bool:
    if allowed.port is not None and allowed.port != asked.port:
        return False
    if allowed.name.startswith(_WILDCARD):
        return asked.name.endswith(allowed.name[1:]) and asked.name != allowed.name[2:]
    return allowed.name == asked.name


def _allowed_host(text: str) -> Authority:
    wildcard = text.startswith(_WILDCARD)
    host = parse_authority(text.removeprefix(_WILDCARD))
    if host is None:
        raise WrongOption(
            f"--allow-host {text}: expected a name or address, with a port if only that one is "
            "meant: sage.example.com, sage.example.com:8443, *.example.com, [2001:db8::5]"
        )
    return Authority(_WILDCARD + host.name, host.port) if wildcard else host


def _allowed_origin(text: str) -> Origin:
    origin = parse_origin(text)
    if origin is None:
        raise WrongOption(
            f"--allow-origin {text}: expected a scheme and a host as a browser writes them, "
            "without a path: https://tools.example.com"
        )
    return origin


def _address(text: str) -> str | None:
    """An IP address in its one canonical form; None when the text is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both families shows a caller of the old one as ::ffff:10.0.0.5.
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.compressed
