"""Relevance: what the search finds for a task and its files, as a number for each passage."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sage.analysis import STOP_WORDS, tokens
from sage.documents import Document
from sage.languages import words_of_files
from sage.passages import Passage, rough_stem

Rank = Callable[[str, int], Sequence[tuple[str, int, float]]]
"""Searches sections: from a text and a limit to paths, positions of sections and scores."""

FOUND_SECTIONS = 40
MAX_QUERY = 480
MAX_QUERIES = 3
MAX_TASK = MAX_QUERY * MAX_QUERIES
FILES_WEIGHT = 0.6
LATER_WEIGHT = 0.8
REPLACED_WEIGHT = 0.95
LEAST_VALUE = 0.08
"""What is found more weakly than this is as good as not found."""
PAGE_SHARE = 0.5
"""What a section that was not found itself has of its page's relevance."""
SURE_SCORE = 0.45
"""A best score below this says that nothing fits the task well."""
_SENTENCE = re.compile(r"(?<=[.!?。！？\n])\s+")
# In a query these ask for phrases, exclusions and filters; in a task they are only marks.
_MARKS = re.compile(r"[\"\u201c\u201d]|(?<!\S)-+(?=\w)|(?<=\w):(?=\w)")


@dataclass(slots=True)
class Relevance:
    """What the search found."""

    sections: dict[tuple[str, int], float] = field(default_factory=dict)
    pages: dict[str, float] = field(default_factory=dict)
    replaces: dict[str, str] = field(default_factory=dict)
    """For the path of a page, the path of the page that the search found and it replaces."""

    def of(self, passage: Passage) -> float:
        """How relevant a passage is, from 0 to 1."""
        path = passage.document.path
        page = self.pages.get(path, 0.0)
        if not page:
            return 0.0
        places = range(passage.first, passage.end)
        own = max(self.sections.get((path, place), 0.0) for place in places)
        return max(own, PAGE_SHARE * page)


def find_relevance(
    task: str,
    files: Iterable[str],
    rank: Rank,
    eligible: Container[str],
    successors: Mapping[str, Document],
) -> Relevance | None:
    """Search for a task and its files; None when there is nothing to search for.

    Args:
        eligible: the paths of pages that may come; the best of them sets the scale.
        successors: for the path of a replaced page, the page in force.
    """
    queries = _queries(task, files)
    if not queries:
        return None
    relevance = Relevance()
    for text, weight in queries:
        found = rank(text, FOUND_SECTIONS)
        best = max(
            (score for path, _, score in found if path in eligible or path in successors),
            default=1.0,
        )
        for path, position, score in found:
            # The square parts what fits from what only shares a word with the task.
            value = weight * min(1.0, best / SURE_SCORE) * min(1.0, score / best) ** 2
            if value >= LEAST_VALUE:
                _add(relevance, path, position, value)
    for path, successor in successors.items():
        _hand_over(relevance, path, successor)
    return relevance


def task_words(task: str, files: Iterable[str]) -> tuple[str, ...]:
    """The words of a task and its files that say something, each once."""
    words = (token.casefold().removesuffix("'s") for token in tokens(task[:MAX_TASK]))
    said = (word for word in words if len(word) > 1 and word not in STOP_WORDS)
    return tuple(dict.fromkeys((*said, *words_of_files(files))))


def words_in(passage: Passage, words: Iterable[str]) -> list[str]:
    """Those of the words that a passage holds in any form."""
    return [word for word in words if rough_stem(word) in passage.stems]


def _queries(task: str, files: Iterable[str]) -> list[tuple[str, float]]:
    texts = list(_pieces(task))[:MAX_QUERIES]
    queries = [(text, 1.0 if n == 0 else LATER_WEIGHT) for n, text in enumerate(texts)]
    names = " ".join(words_of_files(files))[:MAX_QUERY]
    return [*queries, (names, FILES_WEIGHT if queries else 1.0)] if names else queries


def _pieces(task: str) -> Iterable[str]:
    """A task in texts that the search takes whole, divided between sentences."""
    piece = ""
    for sentence in _SENTENCE.split(_MARKS.sub(" ", task.strip())):
        for part in (sentence[n : n + MAX_QUERY] for n in range(0, len(sentence), MAX_QUERY)):
            if piece and len(piece) + len(part) > MAX_QUERY:
                yield piece
                piece = ""
            piece = " ".join(f"{piece} {part}".split())
    if piece:
        yield piece


def _add(relevance: Relevance, path: str, position: int, value: float) -> None:
    key = (path, position)
    relevance.sections[key] = max(relevance.sections.get(key, 0.0), value)
    relevance.pages[path] = max(relevance.pages.get(path, 0.0), value)


def _hand_over(relevance: Relevance, path: str, successor: Document) -> None:
    """What was found in a replaced page speaks for the page in force."""
    value = relevance.pages.get(path, 0.0) * REPLACED_WEIGHT
    if value > relevance.pages.get(successor.path, 0.0):
        relevance.replaces[successor.path] = path
        for position in range(min(2, len(successor.sections))):
            _add(relevance, successor.path, position, value)
