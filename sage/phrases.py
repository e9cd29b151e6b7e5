"""Which documents hold a phrase word for word."""

from collections.abc import Iterator, Sequence

from sage.analysis import Word, terms_of
from sage.deadline import Deadline
from sage.postings import FIELDS, unpack
from sage.ranking import Ranker


def holding(ranker: Ranker, phrase: Sequence[Word], deadline: Deadline) -> set[int]:
    """The slots of the documents in which the words stand in this order, one after the other."""
    terms = list(_placed(phrase))
    slots: set[int] = set()
    owners = ranker.catalog.owners
    for name in FIELDS:
        for row in _rows(ranker, name, terms, deadline):
            slots.add(owners[row])
    slots.discard(-1)
    return slots


def _placed(phrase: Sequence[Word]) -> Iterator[tuple[str, int]]:
    at = 0
    for word in phrase:
        end = at + 1
        for term in terms_of(word):
            yield term.form, at + term.offset
            end = max(end, at + term.offset + 1)
        at = end


def _rows(
    ranker: Ranker, name: str, terms: Sequence[tuple[str, int]], deadline: Deadline
) -> set[int]:
    """The rows whose field holds every term at its place after one start."""
    starts: dict[int, set[int]] | None = None
    for form, offset in terms:
        here: dict[int, set[int]] = {}
        for base, postings in ranker.occurrences(name, form):
            for row, places in zip(postings.rows, postings.places, strict=True):
                row += base
                if starts is not None and row not in starts:
                    continue
                found = {place - offset for place in unpack(places)}
                found &= starts[row] if starts is not None else found
                if found:
                    here[row] = found
        starts = here
        if not starts or deadline.expired:
            return set()
    return set(starts or ())
