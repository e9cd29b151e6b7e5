"""tiktoken's home: exact token counts, offline, for any text.

The vocabulary of cl100k_base is package data: nothing is ever downloaded, and nothing is read
from folders that others share. Without it the count is the number of UTF-8 bytes, the only estimate
that never undercounts.
"""

import gzip
import hashlib
import re
import threading
import zlib
from binascii import a2b_base64
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from sage.deadline import Deadline
from sage.errors import SageError

if TYPE_CHECKING:
    import tiktoken

ESTIMATE = "estimate:utf8-bytes"
BUNDLED = "cl100k_base"

# tiktoken 0.14 panics, with an exception that is not an Exception, on a million blanks before a
# word: a text with half as many in a row is counted in pieces, every other one exactly.
_MANY_BLANKS = 500_000
# Looked for from the beginning of each run only: half a run would be counted from every blank.
_LONG_BLANK = re.compile(rf"(?<!\s)\s{{{_MANY_BLANKS}}}")
_PIECE = 100_000

_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


class Countable(Protocol):
    """A text that remembers the counts of its parts."""

    @property
    def body(self) -> str: ...
    @property
    def counts(self) -> dict[tuple[int, int], int]: ...


class TokenCounter:
    """Counts tokens; the vocabulary is loaded by the first count, once."""

    def __init__(self, read: Callable[[], bytes | None] | None = None) -> None:
        self._read = read or bundled
        self._lock = threading.Lock()
        self._loaded = False
        self._available: bool | None = None
        self._tiktoken: tiktoken.Encoding | None = None

    @property
    def encoding(self) -> str:
        """What counts: the name of the encoding, or of the estimate in its place."""
        if self._loaded:
            return BUNDLED if self._tiktoken else ESTIMATE
        with self._lock:
            if self._available is None:
                self._available = _is_available(self._read)
        return BUNDLED if self._available is not False else ESTIMATE

    @property
    def loaded(self) -> bool:
        """Whether anything can be counted without a wait."""
        return self._loaded

    def ready_by(self, deadline: Deadline) -> bool:
        """Load the vocabulary now; false when the deadline passes first and it loads on."""
        if not self._loaded and deadline.remaining_seconds is not None:
            loading = threading.Thread(target=self._try_to_load, name="vocabulary", daemon=True)
            with suppress(RuntimeError):  # no thread can be started: whoever counts must load it
                loading.start()
                loading.join(deadline.remaining_seconds)
                return self._loaded
        self._encoding()
        return True

    def _try_to_load(self) -> None:
        with suppress(SageError):
            self._encoding()

    def count(self, text: str) -> int:
        """The number of tokens. Special tokens count as the text they are."""
        encoding = self._encoding()
        if encoding is None:
            return len(text.encode("utf-8", "surrogatepass"))
        if len(text) < _MANY_BLANKS or not _LONG_BLANK.search(text):
            return len(encoding.encode_ordinary(text))
        pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
        return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)

    def count_slice(self, document: Countable, start: int, end: int) -> int:
        """The tokens of a part of a document's body, counted once per document."""
        known = document.counts.get((start, end))
        if known is None:
            known = document.counts[start, end] = self.count(document.body[start:end])
        return known

    def _encoding(self) -> "tiktoken.Encoding | None":
        if not self._loaded:
            with self._lock:
                if not self._loaded:
                    try:
                        self._tiktoken = _load(self._read)
                    except OSError as error:
                        # Counted by bytes instead, what is counted once would stay wrong.
                        reason = f"the vocabulary cannot be read now: {error.strerror}"
                        raise SageError(f"{reason}; ask again") from error
                    self._loaded = True
        return self._tiktoken


def _is_available(read: Callable[[], bytes | None]) -> bool | None:
    """Whether there is a vocabulary; None when that cannot be found out now."""
    try:
        return _vocabulary(read) is not None
    except OSError:
        return None


def _load(read: Callable[[], bytes | None]) -> "tiktoken.Encoding | None":
    data = _vocabulary(read)
    if data is None:
        return None
    # Importing it costs 20 ms that a call which counts nothing does not need.
    import tiktoken

    fields = data.split()
    # Not base64.b64decode: its checks in Python take longer than all the rest of this.
    ranks = dict(zip(map(a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))
    # Built directly: tiktoken's own loader would go to the network for a missing file.
    return tiktoken.Encoding(
        name=BUNDLED, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )


def _vocabulary(read: Callable[[], bytes | None]) -> bytes | None:
    """The vocabulary's bytes, only when they are the right ones."""
    data = read()
    return data if data is not None and hashlib.sha256(data).hexdigest() == _SHA256 else None


def bundled() -> bytes | None:
    """The bytes of the vocabulary that is part of the package."""
    try:
        packed = resources.files("sage").joinpath("data", f"{BUNDLED}.tiktoken.gz").read_bytes()
        return gzip.decompress(packed)
    except (FileNotFoundError, gzip.BadGzipFile, EOFError, zlib.error):
        return None
