"""How many tokens a text has, exactly and offline; tiktoken's home.

The vocabulary of cl100k_base is package data: nothing is ever downloaded, and nothing is read
from folders that others share. Without it the count is the number of UTF-8 bytes, the only estimate
that never undercounts.
"""

import gzip
import hashlib
import re
import threading
import zlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import resources
from itertools import pairwise
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
# A long text is counted in pieces also because tiktoken and the search for blanks each keep all
# other threads waiting, the longer the text the longer: a tenth of a second for 3 MB.
_PIECE_LENGTH = 100_000
# No token reaches from a letter or number into the next line, so the counts of the pieces add up
# to that of the whole. Only characters that Python and tiktoken put into the same class are named.
_PIECE_END = re.compile(
    r"(?<=[0-9A-Za-z\u0430-\u044f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3])\n"
)

_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)

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
_WORD_PIECE = re.compile(
    r"'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
    rf"|(?:[^\r\n\w]|_)?+{_LETTER}++|{_NUMBER}{{1,3}}+"
    rf"| ?{_MARK}++[\r\n]*+|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
# The same for texts of ASCII alone, where letters are few: two thirds of the time.
_ASCII_PIECE = re.compile(
    r"'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
    r"|[^\r\nA-Za-z0-9]?+[A-Za-z]++|[0-9]{1,3}+"
    r"| ?[^\sA-Za-z0-9]++[\r\n]*+|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
_WHOLE_WORD = re.compile(rb"^ ([A-Za-z][a-z]{2,})$", re.MULTILINE)
# Characters that Python and tiktoken put into the same classes: of all 131,072 below U+20000 only
# 88 rare ones differ, and unassigned ones may by the next version of either. U+001C to U+001F are
# blanks to Python alone.
_SAME_CLASS = re.compile(
    r"[\x00-\x1b\x20-\u024f\u0370-\u04ff\u2000-\u2182\u2190-\u27bf\u3000-\u30ff\u4e00-\u9fa5"
    r"\uac00-\ud7a3\uff01-\uff5e\U0001f300-\U0001f6ff\U0001f900-\U0001f9ff]*"
)
_BLANK_BEFORE_BLANK = re.compile(r" (?<=\s )")
_MAX_REMEMBERED = 50_000
_LONGEST_REMEMBERED = 40
_LONG_WORD_PIECE = 400
_SLOW_WORD_PIECE = 120
"""Bytes of a run of letters that tiktoken merges so much faster that it is worth loading."""
_LONG_TEXT = 100_000


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
        return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))

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


class RememberingCounter(dict[str, int]):
    """The token counter's counts for whoever counts very many texts.

    Where a blank follows what is none a token begins, whatever stands before it: what stands
    between two blanks, most of which comes again, is counted once. Where that reaches over the end
    of a line its two sides are: the pair hardly comes again. It holds these counts.
    """

    def __init__(self, counter: TokenCounter) -> None:
        super().__init__()
        self._counter = counter

    def count_slice(self, document: Countable, start: int, end: int) -> int:
        """The tokens of a part of a document's body."""
        text = document.body[start:end]
        if _BLANK_BEFORE_BLANK.search(text):
            return self._counter.count(text)
        first, *others = text.split(" ")
        # What no blank stands before is kept with one behind it, which no other part holds.
        return (self[f"{first} "] if first else 0) + sum(map(self.__getitem__, others))

    def __missing__(self, part: str) -> int:
        line_end = _PIECE_END.search(part)
        if line_end:
            above, below = part[: line_end.start()], part[line_end.start() :]
            if part.endswith(" "):
                return self[f"{above} "] + self[below]
            return self[above] + self[f"{below} "]
        count = self._counter.count(part[:-1] if part.endswith(" ") else f" {part}")
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        if len(part) <= _LONGEST_REMEMBERED:
            self[part] = count
        return count


def _pieces(text: str) -> Iterator[str]:
    """The parts in which a text is counted."""
    start = 0
    while end := _PIECE_END.search(text, start + _PIECE_LENGTH):
        yield from _without_long_blanks(text[start : end.start()])
        start = end.start()
    yield from _without_long_blanks(text[start:] if start else text)


def _without_long_blanks(text: str) -> Iterator[str]:
    """The text, or what tiktoken survives of one with a run of blanks that it does not."""
    # A run that long covers one of these blocks; most blocks are no blanks at their first letter.
    half = _MANY_BLANKS // 2
    blocks = range(0, len(text) if len(text) >= _MANY_BLANKS else 0, half)
    if any(text[at : at + half].isspace() for at in blocks) and _LONG_BLANK.search(text):
        for at in range(0, len(text), _PIECE_LENGTH):
            yield text[at : at + _PIECE_LENGTH]
    else:
        yield text


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


class BundledVocabulary:
    """The same vocabulary without tiktoken: exact counts of short texts, and whole English words.

    A search and a context count what they answer with this: tiktoken's own tables take four times
    as long to load and fifty megabytes more. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranks: dict[bytes, int] | None = None
        self._counts = _PieceCounts({})

    def count(self, text: str) -> int:
        """The number of tokens; of bytes when the vocabulary is not there."""
        ranks = self._loaded()
        if not ranks:
            return len(text.encode("utf-8", "surrogatepass"))
        return sum(map(self._counts.__getitem__, _word_pieces(text)))

    def exact(self, text: str) -> int | None:
        """The number of tokens; None when this vocabulary is not sure of it, or slow at it."""
        if len(text) > _LONG_TEXT or not _SAME_CLASS.fullmatch(text):
            return None
        ranks, pieces = self._loaded(), _word_pieces(text)
        is_slow = any(len(piece) > _SLOW_WORD_PIECE // 3 and _is_slow(piece) for piece in pieces)
        return None if is_slow or not ranks else sum(map(self._counts.__getitem__, pieces))

    def place(self, word: str) -> int | None:
        """Where a word stands among the tokens, the commonest first; None when it is none.

        It is one where a word begins: after a blank, or in title case.
        """
        ranks = self._loaded()
        ways = (f" {word}", f" {word.title()}", word.title())
        names = (b2a_base64(way.encode("utf-8", "replace"), newline=False) for way in ways)
        return min((ranks[name] for name in names if name in ranks), default=None)

    def words(self) -> set[str]:
        """Every word that is a token where a word begins, in small letters."""
        lines = b"\n".join(map(a2b_base64, self._loaded()))
        return set(b"\n".join(_WHOLE_WORD.findall(lines)).lower().decode("ascii").split())

    def _loaded(self) -> dict[bytes, int]:
        if self._ranks is None:
            with self._lock:
                if self._ranks is None:
                    # A token's line is its bytes in base64 and its rank: lines are in that order.
                    names = _packed().split()[::2]
                    ranks = dict(zip(names, range(len(names)), strict=True))
                    self._counts = _PieceCounts(ranks)
                    self._ranks = ranks
        return self._ranks


def _word_pieces(text: str) -> list[str]:
    """A text as cl100k_base takes it apart before it looks for tokens."""
    return (_ASCII_PIECE if text.isascii() else _WORD_PIECE).findall(text)


class _PieceCounts(dict[str, int]):
    """The tokens of pieces of text, remembered: asked for every piece of every answer."""

    def __init__(self, ranks: dict[bytes, int]) -> None:
        super().__init__()
        self._ranks = ranks

    def __missing__(self, piece: str) -> int:
        data = piece.encode("utf-8", "surrogatepass")
        if b2a_base64(data, newline=False) in self._ranks:
            count = 1
        elif len(data) > _LONG_WORD_PIECE:
            count = len(data)  # merging is quadratic: a run this long is no word of anybody's
        else:
            count = _merged(data, self._ranks)
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        if len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = count
        return count


class LightCounter:
    """The token counter's counts; tiktoken is loaded only for what needs it."""

    def __init__(self, counter: TokenCounter, vocabulary: BundledVocabulary) -> None:
        self.counter = counter
        self.vocabulary = vocabulary

    def count(self, text: str) -> int:
        """The number of tokens."""
        known = None if self.counter.loaded else self.vocabulary.exact(text)
        return self.counter.count(text) if known is None else known


def _is_slow(piece: str) -> bool:
    return len(piece.encode("utf-8", "surrogatepass")) > _SLOW_WORD_PIECE


def _merged(data: bytes, ranks: dict[bytes, int]) -> int:
    """How many tokens byte pair encoding leaves of a piece that is no token itself."""
    parts = [data[at : at + 1] for at in range(len(data))]
    pairs = [ranks.get(b2a_base64(one + other, newline=False)) for one, other in pairwise(parts)]
    while True:
        best = min((rank for rank in pairs if rank is not None), default=None)
        if best is None:
            return len(parts)
        at = pairs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del pairs[at]
        for place in (at - 1, at):
            if 0 <= place < len(pairs):
                pairs[place] = ranks.get(b2a_base64(parts[place] + parts[place + 1], newline=False))


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
