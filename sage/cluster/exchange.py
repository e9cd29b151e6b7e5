"""One request to one node and its answer: in one piece, within a time, and of a size.

The time is that of the whole exchange, whatever the node does: each piece that is sent or read gets
what is left of it. Only to look up the name of a node takes as long as the system lets it.
"""

import http.client
import io
import json
import socket
import ssl
import time
from typing import Any, NamedTuple, cast

MOST_BYTES = 256_000_000
"""Of an answer: five times the largest that we ask for, the columns of 100 pages of a megabyte."""
_WHOLE_BYTES = 100_000
_PIECE_BYTES = 1_000_000


class StrangeAnswer(Exception):
    """A node answers otherwise than OpenSearch does."""


class Unreached(OSError):
    """Nobody could be connected to, so nothing was sent."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error) or type(error).__name__)
        self.was_silent = isinstance(error, TimeoutError)


class NodeAnswer(NamedTuple):
    """What a node answered."""

    status: int
    body: Any
    """None where it is no JSON."""
    text: bytes
    may_be_kept: bool
    """Whether its connection can be used again."""


class NodeConnection(http.client.HTTPConnection):
    """Sends the head of a request together with its body: a node would wake up for each."""

    auto_open = 0
    _held: list[bytes] | None = None
    _until = 0.0

    def reach(self, until: float) -> None:
        """Connect to the node.

        Args:
            until: when that has to be done, as `time.monotonic` tells it.

        Raises:
            Unreached: it cannot be done.
            ssl.SSLCertVerificationError: the node is not who it should be.
        """
        self._until = until
        try:
            self.connect()
        except ssl.SSLCertVerificationError:
            raise
        except OSError as error:
            raise Unreached(error) from error

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], until: float
    ) -> NodeAnswer:
        """Ask the node that was reached, and read what it answers.

        Args:
            until: when it has to be over, as `time.monotonic` tells it.

        Raises:
            TimeoutError: it was not over by then.
            OSError, http.client.HTTPException: the node left in the middle.
            StrangeAnswer: what it answers is too large, or no HTTP.
        """
        cast("TimedSocket", self.sock).begin(until)
        try:
            self.request(method, path, body, headers)
            response = self.getresponse()
            text = _text_of(response)
        except (http.client.RemoteDisconnected, http.client.IncompleteRead):
            raise
        except http.client.HTTPException as error:
            raise StrangeAnswer("its answer is no HTTP") from error
        return NodeAnswer(response.status, _body_of(text), text, not response.will_close)

    def connect(self) -> None:
        """Reach the node; where it has several addresses, each gets its share of the time."""
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, address) in enumerate(found, 1):
            one = socket.socket(family, kind, protocol)
            try:
                one.settimeout(_left(self._until) / (len(found) - number + 1))
                one.connect(address)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                one.settimeout(_left(self._until))
                self.sock = TimedSocket(self._secured(one), self._until)
            except OSError as error:
                one.close()
                if number == len(found) or isinstance(error, ssl.SSLError):
                    raise
            else:
                return

    def _secured(self, opened: socket.socket) -> socket.socket:
        return opened

    def request(self, *given: Any, **more: Any) -> None:
        self._held = []
        try:
            super().request(*given, **more)
        finally:
            held, self._held = self._held, None
        if sum(map(len, held)) <= _WHOLE_BYTES:
            held = [b"".join(held)]
        for part in held:
            self.send(part)

    def send(self, data: Any) -> None:
        if self._held is None:
            super().send(data)
        else:
            self._held.append(data)


class SecureNodeConnection(NodeConnection):
    """The same over TLS."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int, tls: ssl.SSLContext) -> None:
        super().__init__(host, port)
        self._tls = tls

    def _secured(self, opened: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(opened, server_hostname=self.host)


class TimedSocket:
    """A socket for one exchange after the other, each of which ends at its time."""

    def __init__(self, opened: socket.socket, until: float) -> None:
        self._socket = opened
        self.begin(until)

    def begin(self, until: float) -> None:
        """Begin another exchange."""
        self._until = until
        self._bytes = 0

    def sendall(self, data: bytes) -> None:
        """Send all of it in time."""
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(_left(self._until))
            rest = rest[self._socket.send(rest) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What is answered."""
        return io.BufferedReader(_Answered(self, self._socket.makefile("rb", buffering=0)))

    def read_from(self, raw: io.RawIOBase, buffer: Any) -> int:
        """Read what is there, in time."""
        self._socket.settimeout(_left(self._until))
        count = raw.readinto(buffer) or 0
        self._bytes += count
        if self._bytes > MOST_BYTES:
            raise _too_large()
        return count

    def close(self) -> None:
        self._socket.close()


class _Answered(io.RawIOBase):
    """One answer, read through a socket that may be closed before it is."""

    def __init__(self, timed: TimedSocket, raw: io.RawIOBase) -> None:
        self._timed = timed
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._timed.read_from(self._raw, buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def from_json(text: bytes | str) -> Any:
    """What a text of JSON says, as the standard has it.

    Raises:
        ValueError: it is none, or a number or its depth is beyond what can be read.
    """
    try:
        return _decode(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def _body_of(text: bytes) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _text_of(response: http.client.HTTPResponse) -> bytes:
    if response.length is not None:
        if response.length > MOST_BYTES:
            raise _too_large()
        return response.read()
    # So large as it says that a piece of it is, memory would be taken for it.
    return b"".join(iter(lambda: response.read(_PIECE_BYTES), b""))


def _too_large() -> StrangeAnswer:
    return StrangeAnswer(f"its answer has more than {MOST_BYTES // 1_000_000} MB")


def _left(until: float) -> float:
    """The seconds that are left.

    Raises:
        TimeoutError: none are.
    """
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the time for this request is over")
    return seconds
