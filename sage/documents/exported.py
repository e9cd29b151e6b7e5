"""What `sage export` wrote: its block in a file that people also edit, and files all of its own.

The marks stand alone on their lines. Those that a closed code fence shows are an example and count
for nothing. Everything works on bytes, so that what is not ours stays as it is in any encoding.
"""

import bisect
import re
from typing import NamedTuple

BEGIN = b"<!-- sage:export:begin"
END = b"<!-- sage:export:end -->"
WHOLE = b"<!-- sage:export:file"
"""How the mark of a file begins that is ours from its first byte to its last."""
EXPORTED = ("exported", "written by sage export, so it is not read back")
"""The rule and the words of a file of ours among the pages."""
_BOM = b"\xef\xbb\xbf"
_MARK_END = b"-->"
_FENCE = re.compile(rb" {0,3}(`{3,40}|~{3,40})(?P<info>[^\r\n]*)")
_LOOKED_AT = 40
"""Lines of a file among which the mark of a whole one stands."""


class ExportedBlock(NamedTuple):
    """Where a block stands in a file, from the first byte of its mark to the last of the other."""

    start: int
    end: int
    mark: bytes
    """Its first line, without the line's end."""


class Damaged(ValueError):
    """The marks of a file do not make one block; the words say why."""


def is_exported(data: bytes) -> bool:
    """Whether a file is ours as a whole."""
    return bool(whole_mark(data))


def whole_mark(data: bytes) -> bytes:
    """The line that marks a file as ours; empty when it is not."""
    lines = data[:20_000].removeprefix(_BOM).split(b"\n")[:_LOOKED_AT] if WHOLE in data else []
    return next((line.rstrip() for line in lines if line.startswith(WHOLE)), b"")


def find_block(data: bytes) -> ExportedBlock | None:
    """Our block in a file; None when there is none.

    Raises:
        Damaged: there are several, or half of one.
    """
    if BEGIN not in data and END not in data:
        return None
    lines = _Lines(data)
    blocks: list[ExportedBlock] = []
    at = 0
    while at < len(lines.texts):
        text = lines.texts[at]
        if _is_begin(text):
            end = lines.end_of_block(at)
            if end is None:
                raise Damaged(f"the block that begins on line {at + 1} has no end")
            blocks.append(ExportedBlock(lines.starts[at], lines.starts[end] + len(END), text))
            at = end
        elif text == END:
            raise Damaged(f"line {at + 1} ends a block that does not begin")
        else:
            at = lines.end_of_fence(at, text)
        at += 1
    if len(blocks) > 1:
        raise Damaged(f"there are {len(blocks)} blocks")
    return blocks[0] if blocks else None


def without_export(text: str) -> str:
    """A text without our block, in as many lines: what a page says itself."""
    if "sage:export" not in text:
        return text
    data = text.encode("utf-8", "surrogatepass")
    try:
        block = find_block(data)
    except Damaged:
        return text
    if block is None:
        return text
    lines = b"\n" * data.count(b"\n", block.start, block.end)
    return (data[: block.start] + lines + data[block.end :]).decode("utf-8", "surrogatepass")


def _is_begin(line: bytes) -> bool:
    return line.startswith(BEGIN) and line.endswith(_MARK_END)


class _Lines:
    """The lines of a file without their ends, and what stands on which."""

    def __init__(self, data: bytes) -> None:
        self.texts: list[bytes] = []
        self.starts: list[int] = []
        # A mark may be the first thing in a file, behind the mark of its encoding.
        at = len(_BOM) if data.startswith(_BOM) else 0
        for line in data[at:].split(b"\n"):
            self.texts.append(line.rstrip(b" \t\r"))
            self.starts.append(at)
            at += len(line) + 1
        self._begins = [at for at, text in enumerate(self.texts) if _is_begin(text)]
        self._ends = [at for at, text in enumerate(self.texts) if text == END]
        self._closers: dict[bytes, list[int]] = {}

    def end_of_block(self, begin: int) -> int | None:
        """The line that ends the block of a mark; None when another begins before it."""
        end = _after(self._ends, begin)
        other = _after(self._begins, begin)
        return None if end is None or (other is not None and other < end) else end

    def end_of_fence(self, at: int, text: bytes) -> int:
        """The last line of the fence that opens here; the line itself when none does.

        A fence that closes within a block was left open above it: it would hide the mark.
        """
        opening = _FENCE.fullmatch(text)
        if opening is None or (opening[1][:1] == b"`" and b"`" in opening["info"]):
            return at
        close = _after(self._closing(opening[1]), at)
        if close is None:
            return at
        begin = _after(self._begins, at)
        if begin is not None and begin < close:
            end = _after(self._ends, begin)
            if end is None or end > close:
                return at
        return close

    def _closing(self, fence: bytes) -> list[int]:
        if fence not in self._closers:
            closes = re.compile(rb" {0,3}" + re.escape(fence) + fence[:1] + rb"*")
            found = [at for at, text in enumerate(self.texts) if closes.fullmatch(text)]
            self._closers[fence] = found
        return self._closers[fence]


def _after(places: list[int], at: int) -> int | None:
    place = bisect.bisect_right(places, at)
    return places[place] if place < len(places) else None
