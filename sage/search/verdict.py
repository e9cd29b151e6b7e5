"""Whether a base holds what was asked: yes, partly, or no.

The verdict is a sum of evidence, fitted on questions of many bases asked of their own and of the
others; docs/search.md has its error rates, `python -m benchmarks.verdicts` measures them.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from sage.search.analysis import is_cjk
from sage.search.query import JOINED, Concept
from sage.search.ranking import Matches, Ranked, Ranker
from sage.search.scoring import rarity, shown_score
from sage.search.spelling import PlaceOf

Verdict = Literal["yes", "partly", "no"]

_JUDGED = 3
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


def gather_evidence(
    ranker: Ranker,
    concepts: Sequence[Concept],
    missing: int,
    possible: float,
    best: Sequence[Ranked],
    place_of: PlaceOf,
) -> Evidence:
    """What the best results say about whether the base holds what was asked.

    Args:
        missing: how many words no document holds.
        possible: the summed rarity of all that was asked for.
    """
    stats = ranker.stats
    asked = [concept for concept in concepts if concept.weight > JOINED]
    nothing = Evidence(
        0.0, 0.0, 1.0, len(asked) + missing, stats.length, stats.documents, pages=stats.pages
    )
    if not best or not possible:
        return nothing
    matches = [ranker.matches(concept) for concept in asked]
    rows = [ranker.row_of(one) for one in best[:_JUDGED]]
    held = [
        [one.rarity * concept.weight * one.is_in(row) for one, concept in _pairs(matches, asked)]
        for row in rows
    ]
    at_home = (
        _background(concept.name, place_of) - one.section_rarity + _AT_HOME
        for one, concept in _pairs(matches, asked)
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


def _pairs(
    matches: Sequence[Matches], concepts: Sequence[Concept]
) -> list[tuple[Matches, Concept]]:
    return list(zip(matches, concepts, strict=True))
