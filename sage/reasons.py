"""The words about a pack: its sources and why each was chosen, what came next, its sections."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sage.answers import ContextOmitted, ContextSource
from sage.candidates import Candidate, Lineup
from sage.packing import Packing
from sage.parts import Excerpt, Part, fetch_call, joined
from sage.passages import Passage
from sage.relevance import words_in
from sage.scrub import clean
from sage.tally import Tally

MAX_OMITTED = 10
OMITTED_PER_DOCUMENT = 2
MAX_REASONS = 3
MAX_WORDS = 3


@dataclass(frozen=True, slots=True)
class Pack:
    """A context and how it came about."""

    context: str
    sections: list[str]
    token_count: int
    sources: list[ContextSource]
    omitted: list[ContextOmitted]
    complete: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What a pack is to be made of."""

    task_type: str
    all: Lineup
    """Everything that belongs."""
    core: Lineup
    """What all work rests on; it comes first."""
    free: Lineup
    """What comes by its worth, whatever the core has used."""
    always: Sequence[Candidate]
    """What belongs in any case."""
    shares: Mapping[str, float]
    """How the budget is divided among layers."""
    words: Sequence[str]
    """The words of the task and its files."""
    core_share: float
    """The core's part of the budget."""
    places: Mapping[str, int]
    """The paths of core documents, and their place in reading order."""
    has_task: bool


def explained(
    wish: Wish, packing: Packing, parts: Sequence[Part], tokens: int, tally: Tally
) -> Pack:
    """The finished pack."""
    omitted = list(_omitted(wish.all, packing))
    reasons = _Reasons(wish, packing, omitted)
    return Pack(
        context=joined(parts),
        sections=_names(parts),
        token_count=tokens,
        sources=[_source(part, reasons, tally) for part in parts],
        omitted=[_omission(candidate, reasons, tally) for candidate in omitted],
        complete=_is_complete(wish.all, packing, parts),
    )


class _Reasons:
    """Says why passages were chosen."""

    def __init__(self, wish: Wish, packing: Packing, omitted: Iterable[Candidate]) -> None:
        self._wish = wish
        self._candidates = packing.taken | {id(one.passage): one for one in omitted}
        shown = [one.passage for one in self._candidates.values()]
        self._words = {id(one): words_in(one, wish.words) for one in shown}
        self._counts = Counter(word for words in self._words.values() for word in words)

    def why(self, passages: Sequence[Passage]) -> str:
        """The strongest reasons for some passages."""
        chosen = [self._candidates[id(passage)] for passage in passages]
        reasons = {reason.words: reason.weight for one in chosen for reason in one.reasons}
        if any(one in self._wish.always for one in chosen):
            reasons[f"always for {self._wish.task_type}"] = 2.0
        if any(one.relevance for one in chosen):
            words = self._telling_words(passages)
            if words:
                reasons[f"task words: {', '.join(words)}"] = 1.5
        ordered = sorted(reasons, key=lambda words: -reasons[words])
        return "; ".join(ordered[:MAX_REASONS]) or "general knowledge"

    def _telling_words(self, passages: Sequence[Passage]) -> list[str]:
        """The words of the task in some passages that are rarest among all that are shown."""
        words = dict.fromkeys(word for one in passages for word in self._words[id(one)])
        telling = sorted(words, key=lambda word: self._counts[word])[:MAX_WORDS]
        return sorted(telling, key=self._wish.words.index)


def _source(part: Part, reasons: _Reasons, tally: Tally) -> ContextSource:
    return ContextSource(
        topic=clean(part.topic),
        path=clean(part.document.path),
        lines=list(part.lines),
        tokens=tally.part(part),
        why=reasons.why([excerpt.passage for excerpt in part.excerpts]),
    )


def _omission(candidate: Candidate, reasons: _Reasons, tally: Tally) -> ContextOmitted:
    passage = candidate.passage
    return ContextOmitted(
        topic=clean(passage.topic),
        title=" > ".join(passage.trail),
        tokens=tally.inner(Excerpt(passage)),
        why=reasons.why([passage]),
        call=fetch_call(passage.document, passage.topic),
    )


def _omitted(candidates: Iterable[Candidate], packing: Packing) -> Iterable[Candidate]:
    """What would have come next, no more than a few sections of one document."""
    per_document: Counter[str] = Counter()
    for candidate in candidates:
        if per_document[candidate.path] < OMITTED_PER_DOCUMENT and packing.lacks(candidate):
            per_document[candidate.path] += 1
            yield candidate
            if per_document.total() == MAX_OMITTED:
                return


def _is_complete(candidates: Iterable[Candidate], packing: Packing, parts: Iterable[Part]) -> bool:
    whole = not any(excerpt.is_cut for part in parts for excerpt in part.excerpts)
    return whole and not any(map(packing.lacks, candidates))


def _names(parts: Iterable[Part]) -> list[str]:
    """The names of the sections; those of one name are told apart by their topics."""
    named = [name for part in parts for excerpt in part.excerpts for name in excerpt.section_names]
    counts = Counter(name for name, _ in named)
    return [f"{name} ({topic})" if counts[name] > 1 else name for name, topic in named]
