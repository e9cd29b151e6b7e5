"""What a match is worth, and the verdict: whether a base holds what was asked: yes, partly, or no.

The constants of the ranking and the lengths it is measured by; how they were chosen is in
docs/search.md. The verdict is a sum of evidence, fitted on questions of many bases asked of their
own and of the others; `python -m benchmarks.verdicts` measures its error rates.
"""

import math
from array import array
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from sage.search.catalog import Catalog, DocumentEntry
from sage.search.query import Concept
from sage.terms.analysis import is_cjk
from sage.terms.spelling import PlaceOf

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
        lengths = catalog.column("length")
        self.documents = max(len(lengths), 1)
        self.sections = max(catalog.section_count, 1)
        total = sum(lengths) or 1
        self.length = total / self.documents
        """The words of an average document."""
        self.pages = min(1.0, max(0.0, (self.length - SHORT) / (LONG - SHORT)))
        """How far the documents are pages rather than notes, from 0 to 1."""
        document_b = SHORT_B + (DOCUMENT_B - SHORT_B) * self.pages
        section_b = SHORT_B + (SECTION_B - SHORT_B) * self.pages
        ratio = DOCUMENT_K1 * document_b * self.documents / total
        least = DOCUMENT_K1 * (1 - document_b)
        self.document_norms = array("d", (least + ratio * length for length in lengths))
        """How much a document must hold of a term to count as an average one."""
        columns = map(catalog.column, ("path", "is_index", "status"))
        self.standings = array("d", map(standing, *columns))
        divided = (self.sections / self.documents - 1) / (MANY_SECTIONS - 1)
        divided = min(1.0, max(0.0, divided))
        self.best_section = ONLY_SECTION + (BEST_SECTION - ONLY_SECTION) * divided
        self.section_k1 = ONLY_SECTION_K1 + (SECTION_K1 - ONLY_SECTION_K1) * divided
        self.section_least = self.section_k1 * (1 - section_b)
        self.section_ratio = self.section_k1 * section_b * self.sections / total
        """The same for a section: the least, and what each word of it adds."""
        self._titles = list(catalog.column("title_length"))
        self._paths = list(catalog.column("path_length"))
        self.title_ratio = self.documents / (sum(self._titles) or 1)
        self.path_ratio = self.documents / (sum(self._paths) or 1)

    def field_score(self, name: str, count: float, slot: int) -> float:
        """What a term in a field of the document itself is worth."""
        if name == "title":
            norm: float = TITLE_K1 * self._titles[slot] * self.title_ratio
            score = count * (TITLE_K1 + 1) / (count + norm)
        else:
            norm = FIELD_K1
            if name == "path":
                norm *= 0.25 + 0.75 * self._paths[slot] * self.path_ratio
            score = count * (FIELD_K1 + 1) / (count + norm)
        return DOCUMENT_BOOSTS[name] * score


def rarity(holding: int, all_: int) -> float:
    """Lucene's inverse document frequency: never negative, no bonus for common words."""
    return math.log(1 + (all_ - holding + 0.5) / (holding + 0.5))


def standing(path: str, is_index: int, status: str) -> float:
    """Pages that only lead to others, or are not current, stand behind those that answer.

    `_index.md` is how site generators name the page of a folder: some lead, some answer.
    """
    is_folder = path.rpartition("/")[2].startswith("_")
    leads = (FOLDER_PAGE if is_folder else INDEX_PAGE) if is_index else 1.0
    return leads * STATUS.get(status, 1.0)


def standing_of(entry: DocumentEntry) -> float:
    """The same of one page."""
    return standing(entry.path, entry.is_index, entry.status)


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


class Ranked(NamedTuple):
    """A document with its score and its best section."""

    slot: int
    strength: float
    section: int
    """Place among the sections of its entry, -1 when it has none."""
    document_part: float
    section_part: float
    second: int = -1
    """Place of a second section that is nearly as good, -1 when there is none."""


Verdict = Literal["yes", "partly", "no"]

JUDGED = 3
"""So many of the best documents decide."""

OF_SCORE, OF_SCORE_BY_WORDS = 5.5, 4.2
"""What the best score says; of a long question, which no page holds whole, the same says more."""
OF_COVERAGE = 0.8
OF_MISSING = -4.0
OF_WORDS = 1.1
OF_DOCUMENTS, OF_LENGTH = -0.9, -2.2
"""Many documents, and long ones, hold some words of any question."""
OF_FEW, FEW_DOCUMENTS = 0.8, 100
"""A few pages do not hold the words of every question that they answer."""
OF_HOME = 0.8
START = 7.7
LEAST = -1.5
"""Below this sum it is *no*: about 3 of 100 questions that a base answers lie there."""
FEW_WORDS, WHOLE = 2, 0.99
"""So few words that one section has are never *no*: who looks for a name and finds it has it."""
SURELY = 0.0
"""From here on it is *yes*: 94 of 100 questions that a base answers, 6 of 100 that it does not."""
_DOCUMENTS, _LENGTHS = (10, 5_000), (40, 5_000)
"""What was measured: beyond it nothing more is concluded."""

_COMMON, _NO_WORD, _CHINESE = 300, 200_000, 40_000
"""Places in the language: up to the first words say nothing, the second is taken for names that it
does not hold, the third for a pair of Chinese characters, of which it holds few."""
_AT_HOME = 2.0
"""How much commoner than in the language a word is in any text about something."""

TASK_SCORE, TASK_COVERAGE, TASK_LEAST = 0.7, 0.3, 0.20
TASK_OF_PAGES = 0.12
"""Long pages hold some words of any task: more is needed of them than of notes."""
TASK_OF_MISSING = 0.20
TASK_OF_WORDS = 0.10
"""A long task is never met by all its words: from eight words to 28 less is needed."""
FEW, MANY = 8, 28
MANY_DOCUMENTS = 40
MOSTLY = 0.7
"""The share of a task that several pages hold together when it is about something here."""
ENOUGH = 0.32
"""The score of a page that is worth giving to a task, whatever else the task names."""


class Evidence(NamedTuple):
    """What is known of the best results of a query."""

    score: float
    coverage: float
    """The share of what was asked, by rarity, that the best section holds."""
    missing: float
    """The share that no document holds."""
    words: int
    length: float
    """The words of an average document."""
    documents: int
    home: float = 0.0
    """How much commoner a word of the best sections is here than in the language."""
    together: float = 0.0
    """The share that the best sections hold together."""
    pages: float = 1.0
    """How far the documents are pages rather than notes, from 0 to 1."""


class Held(Protocol):
    """Where one concept occurs, and how rare it is."""

    @property
    def rarity(self) -> float:
        """Among the documents."""

    @property
    def section_rarity(self) -> float:
        """Among the sections."""

    def is_in(self, row: int) -> bool:
        """Whether a section holds it."""


def gather_evidence(
    stats: CorpusStats,
    asked: Sequence[tuple[Concept, Held]],
    missing: int,
    possible: float,
    best: Sequence[Ranked],
    rows: Sequence[int],
    place_of: PlaceOf,
) -> Evidence:
    """What the best results say about whether the base holds what was asked.

    Args:
        asked: what was asked for and occurs.
        missing: how many words no document holds.
        possible: the summed rarity of all that was asked for.
        rows: those of the best sections, as many as decide.
    """
    nothing = Evidence(
        0.0, 0.0, 1.0, len(asked) + missing, stats.length, stats.documents, pages=stats.pages
    )
    if not best or not possible:
        return nothing
    held = [
        [one.rarity * concept.weight * one.is_in(row) for concept, one in asked] for row in rows
    ]
    at_home = (
        _background(concept.name, place_of) - one.section_rarity + _AT_HOME
        for concept, one in asked
        if any(map(one.is_in, rows))
    )
    return nothing._replace(
        score=shown_score(best[0].strength, possible),
        coverage=max(map(sum, held)) / possible,
        missing=missing * rarity(0, stats.documents) / possible,
        home=max(0.0, *at_home, 0.0),
        together=sum(map(max, zip(*held, strict=True))) / possible,
    )


def judge(evidence: Evidence) -> Verdict:
    """The verdict on a query."""
    if not evidence.score:
        return "no"
    sum_ = _weighed(evidence)
    if sum_ < LEAST and not _holds_all(evidence):
        return "no"
    return "partly" if evidence.missing or sum_ < SURELY else "yes"


def is_about_something(evidence: Evidence) -> bool:
    """Whether a base holds something about a task, which may draw on several pages.

    A task names more than it asks for, so that less is needed than of a question. Few pages are
    judged by what they hold together: each word of a task may be on another.
    """
    if not evidence.score:
        return False
    if evidence.score >= ENOUGH:
        return True
    coverage = evidence.coverage
    if evidence.documents < MANY_DOCUMENTS or evidence.together >= MOSTLY:
        coverage = max(coverage, evidence.together)
    strength = TASK_SCORE * evidence.score + TASK_COVERAGE * coverage
    long = min(1.0, max(0.0, (evidence.words - FEW) / (MANY - FEW)))
    needed = TASK_LEAST + TASK_OF_PAGES * evidence.pages - TASK_OF_WORDS * long
    needed += TASK_OF_MISSING * evidence.missing
    # A few pages do not hold the words of every task that they serve.
    needed *= min(1.0, math.log1p(evidence.documents) / math.log1p(MANY_DOCUMENTS))
    return strength >= needed


def _holds_all(evidence: Evidence) -> bool:
    """Whether one section has each of the few words that were asked for, one of them at home."""
    return evidence.words <= FEW_WORDS and evidence.coverage > WHOLE and evidence.home > 0


def _weighed(evidence: Evidence) -> float:
    """What the evidence adds up to."""
    words = math.log1p(evidence.words)
    return (
        START
        + evidence.score * (OF_SCORE + OF_SCORE_BY_WORDS * words)
        + OF_COVERAGE * evidence.coverage
        + OF_MISSING * evidence.missing
        + OF_WORDS * words
        + OF_DOCUMENTS * _log(evidence.documents, _DOCUMENTS)
        + OF_FEW * math.log(max(1.0, FEW_DOCUMENTS / evidence.documents))
        + OF_LENGTH * _log(evidence.length, _LENGTHS)
        + OF_HOME * evidence.home
    )


def _log(value: float, bounds: tuple[int, int]) -> float:
    return math.log(min(max(value, bounds[0]), bounds[1]))


def _background(word: str, place_of: PlaceOf) -> float:
    """How rare a word is in the language: nothing for the commonest."""
    place = _CHINESE if is_cjk(word) else place_of(word)
    return math.log(max(_NO_WORD if place is None else place, _COMMON) / _COMMON)
