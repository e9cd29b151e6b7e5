"""tiktoken's home: exact token counts, offline, for any text.

The vocabulary of cl100k_base is package data, so nothing is ever downloaded. Without a
vocabulary the count is the number of UTF-8 bytes, the only estimate that never undercounts.
"""

import base64
import gzip
import hashlib
import os
import re
import tempfile
import threading
import zlib
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from sage.deadline import Deadline
from sage.documents import Document
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

# sha256 of each vocabulary and the name under which tiktoken keeps it in its cache directory.
_VOCABULARIES = {
    "cl100k_base": (
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    ),
    "o200k_base": (
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "fb374d419588a4632f3f557e76b4b70aebbca790",
    ),
    "p50k_base": (
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
        "ec7223a39ce59f226a68acc30dc1af2788490e15",
    ),
    "r50k_base": (
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
        "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4",
    ),
}
_LEGACY_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "p50k_base": _LEGACY_PATTERN,
    "r50k_base": _LEGACY_PATTERN,
}


class TokenCounter:
    """Counts tokens; the vocabulary is loaded by the first count, once."""

    def __init__(
        self, encoding: str = BUNDLED, environment: Mapping[str, str] | None = None
    ) -> None:
        self._name = encoding
        self._environment = os.environ if environment is None else environment
        self._lock = threading.Lock()
        self._loaded = False
        self._available: bool | None = None
        self._tiktoken: tiktoken.Encoding | None = None

    @property
    def encoding(self) -> str:
        """What counts: the name of the encoding, or of the estimate in its place."""
        if self._loaded:
            return self._name if self._tiktoken else ESTIMATE
        with self._lock:
            if self._available is None:
                self._available = _is_available(self._name, self._environment)
        return self._name if self._available is not False else ESTIMATE

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

    def count_slice(self, document: Document, start: int, end: int) -> int:
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
                        self._tiktoken = _load(self._name, self._environment)
                    except OSError as error:
                        # Counted by bytes instead, what is counted once would stay wrong.
                        reason = f"the vocabulary cannot be read now: {error.strerror}"
                        raise SageError(f"{reason}; ask again") from error
                    self._loaded = True
        return self._tiktoken


def _is_available(name: str, environment: Mapping[str, str]) -> bool | None:
    """Whether there is a vocabulary; None when that cannot be found out now."""
    try:
        return _vocabulary(name, environment) is not None
    except OSError:
        return None


def _load(name: str, environment: Mapping[str, str]) -> "tiktoken.Encoding | None":
    data = _vocabulary(name, environment)
    if data is None:
        return None
    # Importing it costs 20 ms that a call which counts nothing does not need.
    import tiktoken

    fields = data.split()
    ranks = dict(zip(map(base64.b64decode, fields[::2]), map(int, fields[1::2]), strict=True))
    # Built directly: tiktoken's own loader would go to the network for a missing file.
    return tiktoken.Encoding(
        name=name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={}
    )


def _vocabulary(name: str, environment: Mapping[str, str]) -> bytes | None:
    """The vocabulary's bytes, only when they are the right ones."""
    digest, cached_as = _VOCABULARIES[name]
    data = _bundled() if name == BUNDLED else None
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        data = _cached(cached_as, environment)
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        return None
    return data


def _bundled() -> bytes | None:
    try:
        packed = resources.files("sage").joinpath("data", f"{BUNDLED}.tiktoken.gz").read_bytes()
        return gzip.decompress(packed)
    except (FileNotFoundError, gzip.BadGzipFile, EOFError, zlib.error):
        return None


def _cached(name: str, environment: Mapping[str, str]) -> bytes | None:
    folder = environment.get("TIKTOKEN_CACHE_DIR") or environment.get("DATA_GYM_CACHE_DIR")
    try:
        return Path(folder or Path(tempfile.gettempdir(), "data-gym-cache"), name).read_bytes()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
