"""What one search asks of an index, and what reads it: the embedded one or a cluster's."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sage.search.query import Concept, Filters
from sage.terms.postings import Postings


@dataclass(frozen=True, slots=True)
class Wanted:
    """An analysed query: what candidates must or may hold, and where they may lie."""

    concepts: Sequence[Concept] = ()
    """Candidates hold a form of at least one of them."""
    together: tuple[str, ...] = ()
    """Forms of words that each of them holds."""
    excluded: tuple[tuple[str, ...], ...] = ()
    """Forms of words that no candidate holds."""
    among: Collection[int] | None = None
    """The documents that they are of; None means all."""
    without: Collection[int] = ()
    """Documents that none of them is."""
    filters: tuple[Filters, ...] = ()
    """What they must be besides: what the query says, and what the call does."""
    layers: Collection[str] | None = None
    """The layers that were asked for; None means every one that may be seen."""
    depth: int = 0
    """How many documents will be ranked, where that is more than the best answers."""

    @property
    def forms(self) -> frozenset[str]:
        """Every form whose occurrences are asked for afterwards."""
        of_concepts = (form for concept in self.concepts for form, _ in concept.forms)
        return frozenset((*of_concepts, *self.together))


class IndexReader(Protocol):
    """One generation of an index, as one search reads it."""

    headings: Sequence[int] | None
    """The words of the heading of each row; None where the records say it."""

    def gather(self, wanted: Wanted) -> int | None:
        """Have the candidates for a query at hand, in place of those before.

        The scope of the caller is part of what the engine is asked, never taken off afterwards.

        Returns:
            How many documents hold any of the concepts; None when all of them are at hand.
        """

    def postings(self, field: str, form: str) -> Sequence[tuple[int, Postings]]:
        """Where a form occurs in the candidates: first row, and what is counted from there."""

    def parts(self, wanted: Wanted) -> Iterator[object]:
        """Have every document that is wanted at hand, some after the others.

        Each part takes the place of the one before, and of the candidates.
        """

    def every(self, wanted: Wanted) -> set[int] | None:
        """Every document that is wanted; None when all of them are at hand."""

    def holders(self, slots: Collection[int]) -> Collection[int]:
        """Which of some documents that are not at hand hold any of the concepts gathered last."""

    def fetch(self, rows: Iterable[int]) -> None:
        """Have the records of some documents at hand: they are the next to be asked for."""

    def record(self, row: int) -> bytes:
        """What is shown of a document, and its sections, packed; by the row of the document."""
