"""What of a base is near in meaning: to a text, to a page, and one section to another.

For those who compare pages and ask no question. There is none where only words are compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sage.documents.document import Page, section_topic
from sage.search.fusion import Likeness, Meaning
from sage.search.searcher import Searcher
from sage.terms.index_file import UntrustedIndex

_LEAST_WORDS = 30
"""A shorter section only says where to go on, and much of what is near is its heading."""


class NearSection(NamedTuple):
    """A section that is about what a text says, in whatever words."""

    topic: str
    title: str
    similarity: float


class SameSections(NamedTuple):
    """Two sections that mean much the same."""

    first: str
    second: str
    """Their topics."""
    likeness: float


class Nearness:
    """What is near in one generation of the index, of the layers that it holds."""

    def __init__(
        self,
        searcher: Searcher,
        meaning: Meaning,
        likeness: Likeness,
        distrust: Callable[[UntrustedIndex], None],
    ) -> None:
        self._searcher = searcher
        self._catalog = searcher.catalog
        self._meaning = meaning
        self._likeness = likeness
        self._distrust = distrust

    def to_text(self, text: str, pages: Sequence[Page], most: int) -> list[NearSection]:
        """The sections of some pages that are about what a text says, one of each page."""
        similarities = self._meaning.compare(text, self._catalog)
        if similarities is None:
            return []
        slots = self._slots(pages)
        found = []
        for near in similarities.best(most, slots.__contains__):
            topic = self._topic(slots, near.slot, near.section)
            if topic and near.similarity >= similarities.bounds.near:
                found.append(NearSection(topic, slots[near.slot].title, near.similarity))
        return found

    def to_page(self, path: str) -> Mapping[str, float]:
        """The pages that are nearer to one than most are, by path, each with 0 to 1."""
        slot = self._catalog.places.get(path)
        if slot is None:
            return {}
        near = self._likeness.of_document(slot)
        return {self._catalog.slots[other].path: share for other, share in near.items()}

    def doubles(self, pages: Sequence[Page], least: float) -> Iterator[SameSections]:
        """The sections of some pages that mean much the same as one of another of them."""
        slots = self._slots(pages)
        for double in self._likeness.doubles(least, slots.__contains__):
            first, second = (
                self._topic(slots, slot, place, _LEAST_WORDS)
                for slot, place in (double.first, double.second)
            )
            if first and second:
                yield SameSections(first, second, double.likeness)

    def _slots(self, pages: Sequence[Page]) -> dict[int, Page]:
        places = self._catalog.places
        return {places[page.path]: page for page in pages if page.path in places}

    def _topic(self, slots: Mapping[int, Page], slot: int, place: int, least_words: int = 0) -> str:
        """The address of a section; empty where the page has no such section, or no longer."""
        try:
            known = self._searcher.documents.document(slot).sections[place] if place >= 0 else None
        except UntrustedIndex as error:
            self._distrust(error)
            return ""
        page = slots[slot]
        if known is None or known.length < least_words or known.ordinal >= len(page.sections):
            return ""
        section = page.sections[known.ordinal]
        return section_topic(page, section) if section.start_line == known.start_line else ""


def nearness_of(searcher: Searcher, distrust: Callable[[UntrustedIndex], None]) -> Nearness | None:
    """What is near in what a searcher searches; None while there are no vectors."""
    meaning = searcher.meaning
    likeness = meaning.likeness(searcher.catalog) if meaning is not None else None
    if meaning is None or likeness is None:
        return None
    return Nearness(searcher, meaning, likeness, distrust)
