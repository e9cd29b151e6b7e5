"""What a match is worth: the constants of the ranking, and the lengths it is measured by.

How the constants were chosen is in docs/search.md.
"""

import math

from sage.catalog import Card, Catalog

DOCUMENT_K1, DOCUMENT_B = 1.8, 0.8
SECTION_K1, SECTION_B = 1.6, 0.75
SECTION_BOOSTS = {"headings": 10, "body": 10, "code": 10}
UNIT = 100 * 10
"""Occurrences are counted in whole numbers, so that no order of adding changes a score."""
DOCUMENT_BOOSTS = {"title": 2.2, "aliases": 2.0, "tags": 1.0, "summary": 0.6, "path": 1.1}
FIELD_K1 = 1.2
TITLE_K1 = 2.0
BEST_SECTION, SECOND_SECTION = 0.8, 0.15
NEARNESS = 0.6
NEAR_WORDS = 8
NEAR_SECTIONS = 30
CANDIDATES = 80
STRENGTH = 4.0
"""The strength per unit of rarity at which a score passes 1 - 1/e; see docs/search.md."""
INDEX_PAGE = 0.9
STATUS = {"draft": 0.9, "resolved": 0.95, "superseded": 0.7, "deprecated": 0.7}


class Scale:
    """Lengths and averages of one catalog: what every score is measured by."""

    def __init__(self, catalog: Catalog) -> None:
        cards = catalog.slots
        self.documents = max(len(cards), 1)
        self.sections = max(catalog.section_count, 1)
        total = sum(card.length for card in cards) or 1
        ratio = DOCUMENT_K1 * DOCUMENT_B * self.documents / total
        least = DOCUMENT_K1 * (1 - DOCUMENT_B)
        self.document_norms = [least + ratio * card.length for card in cards]
        """How much a document must hold of a term to count as an average one."""
        self.section_least = SECTION_K1 * (1 - SECTION_B)
        self.section_ratio = SECTION_K1 * SECTION_B * self.sections / total
        """The same for a section: the least, and what each word of it adds."""
        titles = sum(card.title_length for card in cards) or 1
        self.title_ratio = self.documents / titles
        paths = sum(card.path_length for card in cards) or 1
        self.path_ratio = self.documents / paths

    def field_worth(self, name: str, count: float, card: Card) -> float:
        """What a term in a field of the document itself is worth."""
        if name == "title":
            norm = TITLE_K1 * card.title_length * self.title_ratio
            worth = count * (TITLE_K1 + 1) / (count + norm)
        else:
            norm = FIELD_K1
            if name == "path":
                norm *= 0.25 + 0.75 * card.path_length * self.path_ratio
            worth = count * (FIELD_K1 + 1) / (count + norm)
        return DOCUMENT_BOOSTS[name] * worth


def rarity(holding: int, all_: int) -> float:
    """Lucene's inverse document frequency: never negative, no bonus for common words."""
    return math.log(1 + (all_ - holding + 0.5) / (holding + 0.5))


def standing(card: Card) -> float:
    """Pages that only lead to others, or are not current, stand behind those that answer."""
    return (INDEX_PAGE if card.is_index else 1.0) * STATUS.get(card.status, 1.0)


def shown_score(strength: float, possible: float) -> float:
    """A strength as a number in (0, 1] that means the same for every query.

    `possible` is the summed rarity of all that was asked for, found or not.
    """
    score = 1 - math.exp(-strength / (STRENGTH * possible)) if possible > 0 else 1.0
    return max(0.0001, round(score, 4))
