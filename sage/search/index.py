"""The index of one base: its segments and their catalog, changed and kept together.

It decides what to add, delete and merge; it never reads a file of the knowledge base.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from operator import gt
from typing import Any, NamedTuple

from sage import __version__
from sage.documents.boilerplate import FOOTER_LINES
from sage.search.catalog import EMPTY, Catalog, from_parts, to_parts
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

FORMAT = 13
"""To be raised whenever what is indexed, or how, changes."""
_TIERS = (64, 512, 4_096)
_IN_TIER = 6
"""So many segments of about one size are merged: an update stays cheap, a search too. Larger ones
stay as they are: to merge them takes hundreds of megabytes."""
_MIN_DEAD_ROWS = 256
_OF_CATALOG = "catalog."


class Contents(NamedTuple):
    """Everything held at one moment."""

    catalog: Catalog
    footers: frozenset[str]
    segments: list[SegmentData]


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
        dead = self.catalog.dead_rows + len(self.catalog.rows_of(gone))
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
        said, footers = manifest["segments"], frozenset(map(str, manifest["footers"]))
        catalog = from_parts(_whole(parts))
        segments = [SegmentData(_parts_of(parts, number)) for number in range(said)]
        store = SegmentStore(stem_of, zip(segments, _deleted(catalog, segments), strict=True))
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise UntrustedIndex(NOT_OURS) from error
    return Index(store, catalog, footers)


def contents_of(index: Index) -> Contents:
    """Everything held at this moment, to be kept; later changes leave it alone."""
    return Contents(index.catalog, index.footers, index.segments.data)


def save(file: IndexFile, contents: Contents, made_for: Mapping[str, Any]) -> int:
    """Write what was held and return its size.

    Raises:
        UntrustedIndex: it cannot be written safely.
    """
    kept = to_parts(contents.catalog)
    parts: dict[str, Part] = {f"{_OF_CATALOG}{name}": MemoryPart(kept[name]) for name in kept}
    for number, segment in enumerate(contents.segments):
        parts |= {f"{number}.{name}": segment.parts[name] for name in PARTS}
    manifest = {
        "made": _made(made_for),
        "segments": len(contents.segments),
        "footers": sorted(contents.footers),
    }
    return file.write(manifest, parts)


def reopened(
    file: IndexFile, contents: Contents, made_for: Mapping[str, Any]
) -> dict[int, SegmentData]:
    """The segments that were just saved, as the file holds them, by the `id` of those saved.

    Raises:
        UntrustedIndex: the file holds others by now.
    """
    manifest, parts = file.read() or ({}, {})
    if manifest.get("made") != _made(made_for) or _whole(parts) != to_parts(contents.catalog):
        return {}
    try:
        return {
            id(one): one.kept_in(_parts_of(parts, at)) for at, one in enumerate(contents.segments)
        }
    except LookupError as error:
        raise UntrustedIndex(DAMAGED) from error


def _whole(parts: Mapping[str, Part]) -> dict[str, bytes]:
    """The parts of the catalog."""
    return {
        name.removeprefix(_OF_CATALOG): part.read(0, part.size)
        for name, part in parts.items()
        if name.startswith(_OF_CATALOG)
    }


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
    if not catalog.dead_rows:
        return [[] for _ in segments]
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
