"""The index of one base: its segments and their catalog, changed and kept together.

It decides what to add, delete and merge; it never reads a file of the knowledge base.
"""

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from operator import gt
from typing import Any

from sage import __version__
from sage.documents.boilerplate import FOOTER_LINES
from sage.search.catalog import EMPTY, Catalog, from_json, to_json
from sage.search.indexing import Described
from sage.terms import analysis
from sage.terms.analysis import stem_of
from sage.terms.index_file import (
    DAMAGED,
    NOT_OURS,
    OTHER_MAPPING,
    OTHER_ROOT,
    OTHER_VERSION,
    IndexFile,
    MemoryPart,
    Part,
    UntrustedIndex,
)
from sage.terms.postings import PARTS, SegmentData
from sage.terms.segments import SegmentStore

FORMAT = 12
"""To be raised whenever what is indexed, or how, changes."""
_TIERS = (64, 512, 4_096)
_IN_TIER = 6
"""So many segments of about one size are merged: an update stays cheap, a search too. Larger ones
stay as they are: to merge them takes hundreds of megabytes."""
_MIN_DEAD_ROWS = 256
_TOGETHER = 500
"""Values of a list that are written in one piece."""


Contents = tuple[dict[str, Any], list[SegmentData]]
"""Everything held at one moment: the catalog and what belongs to it, and the segments."""


@dataclass
class Index:
    """One knowledge base's index and all that belongs to it."""

    segments: SegmentStore = field(default_factory=lambda: SegmentStore(stem_of))
    catalog: Catalog = EMPTY
    footers: frozenset[str] = frozenset()
    """The footers that were left out of every entry's rows."""

    def change(self, gone: Collection[str], described: Sequence[Described]) -> None:
        """Take documents out and put others in; the old ones are served until it is done."""
        gone = {path for path in gone if path in self.catalog.entries}
        sizes = self.segments.reader.segment_sizes
        merged = self._merged(gone, sizes)
        rows = [row for _, document_rows in described for row in document_rows]
        self.segments.change(self.catalog.rows_of(gone), rows, merged)
        merged_from = sum(sizes[: len(sizes) - merged]) if merged else None
        self.catalog = self.catalog.changed(gone, [entry for entry, _ in described], merged_from)

    def _merged(self, gone: Collection[str], sizes: Sequence[int]) -> int:
        """How many of the last segments to merge: all when most is dead."""
        dead = self.catalog.dead_rows + sum(self.catalog.entries[path].rows for path in gone)
        alive = sum(sizes) - dead
        if dead > max(alive, _MIN_DEAD_ROWS):
            return len(sizes)
        return _same_size(sizes)


def _same_size(sizes: Sequence[int]) -> int:
    """The number of last segments up to a size that enough of them have."""
    least = 0
    for most in _TIERS:
        last = list(takewhile(partial(gt, most), reversed(sizes)))
        if sum(size >= least for size in last) >= _IN_TIER:
            return len(last)
        least = most
    return 0


def load(file: IndexFile, made_for: Mapping[str, Any]) -> Index | None:
    """The kept index, if it was made by this very program for the same settings.

    Raises:
        UntrustedIndex: it must not be used; the message says why.
    """
    found = file.read()
    if found is None:
        return None
    manifest, parts = found
    made = manifest.get("made")
    if made != _made(made_for):
        if not isinstance(made, dict) or not _program().items() <= made.items():
            raise UntrustedIndex(OTHER_VERSION)
        is_moved = made.get("root") != made_for["root"]
        raise UntrustedIndex(OTHER_ROOT if is_moved else OTHER_MAPPING)
    try:
        kept = parts["catalog"]
        data = json.loads(kept.read(0, kept.size).decode("utf-8", "surrogatepass"))
        catalog = from_json(data["catalog"])
        segments = [SegmentData(_parts_of(parts, number)) for number in range(data["segments"])]
        footers = frozenset(map(str, data["footers"]))
        store = SegmentStore(stem_of, zip(segments, _deleted(catalog, segments), strict=True))
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise UntrustedIndex(NOT_OURS) from error
    return Index(store, catalog, footers)


def contents_of(index: Index) -> Contents:
    """Everything held at this moment, to be kept; later changes leave it alone."""
    data = {
        "catalog": to_json(index.catalog),
        "segments": len(index.segments.data),
        "footers": sorted(index.footers),
    }
    return data, index.segments.data


def save(file: IndexFile, contents: Contents, made_for: Mapping[str, Any]) -> int:
    """Write what was held and return its size.

    Raises:
        UntrustedIndex: it cannot be written safely.
    """
    data, segments = contents
    parts: dict[str, Part] = {"catalog": MemoryPart(b"".join(json_pieces(data)))}
    for number, segment in enumerate(segments):
        parts |= {f"{number}.{name}": segment.parts[name] for name in PARTS}
    return file.write({"made": _made(made_for)}, parts)


def reopened(
    file: IndexFile, contents: Contents, made_for: Mapping[str, Any]
) -> dict[int, SegmentData]:
    """The segments that were just saved, as the file holds them, by the `id` of those saved.

    Raises:
        UntrustedIndex: the file holds others by now.
    """
    saved, segments = contents
    manifest, parts = file.read() or ({}, {})
    kept = parts.get("catalog", MemoryPart(b""))
    if manifest.get("made") != _made(made_for) or not _is_json_of(kept, saved):
        return {}
    try:
        return {id(one): one.kept_in(_parts_of(parts, at)) for at, one in enumerate(segments)}
    except LookupError as error:
        raise UntrustedIndex(DAMAGED) from error


def json_pieces(value: Any) -> Iterator[bytes]:
    """A value as JSON, in pieces of bounded size.

    In one text every letter takes four bytes as soon as one does: the catalog of 26,000 pages and
    what it was joined from came to 300 MB, more than all else that a build holds.
    """
    if isinstance(value, Mapping):
        for number, (name, inner) in enumerate(value.items()):
            yield (b"," if number else b"{") + _as_json(name) + b":"
            yield from json_pieces(inner)
        yield b"}" if value else b"{}"
    elif isinstance(value, list | tuple) and len(value) > _TOGETHER:
        for start in range(0, len(value), _TOGETHER):
            yield (b"," if start else b"[") + _as_json(value[start : start + _TOGETHER])[1:-1]
        yield b"]"
    elif isinstance(value, list) and value and isinstance(value[0], list | tuple):
        for number, inner in enumerate(value):
            yield b"," if number else b"["
            yield from json_pieces(inner)
        yield b"]"
    else:
        yield _as_json(value)


def _is_json_of(kept: Part, value: Any) -> bool:
    """Whether bytes are what a value looks like as JSON."""
    at = 0
    for piece in json_pieces(value):
        end = at + len(piece)
        if end > kept.size or kept.read(at, end) != piece:
            return False
        at = end
    return at == kept.size


def _as_json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _parts_of(parts: Mapping[str, Part], number: int) -> dict[str, Part]:
    return {name: parts[f"{number}.{name}"] for name in PARTS}


def _deleted(catalog: Catalog, segments: Sequence[SegmentData]) -> list[list[int]]:
    """For each segment the rows that belong to no document any more.

    Raises:
        ValueError: the catalog knows more rows than there are, or fewer.
    """
    owners = catalog.owners
    if len(owners) != sum(len(segment.lengths) for segment in segments):
        raise ValueError("the rows and the segments differ")
    deleted: list[list[int]] = []
    first = 0
    for segment in segments:
        rows = owners[first : first + len(segment.lengths)]
        deleted.append([row for row, slot in enumerate(rows) if slot < 0])
        first += len(rows)
    return deleted


def _made(made_for: Mapping[str, Any]) -> dict[str, Any]:
    return {**_program(), **made_for}


def _program() -> dict[str, Any]:
    """What of this program decides how an index looks."""
    return {
        "format": FORMAT,
        "sage": __version__,
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "byteorder": sys.byteorder,
        "longest": [analysis.MAX_TERM, analysis.MAX_PARTS, FOOTER_LINES],
    }
