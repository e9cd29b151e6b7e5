"""Sections that say the same, with the sentences in which they do."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sage.documents.document import Document, section_topic
from sage.notes.similarity import alike, matter_of, pairs_of, share_held

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


def duplicates(documents: Sequence[Document], least: float = DEFAULT_LEAST) -> list[Duplicate]:
    """Pairs of sections that are alike at least so much, the most alike first."""
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
    return sorted(found, key=lambda one: (-one.likeness, one.first, one.second))


def _shared_sentences(first: str, second: str) -> tuple[str, ...]:
    shared = []
    for match in _SENTENCE.finditer(first):
        matter = matter_of(match.group())
        if len(matter) > 2 and share_held(matter, second) >= _SAME_SENTENCE:
            shared.append(" ".join(match.group().split()))
        if len(shared) == _MOST_SENTENCES:
            break
    return tuple(shared)
