"""The bundled vocabulary without tiktoken: exact counts of short texts, and whole English words.

A search counts what it answers with this: tiktoken's own tables take four times as long to load
and fifty megabytes more. Long texts are the token counter's, whose encoding may be another.
"""

import re
import threading
from base64 import b64encode
from itertools import pairwise

from sage.errors import SageError
from sage.token_counter import bundled

# What Python takes for letters although Unicode counts them among the numbers.
_NUMBER_SIGNS = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u1369-\u137c\U0001f100-\U0001f10c"
    "\u09f4-\u09f9\u0b72-\u0b77\u0bf0-\u0bf2\u2070\u2074-\u2079"
    "\u2080-\u2089\u2150-\u2189\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u2cfd\u3007\u3021-\u3029"
    "\u3038-\u303a\u3192-\u3195\u3220-\u3229\u3248-\u324f\u3251-\u325f\u3280-\u3289\u32b1-\u32bf"
)
_LETTER = rf"[^\W\d_{_NUMBER_SIGNS}]"
_NUMBER = rf"[\d{_NUMBER_SIGNS}]"
_MARK = r"(?:[^\w\s]|_)"
# cl100k_base's own pattern in the words of Python's `re`.
_PIECE = re.compile(
    r"'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
    rf"|(?:[^\r\n\w]|_)?+{_LETTER}++|{_NUMBER}{{1,3}}+"
    rf"| ?{_MARK}++[\r\n]*+|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
_MAX_REMEMBERED = 50_000
_LONG_PIECE = 400


class BundledVocabulary:
    """The tokens of cl100k_base, read by the first count. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranks: dict[bytes, int] | None = None
        self._counts: dict[str, int] = {}

    def count(self, text: str) -> int:
        """The number of tokens; of bytes when the vocabulary is not there."""
        ranks = self._loaded()
        if not ranks:
            return len(text.encode("utf-8", "surrogatepass"))
        counts, total = self._counts, 0
        for piece in _PIECE.findall(text):
            known = counts.get(piece)
            total += self._count_piece(piece, ranks) if known is None else known
        return total

    def holds(self, word: str) -> bool:
        """Whether a word is one token where a word begins: after a blank, or in title case."""
        ranks = self._loaded()
        ways = (f" {word}", f" {word.title()}", word.title())
        return any(b64encode(way.encode("utf-8", "replace")) in ranks for way in ways)

    def _loaded(self) -> dict[bytes, int]:
        if self._ranks is None:
            with self._lock:
                if self._ranks is None:
                    # A token's line is its bytes in base64 and its rank: lines are in that order.
                    names = _packed().split()[::2]
                    self._ranks = dict(zip(names, range(len(names)), strict=True))
        return self._ranks

    def _count_piece(self, piece: str, ranks: dict[bytes, int]) -> int:
        data = piece.encode("utf-8", "surrogatepass")
        if b64encode(data) in ranks:
            count = 1
        elif len(data) > _LONG_PIECE:
            count = len(data)  # merging is quadratic: a run this long is no word of anybody's
        else:
            count = _merged(data, ranks)
        if len(self._counts) >= _MAX_REMEMBERED:
            self._counts = {}
        if len(piece) <= 40:
            self._counts[piece] = count
        return count


def _merged(data: bytes, ranks: dict[bytes, int]) -> int:
    """How many tokens byte pair encoding leaves of a piece that is no token itself."""
    parts = [data[at : at + 1] for at in range(len(data))]
    pairs = [ranks.get(b64encode(one + other)) for one, other in pairwise(parts)]
    while True:
        best = min((rank for rank in pairs if rank is not None), default=None)
        if best is None:
            return len(parts)
        at = pairs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del pairs[at]
        for place in (at - 1, at):
            if 0 <= place < len(pairs):
                pairs[place] = ranks.get(b64encode(parts[place] + parts[place + 1]))


def _packed() -> bytes:
    """The lines of the vocabulary.

    Raises:
        SageError: they cannot be read now; what is not known to be a word must not be corrected.
    """
    try:
        return bundled() or b""
    except OSError as error:
        reason = f"the vocabulary cannot be read now: {error.strerror}"
        raise SageError(f"{reason}; ask again") from error
