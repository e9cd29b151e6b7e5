"""Pages that belong together, and why: links, scope, tags, folders, words that few pages have,
and what is near in meaning where that is known."""

import copy
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sage.deadline import Deadline, no_deadline
from sage.documents.document import Document
from sage.notes.links import LINK, Links
from sage.notes.similarity import words_of
from sage.terms.analysis import STOP_WORDS

if TYPE_CHECKING:
    from sage.semantic.nearness import Nearness

MOST = 10
_LINKED = 1.0
_SAME_SCOPE = 0.4
_TAG = 0.15
_SAME_FOLDER = 0.1
_INDEX = 0.15
"""With these, of the pairs that link in a corpus of 122 pages 51 in a hundred are among the first
five when links do not count, and 38 without."""
_MEANT = 0.5
"""Of a page that means the same. Chosen on three bases, see docs/semantic.md."""
_TITLE_WEIGHT = 4
_SHOWN_WORDS = 4
_LEAST = 0.05

Vector = Mapping[str, float]


class Related(NamedTuple):
    """A page that belongs to another one."""

    topic: str
    title: str
    score: float
    reasons: tuple[str, ...]


class Suggestion(NamedTuple):
    """A tag that a page could have."""

    tag: str
    confidence: float
    reason: str


class Relations:
    """What the pages of one base have in common."""

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        deadline: Deadline | None = None,
    ) -> None:
        """Raises:
        TimeoutExceeded: not every page could be looked at in time.
        """
        self._documents = documents
        self._deadline = deadline or no_deadline()
        links = Links(documents)
        counts = {document.path: self._counted(document) for document in documents}
        holders = Counter(word for held in counts.values() for word in held)
        total = len(documents)
        self._links = {document.path: self._linked(links, document) for document in documents}
        self._vectors = {path: _vector(held, holders, total) for path, held in counts.items()}

    def related(
        self, document: Document, most: int = MOST, nearness: "Nearness | None" = None
    ) -> list[Related]:
        """The pages nearest to one, with the reasons.

        Args:
            nearness: what is near in meaning; None to go by words, links and tags.
        """
        meant = nearness.to_page(document.path) if nearness is not None else {}
        found = []
        for other in self._documents:
            if other.path == document.path:
                continue
            self._deadline.check()
            reasons = list(self._reasons(document, other))
            if (near := _MEANT * meant.get(other.path, 0.0)) >= _LEAST:
                reasons.append((near, "near in meaning"))
            score = sum(weight for weight, _ in reasons)
            if score >= _LEAST:
                words = tuple(reason for _, reason in reasons if reason)
                found.append(Related(other.topic, other.title, round(score, 3), words))
        return sorted(found, key=lambda one: (-one.score, one.topic))[:most]

    def linked(self, document: Document) -> set[str]:
        """The topics of the pages that a page links to."""
        paths = self._links[document.path]
        return {other.topic for other in self._documents if other.path in paths}

    def without_links(self) -> "Relations":
        """The same, as if no page had a link: what else tells that pages belong together."""
        hidden = copy.copy(self)
        hidden._links = {path: set() for path in self._links}
        return hidden

    def tags_for(self, document: Document, most: int = 8) -> list[Suggestion]:
        """Tags of the base that a page lacks: of the pages most like it, and those it names."""
        held = {tag.casefold() for tag in document.meta.tags}
        near = sorted(
            ((self._cosine(document, one), one) for one in self._documents if one is not document),
            key=lambda pair: (-pair[0], pair[1].topic),
        )[:MOST]
        votes: dict[str, float] = {}
        voters: dict[str, list[str]] = {}
        for weight, other in near:
            for tag in other.meta.tags:
                votes[tag] = votes.get(tag, 0.0) + weight
                voters.setdefault(tag, []).append(other.topic)
        total = sum(weight for weight, _ in near) or 1.0
        words = set(words_of(f"{document.title} {document.summary} {document.body[:20_000]}"))
        found = []
        for tag, vote in votes.items():
            named = set(words_of(tag)) <= words
            confidence = min(1.0, vote / total + (0.3 if named else 0.0))
            if tag.casefold() not in held and confidence >= _TAG:
                by = f"on {', '.join(voters[tag][:3])}" + (", and the page says it" * named)
                found.append(Suggestion(tag, round(confidence, 2), by))
        return sorted(found, key=lambda one: (-one.confidence, one.tag))[:most]

    def _counted(self, document: Document) -> Counter[str]:
        self._deadline.check()
        return _counts(document)

    def _linked(self, links: Links, document: Document) -> set[str]:
        self._deadline.check()
        return {link.target.path for link in links.of(document)}

    def _reasons(self, document: Document, other: Document) -> Iterator[tuple[float, str]]:
        if other.path in self._links[document.path]:
            yield _LINKED, "linked from it"
        if document.path in self._links[other.path]:
            yield _LINKED, "links to it"
        scopes = set(document.meta.applies_to) & set(other.meta.applies_to)
        if scopes:
            yield _SAME_SCOPE, f"same files: {', '.join(sorted(scopes)[:2])}"
        tags = {tag.casefold() for tag in document.meta.tags}.intersection(
            tag.casefold() for tag in other.meta.tags
        )
        if tags:
            yield _TAG * min(len(tags), 3), f"tags: {', '.join(sorted(tags)[:3])}"
        own, theirs = _folder(document), _folder(other)
        if own == theirs:
            yield _SAME_FOLDER, "same folder"
        if other.is_index and theirs == (_folder_above(own) if document.is_index else own):
            yield _INDEX, "index of its folder"
        near = self._cosine(document, other)
        yield near, f"words: {', '.join(self._shared(document, other))}" if near > _LEAST else ""

    def _cosine(self, one: Document, other: Document) -> float:
        first, second = self._vectors[one.path], self._vectors[other.path]
        if len(first) > len(second):
            first, second = second, first
        return sum(weight * second.get(word, 0.0) for word, weight in first.items())

    def _shared(self, one: Document, other: Document) -> list[str]:
        first, second = self._vectors[one.path], self._vectors[other.path]
        shared = sorted(
            (word for word in first if word in second),
            key=lambda word: (-first[word] * second[word], word),
        )
        return shared[:_SHOWN_WORDS]


def _folder(document: Document) -> str:
    return document.path.rpartition("/")[0]


def _folder_above(folder: str) -> str:
    return folder.rpartition("/")[0]


def _counts(document: Document) -> Counter[str]:
    headings = " ".join(section.heading for section in document.sections)
    strong = words_of(f"{document.title} {document.summary} {' '.join(document.meta.tags)}")
    counts = Counter(_kept(words_of(LINK.sub(" ", document.body[:100_000]))))
    counts.update(_kept(words_of(headings)))
    for word in _kept(strong):
        counts[word] += _TITLE_WEIGHT
    return counts


def _kept(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if len(word) > 2 and word not in STOP_WORDS and not word.isdigit():
            yield word[:-1] if word.endswith("s") and len(word) > 3 else word


def _vector(counts: Counter[str], holders: Counter[str], total: int) -> Vector:
    weights = {
        word: (1 + math.log(count)) * math.log((total + 1) / holders[word])
        for word, count in counts.items()
        if holders[word] > 1
    }
    length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
    return {word: weight / length for word, weight in weights.items() if weight > 0}
