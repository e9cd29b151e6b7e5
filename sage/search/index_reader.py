"""What one search asks of an index, and what reads it: the embedded one or a cluster's."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sage.search.query import Concept, Filters
from sage.terms.postings import Postings


@dataclass(frozen=True, slots=True)
class Wanted:
    """An analysed query: what candidates must or may hold, and where they may lie."""

    concepts: Sequence[Concept] = ()
    """Candidates hold a form of at least one of them."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """Forms that stand one after the other; pages with all forms of one come first."""
    excluded: tuple[tuple[str, ...], ...] = ()
    """Forms of words that no candidate holds."""
    compared: tuple[str, ...] = ()
    """Forms whose places are looked at besides."""
    filters: tuple[Filters, ...] = ()
    """What they must be besides: what the query says, and what the call does."""
    layers: Collection[str] | None = None
    """The layers that were asked for; None means every one that may be seen."""
    deep: bool = False
    """Whether more than the best answers will be looked at."""

    @property
    def forms(self) -> frozenset[str]:
        """Every form whose occurrences are asked for afterwards."""
        of_concepts = (form for concept in self.concepts for form, _ in concept.forms)
        others = (form for forms in (*self.phrases, *self.excluded) for form in forms)
        return frozenset((*of_concepts, *others, *self.compared))


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

    def holders(self, slots: Collection[int]) -> Collection[int]:
        """Which of some documents that are not at hand hold any of the concepts gathered last."""

    def fetch(self, rows: Iterable[int]) -> None:
        """Have the records of some documents at hand: they are the next to be asked for."""

    def record(self, row: int) -> bytes:
        """What is shown of a document, and its sections, packed; by the row of the document."""
