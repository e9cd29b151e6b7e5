"""Candidates for a pack: a passage, how well it fits and how relevant it is, and the reasons."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter

from sage.passages import Passage

RELEVANCE_WEIGHT = 2.2
"""What the search counts against the recipe, whose fit is about 1 for a good page."""
_SIZE_POWER = 0.1
_SMALL_BYTES = 600
"""Below this size a section is not worth more for being shorter."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that speaks for a passage."""

    words: str
    weight: float


@dataclass(frozen=True, slots=True)
class Fit:
    """How well something fits, and why."""

    value: float
    reasons: tuple[Reason, ...] = ()
    is_core: bool = False
    is_meant: bool = True
    """False when the front matter names other task types: only the search brings it in."""
    kinds: frozenset[str] = frozenset()
    """The kinds that the title and the folders of a page show."""
    languages: tuple[str, ...] = ()
    """The languages a page is for; none means all."""

    @property
    def evidence(self) -> float:
        """What speaks for it, summed."""
        return sum(reason.weight for reason in self.reasons)


@dataclass(slots=True, eq=False)
class Candidate:
    """A passage that may come, with its worth to the call at hand."""

    passage: Passage
    fit: Fit
    relevance: float = 0.0
    replaces: str = ""
    """The page that the search found and this one replaces."""
    path: str = field(init=False)
    key: tuple[str, int] = field(init=False)
    """Its place in the knowledge base; unique."""
    appeal: float = field(init=False)
    """Its worth, less for a long text: what it brings to an empty pack."""
    order: tuple[float, str, int] = field(init=False)
    """Sorts the best first."""

    def __post_init__(self) -> None:
        passage = self.passage
        self.path = path = passage.document.path
        self.key = (path, passage.first)
        worth = self.fit.value + RELEVANCE_WEIGHT * self.relevance
        size = passage.size_bytes
        if size > _SMALL_BYTES:
            worth *= (_SMALL_BYTES / size) ** _SIZE_POWER
        self.appeal = worth
        self.order = (-worth, path, passage.first)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Everything that speaks for it beside the task's words."""
        if not self.replaces:
            return self.fit.reasons
        return (Reason(f"replaces {self.replaces}", 1.2), *self.fit.reasons)


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates in the order in which they would come into an empty pack."""
    return sorted(candidates, key=attrgetter("order"))


class Stock:
    """Candidates that are kept from call to call, the best first."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = best_first(candidates)
        self.by_path: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            self.by_path.setdefault(candidate.path, []).append(candidate)


class Lineup:
    """The candidates of one call, the best first: what a search found, merged into a stock.

    A knowledge base may hold tens of thousands of sections, and a pack takes a few dozen: only
    as many are looked at as are taken.
    """

    def __init__(
        self, stock: Stock, found: Iterable[Candidate] = (), replaced: Container[str] = ()
    ) -> None:
        """What the stock has on a replaced path is among the found, or does not belong."""
        self._stock = stock
        self._found = Stock(found)
        self._replaced = replaced

    def __iter__(self) -> Iterator[Candidate]:
        found = iter(self._found.candidates)
        ahead = next(found, None)
        for one in self._stock.candidates:
            while ahead is not None and ahead.order < one.order:
                yield ahead
                ahead = next(found, None)
            if one.path not in self._replaced:
                yield one
        if ahead is not None:
            yield ahead
            yield from found

    def first(self, most: int) -> list[Candidate]:
        """The best."""
        return list(islice(self, most))

    def on(self, path: str) -> Sequence[Candidate]:
        """The candidates of one document."""
        source = self._found if path in self._replaced else self._stock
        return source.by_path.get(path, ())
