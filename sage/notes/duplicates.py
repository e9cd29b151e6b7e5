"""Sections that say the same, with the sentences in which they do."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sage.documents.document import Document, section_topic
from sage.notes.similarity import alike, matter_of, pairs_of, share_held

if TYPE_CHECKING:
    from sage.semantic.nearness import Nearness

DEFAULT_LEAST = 0.5
_MOST_SENTENCES = 3
_SAME_SENTENCE = 0.8
_SENTENCE = re.compile(r"[^.!?。\n|]{20,400}")


class Duplicate(NamedTuple):
    """Two sections that say much the same."""

    first: str
    second: str
    """Their topics."""
    likeness: float
    sentences: tuple[str, ...]
    by: str = ""
    """`meaning` where they say it in other words."""

    @property
    def answer(self) -> dict[str, Any]:
        """The same as an object for programs."""
        return {name: value for name, value in self._asdict().items() if name != "by" or value}


def duplicates(
    documents: Sequence[Document],
    least: float = DEFAULT_LEAST,
    nearness: "Nearness | None" = None,
) -> list[Duplicate]:
    """Pairs of sections that are alike at least so much, the most alike first.

    Args:
        nearness: what is near in meaning; None to go by words alone.
    """
    sections = [
        (document, section)
        for document in documents
        if not document.is_index
        for section in document.sections
    ]
    texts = [document.text(section) for document, section in sections]
    found = [
        Duplicate(
            section_topic(*sections[first]),
            section_topic(*sections[second]),
            round(near, 3),
            _shared_sentences(texts[first], texts[second]),
        )
        for first, second, near in alike([pairs_of(text) for text in texts], least)
    ]
    if nearness is not None:
        pages = [document for document in documents if not document.is_index]
        found += _in_other_words(found, pages, least, nearness)
    return sorted(found, key=lambda one: (-one.likeness, one.first, one.second))


def _in_other_words(
    known: Sequence[Duplicate], pages: Sequence[Document], least: float, nearness: "Nearness"
) -> list[Duplicate]:
    """Pairs that mean the same and are not known by their words."""
    pairs = {frozenset(one[:2]) for one in known}
    return [
        Duplicate(one.first, one.second, one.likeness, (), "meaning")
        for one in nearness.doubles(pages, least)
        if frozenset(one[:2]) not in pairs
    ]


def _shared_sentences(first: str, second: str) -> tuple[str, ...]:
    shared = []
    for match in _SENTENCE.finditer(first):
        matter = matter_of(match.group())
        if len(matter) > 2 and share_held(matter, second) >= _SAME_SENTENCE:
            shared.append(" ".join(match.group().split()))
        if len(shared) == _MOST_SENTENCES:
            break
    return tuple(shared)
