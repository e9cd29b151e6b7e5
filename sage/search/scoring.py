"""What a match is worth: the constants of the ranking, and the lengths it is measured by.

How the constants were chosen is in docs/search.md.
"""

import math
from array import array
from collections.abc import Sequence

from sage.search.catalog import Catalog, DocumentEntry, SectionEntry

DOCUMENT_K1, DOCUMENT_B = 1.8, 0.8
SECTION_K1, SECTION_B = 2.0, 0.75
SHORT_B = 0.6
"""How much length counts where documents are notes: a longer one says more, not the same in more
words."""
ONLY_SECTION_K1 = 1.6
"""Where a document is a single section: its words were counted once already."""
MANY_SECTIONS = 3
"""Sections of an average document that is divided."""
SHORT, LONG = 100, 400
"""Words of an average document that is a note, and of one that is a page."""
SECTION_BOOSTS = {"headings": 10, "body": 10, "code": 10}
UNIT = 100 * 10
"""Occurrences are counted in whole numbers, so that no order of adding changes a score."""
DOCUMENT_BOOSTS = {"title": 2.2, "aliases": 2.0, "tags": 1.0, "summary": 0.6, "path": 1.1}
FIELD_K1 = 1.2
TITLE_K1 = 1.8
BEST_SECTION, ONLY_SECTION, SECOND_SECTION = 0.75, 0.8, 0.15
"""What the best section, a single one and the second best add to their document."""
NEARNESS = 0.6
NEAR_WORDS = 8
NEAR_SECTIONS = 30
CANDIDATES = 80
HEADING = 1.5
LEAST_SAID = 0.6
"""The share of what was asked that a heading must hold to say it."""
MOST_HEADINGS = 20
"""Headings that are looked at."""
NEARLY = 0.9
"""The share of the best section's score that makes a second one of the page worth showing."""
STRENGTH = 4.0
"""The strength per unit of rarity at which a score passes 1 - 1/e; see docs/search.md."""
INDEX_PAGE, FOLDER_PAGE = 0.9, 0.95
STATUS = {"draft": 0.9, "resolved": 0.95, "superseded": 0.7, "deprecated": 0.7}


class CorpusStats:
    """Lengths and averages of one catalog: what every score is measured by."""

    def __init__(self, catalog: Catalog) -> None:
        entries = catalog.slots
        self.documents = max(len(entries), 1)
        self.sections = max(catalog.section_count, 1)
        total = sum(entry.length for entry in entries) or 1
        self.length = total / self.documents
        """The words of an average document."""
        self.pages = min(1.0, max(0.0, (self.length - SHORT) / (LONG - SHORT)))
        """How far the documents are pages rather than notes, from 0 to 1."""
        document_b = SHORT_B + (DOCUMENT_B - SHORT_B) * self.pages
        section_b = SHORT_B + (SECTION_B - SHORT_B) * self.pages
        ratio = DOCUMENT_K1 * document_b * self.documents / total
        least = DOCUMENT_K1 * (1 - document_b)
        self.document_norms = array("d", (least + ratio * entry.length for entry in entries))
        """How much a document must hold of a term to count as an average one."""
        self.standings = array("d", map(standing, entries))
        divided = (self.sections / self.documents - 1) / (MANY_SECTIONS - 1)
        divided = min(1.0, max(0.0, divided))
        self.best_section = ONLY_SECTION + (BEST_SECTION - ONLY_SECTION) * divided
        self.section_k1 = ONLY_SECTION_K1 + (SECTION_K1 - ONLY_SECTION_K1) * divided
        self.section_least = self.section_k1 * (1 - section_b)
        self.section_ratio = self.section_k1 * section_b * self.sections / total
        """The same for a section: the least, and what each word of it adds."""
        titles = sum(entry.title_length for entry in entries) or 1
        self.title_ratio = self.documents / titles
        paths = sum(entry.path_length for entry in entries) or 1
        self.path_ratio = self.documents / paths

    def field_score(self, name: str, count: float, entry: DocumentEntry) -> float:
        """What a term in a field of the document itself is worth."""
        if name == "title":
            norm = TITLE_K1 * entry.title_length * self.title_ratio
            score = count * (TITLE_K1 + 1) / (count + norm)
        else:
            norm = FIELD_K1
            if name == "path":
                norm *= 0.25 + 0.75 * entry.path_length * self.path_ratio
            score = count * (FIELD_K1 + 1) / (count + norm)
        return DOCUMENT_BOOSTS[name] * score


def heading_words(section: SectionEntry) -> int:
    """The words that a heading is said with; none where it is the title, which has its field."""
    return max(section.heading_length, 1) if section.anchor else 0


def rarity(holding: int, all_: int) -> float:
    """Lucene's inverse document frequency: never negative, no bonus for common words."""
    return math.log(1 + (all_ - holding + 0.5) / (holding + 0.5))


def standing(entry: DocumentEntry) -> float:
    """Pages that only lead to others, or are not current, stand behind those that answer.

    `_index.md` is how site generators name the page of a folder: some lead, some answer.
    """
    is_folder = entry.path.rpartition("/")[2].startswith("_")
    leads = (FOLDER_PAGE if is_folder else INDEX_PAGE) if entry.is_index else 1.0
    return leads * STATUS.get(entry.status, 1.0)


def shown_score(strength: float, possible: float) -> float:
    """A strength as a number in (0, 1] that means the same for every query.

    `possible` is the summed rarity of all that was asked for, found or not.
    """
    score = 1 - math.exp(-strength / (STRENGTH * possible)) if possible > 0 else 1.0
    return max(0.0001, round(score, 4))


def least_distance(here: Sequence[int], there: Sequence[int]) -> int:
    """The number of words from one to the other; one more against the order of the query."""
    best = NEAR_WORDS + 1
    i = j = 0
    while i < len(here) and j < len(there):
        gap = there[j] - here[i]
        if gap > 0:
            best = min(best, gap)
            i += 1
        else:
            best = min(best, 1 - gap)
            j += 1
    return best
