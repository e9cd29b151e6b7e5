"""Rows in segments: read from their arrays, and changed by Whoosh's writer.

To read them needs no Whoosh, which takes as long to import as a kept index to open: only a change
does. What a row means is the catalog's, what a match is worth the ranking's.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sage.terms.postings import Leaf, PostingReader, Row, Segment, SegmentData, Stem


class SegmentStore:
    """Rows in segments: appended, deleted and merged. Its owner locks."""

    def __init__(
        self, stem: Stem, segments: Iterable[tuple[SegmentData, Iterable[int]]] = ()
    ) -> None:
        """Args:
        stem: what the forms of one word share.
        segments: the arrays of each, and its deleted rows.
        """
        self._stem = stem
        kept = enumerate(segments)
        self._serve([Segment(f"kept {at}", data, frozenset(dead)) for at, (data, dead) in kept])

    @property
    def data(self) -> list[SegmentData]:
        """The arrays of every segment."""
        return [leaf.data for leaf in self.reader.leaves]

    @property
    def size_bytes(self) -> int:
        return sum(data.size_bytes for data in self.data)

    @property
    def memory_bytes(self) -> int:
        """What of them is in memory as a whole."""
        return sum(data.memory_bytes for data in self.data)

    def change(self, deleted: Collection[int], added: Iterable[Row], merged: int = 0) -> None:
        """Delete rows by number and add others behind the last.

        With `merged`, the rows of that many last segments follow the added ones in one segment.
        """
        from sage.terms.segment_writer import changed

        self._serve(changed(self._segments, self._stem, deleted, added, merged))

    def replace(self, replaced: Mapping[int, SegmentData]) -> None:
        """Go on with other arrays of the same content, by the `id` of those that they replace."""
        self._serve(
            [replace(one, data=replaced.get(id(one.data), one.data)) for one in self._segments]
        )

    def _serve(self, segments: Sequence[Segment]) -> None:
        leaves: list[Leaf] = []
        base_row = 0
        for segment in segments:
            leaves.append(Leaf(segment.name, segment.data, base_row))
            base_row += len(segment.data.lengths)
        self._segments = segments
        self.reader = PostingReader(leaves, self._stem)
