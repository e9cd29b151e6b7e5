"""What is said of a context: its sources and why each was chosen, its sections, what came next."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sage.answers import ContextAnswer, ContextSource
from sage.context.excerpts import DocumentExcerpts, TokenTally, joined
from sage.context.passages import Passage, PassageKey
from sage.context.relevance import words_in
from sage.context.scoring import Candidate, Selection
from sage.sanitize import clean

MAX_OMITTED = 6
OMITTED_PER_DOCUMENT = 2
MAX_REASONS = 2
MAX_WORDS = 3
_LOAD_TIME = 12345.678
"""The longest time that is likely to be said, in milliseconds."""
_EDGE = 0.05


@dataclass(frozen=True, slots=True)
class PackedContext:
    """A context and how it came about."""

    context: str
    sections: list[str]
    token_count: int
    sources: list[ContextSource]
    omitted: list[str]
    """The topics that would have served too."""
    note: str
    complete: bool
    answer_tokens: int
    """The most that the whole answer takes as JSON."""
    reasons: tuple[str, ...] = ()
    """Why each omitted topic is not here, for a person who asks."""

    @classmethod
    def of(
        cls,
        selection: Selection,
        documents: Sequence[DocumentExcerpts],
        taken: Mapping[PassageKey, Candidate],
        lacking: Sequence[Candidate],
        tally: TokenTally,
        budget: int,
        why_not: Callable[[Candidate], str],
    ) -> "PackedContext":
        """The finished context; topics that came next are named as far as the budget goes."""
        text = joined(documents)
        tokens = tally.count(text)
        answer = answer_of(selection, documents, taken, [], tokens)
        is_whole = not lacking and not any(
            one.is_cut for held in documents for one in held.excerpts
        )
        if not is_whole:
            answer["complete"] = False
        size = tally.in_json(answer)
        omitted: list[str] = []
        coming = _next_topics(lacking)
        for topic in coming:
            added = tally.in_json([topic]) + (8 if not omitted else 1)
            if size + added > budget:
                break
            size += added
            omitted.append(topic)
        return cls(
            context=text,
            sections=answer["sections"],
            token_count=tokens,
            sources=answer["sources"],
            omitted=omitted,
            note=answer.get("note", ""),
            complete=is_whole,
            answer_tokens=size,
            reasons=tuple(why_not(coming[topic]) for topic in omitted),
        )

    def answer(self, load_time_ms: float) -> ContextAnswer:
        """The object that the tool and the command show."""
        answer = ContextAnswer(
            context=self.context,
            sections=list(self.sections),
            token_count=self.token_count,
            load_time_ms=load_time_ms,
            sources=[source.copy() for source in self.sources],
        )
        if self.omitted:
            answer["omitted"] = list(self.omitted)
        if self.note:
            answer["note"] = self.note
        if not self.complete:
            answer["complete"] = False
        return answer


def answer_of(
    selection: Selection,
    documents: Sequence[DocumentExcerpts],
    taken: Mapping[PassageKey, Candidate],
    omitted: Sequence[str],
    token_count: int,
) -> dict[str, Any]:
    """The whole answer as it will be sent."""
    reasons = _Reasons(selection, taken)
    answer: dict[str, Any] = {
        "context": joined(documents),
        "sections": _names(documents),
        "token_count": token_count,
        "load_time_ms": _LOAD_TIME,
        "sources": [_source(held, reasons, selection.overrides) for held in documents],
    }
    if omitted:
        answer["omitted"] = list(omitted)
    if selection.notes:
        answer["note"] = "; ".join(selection.notes)
    return answer


class _Reasons:
    """Says why passages were chosen."""

    def __init__(self, selection: Selection, taken: Mapping[PassageKey, Candidate]) -> None:
        self._selection = selection
        self._candidates = taken
        self._words = {key: words_in(one.passage, selection.words) for key, one in taken.items()}
        self._counts = Counter(word for words in self._words.values() for word in words)

    def why(self, passages: Sequence[Passage]) -> str:
        """The strongest reasons for some passages."""
        chosen = [self._candidates[passage.key] for passage in passages]
        reasons = {
            reason.words: reason.weight
            for one in chosen
            for reason in (*one.fit.reasons, *one.reasons)
        }
        words = self._telling_words(passages) if any(one.relevance for one in chosen) else []
        if words:
            reasons[f"task: {', '.join(words)}"] = 1.5
        ordered = sorted(reasons, key=lambda words: (-reasons[words], words))
        return clean("; ".join(ordered[: 1 if words else MAX_REASONS])) or "general"

    def _telling_words(self, passages: Sequence[Passage]) -> list[str]:
        """The words of the task in some passages that are rarest among all that are shown."""
        words = dict.fromkeys(word for one in passages for word in self._words[one.key])
        telling = sorted(words, key=lambda word: self._counts[word])[:MAX_WORDS]
        return sorted(telling, key=self._selection.words.index)


def _source(
    held: DocumentExcerpts, reasons: _Reasons, overrides: Mapping[str, Sequence[str]] | None
) -> ContextSource:
    why = reasons.why([excerpt.passage for excerpt in held.excerpts])
    source = ContextSource(topic=clean(held.topic), lines=held.lines, why=why)
    if held.id:
        source["id"] = clean(held.id)
    if overrides is not None:
        source["source"] = held.document.source
        if others := overrides.get(held.document.path):
            source["overrides"] = list(others)
    return source


def _next_topics(lacking: Sequence[Candidate]) -> dict[str, Candidate]:
    """The topics of what came next, no more than a few of one document."""
    per_document: Counter[str] = Counter()
    topics: dict[str, Candidate] = {}
    for candidate in lacking:
        if per_document[candidate.path] < OMITTED_PER_DOCUMENT:
            per_document[candidate.path] += 1
            topics.setdefault(clean(candidate.passage.topic), candidate)
            if len(topics) == MAX_OMITTED:
                break
    return topics


def _names(documents: Sequence[DocumentExcerpts]) -> list[str]:
    """The names of the sections in order; one that appears twice is told apart by its page."""
    named = [
        (name, held.trail[0])
        for held in documents
        for excerpt in held.excerpts
        for name in excerpt.section_names
    ]
    counts = Counter(name for name, _ in named)
    return [
        f"{page} > {name}" if counts[name] > 1 and name != page else name for name, page in named
    ]
