"""How much of what was found an answer shows, within one budget for the whole answer as JSON.

The best sections whole, then the sentences that match, then topics with their cost. What was found
and in which order is the searcher's.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from sage.answers import SearchAnswer, SearchResult
from sage.documents.plain_text import section_prose
from sage.sanitize import clean, shown_id
from sage.search.catalog import DocumentEntry
from sage.search.sections import PLAIN_TYPES, Found, FoundSection
from sage.terms.analysis import folded, is_cjk
from sage.values import PUBLISHED, state_of

Count = Callable[[str], int]
Overrides = Mapping[str, Sequence[str]]
"""For the path of a page the sources that have one of its topic too."""

POINTERS = 3
"""Results of a search that found nothing about the question."""
_TIME = 99999.999
"""Counted in place of the time, which is known only when all is done."""
_HEADS_SHARE = 0.8
"""What may be spent on naming results; those beyond it are left out."""
_FAR_BEHIND = 0.8
"""Results with less than this share of the best score give up their place when the best section
needs the room: over nine sets nDCG@10 fell by 0.008 at most, and 13 of 100 questions more were
settled."""
_ALWAYS_NAMED = 4
"""So many results are named in any case."""
_LONGEST_TOKEN = 8
"""Characters: a text so many times longer than the room is not even counted."""
_LONGEST_WORD = 80
"""Characters of a missing word that are repeated: whoever pasted it knows it."""
_KEY = 4
"""The tokens of `{"snippet":""}` that a result has already paid for."""


def compose(
    found: Found,
    max_tokens: int,
    count: Count,
    stale_before: date,
    whole: bool = True,
    overrides: Overrides | None = None,
) -> SearchAnswer:
    """The answer of a search, never longer than `max_tokens`; its time is to be filled in.

    Args:
        stale_before: pages that say they were last updated before this day say so here too.
        whole: whether sections may come whole; otherwise each by its best sentences.
        overrides: by path, when there are several sources: each result then names its own.
    """
    return _Composition(found, max_tokens, count, stale_before, whole, overrides).answer()


def compact(value: object) -> str:
    """An answer as hosts hand it to a model."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Whole(NamedTuple):
    """A section as it is shown, and what that costs."""

    text: str
    cost: int


class _Composition:
    """Spends one budget, best results first."""

    def __init__(
        self,
        found: Found,
        max_tokens: int,
        count: Count,
        stale_before: date,
        whole: bool,
        overrides: Overrides | None,
    ) -> None:
        self._found = found
        self._may_be_whole = whole and found.verdict != "no"
        self._best: _Whole | None = None
        self._count = count
        self._budget = max_tokens
        self._stale_before = stale_before
        self._overrides = overrides
        self._sections: list[FoundSection] = []
        self._results: list[SearchResult] = []

    def answer(self) -> SearchAnswer:
        """The answer, as full as the budget allows and never fuller."""
        room = self._name(self._budget - self._count(compact(self._assembled())))
        for section, result in zip(self._sections, self._results, strict=True):
            room -= self._show(section, result, room)
        # Tokens reach across what was counted apart: the whole answer has the last word.
        while self._results and self._count(compact(self._assembled())) > self._budget:
            self._shorten()
        return self._assembled()

    def _assembled(self) -> SearchAnswer:
        found = self._found
        answer = SearchAnswer(
            results=self._results,
            total=found.total,
            query_time_ms=_TIME,
            found=found.verdict,
        )
        if found.missing:
            answer["missing"] = [_shortened(clean(word)) for word in found.missing]
        if not found.complete:
            answer["complete"] = False
        if found.note:
            answer["note"] = clean(found.note)
        shown = len(self._results)
        if found.paged and shown and (found.more or shown < len(found.sections)):
            answer["next_offset"] = found.offset + shown
        return answer

    def _name(self, room: int) -> int:
        """Name as many results as may be named; the room that they leave."""
        most = POINTERS if self._found.verdict == "no" else len(self._found.sections)
        spent = 0
        costs: list[int] = []
        for section in self._found.sections[:most]:
            result = self._bare(section)
            cost = self._count(compact(result)) + 1
            if spent + cost > room * (_HEADS_SHARE if spent else 1):
                break
            spent += cost
            costs.append(cost)
            self._sections.append(section)
            self._results.append(result)
        return room - spent + self._yielded(costs, room - spent)

    def _yielded(self, costs: Sequence[int], room: int) -> int:
        """Give up names of what is far behind so that the best section comes whole; their cost."""
        self._best = self._whole(self._sections[0], room + sum(costs)) if costs else None
        if self._best is None:
            return 0
        least = _FAR_BEHIND * self._sections[0].score
        given, kept = 0, len(costs)
        while room + given < self._best.cost and kept > _ALWAYS_NAMED:
            kept -= 1
            if self._sections[kept].score >= least:
                return 0
            given += costs[kept]
        if room + given < self._best.cost:
            return 0
        del self._sections[kept:], self._results[kept:]
        return given

    def _bare(self, section: FoundSection) -> SearchResult:
        """A result without any text: where it is, and what reading it costs."""
        result = SearchResult(
            path=clean(section.entry.path),
            title=clean(section.entry.title),
            snippet="",
            score=section.score,
            topic=clean(section.topic),
            tokens=section.tokens + self._count(section.mark),
            lines=section.lines,
        )
        result.update(self._marks(section))  # type: ignore[typeddict-item]
        return result

    def _marks(self, section: FoundSection) -> Mapping[str, Any]:
        """What a reader must know of the page; nothing where it is as pages are."""
        entry = section.entry
        said: dict[str, Any] = {
            "id": clean(shown_id(entry.topic, entry.id)),
            "status": state_of(entry.status, entry.superseded_by),
            "superseded_by": clean(section.replaced_by or entry.superseded_by),
            "last_updated": entry.last_updated if _is_before(entry, self._stale_before) else "",
            "type": entry.type if entry.type not in PLAIN_TYPES else "",
            "copies": section.copies,
            "by": "meaning" if section.by_meaning else "",
        }
        if self._overrides is not None:
            said["source"] = entry.source
            said["overrides"] = list(self._overrides.get(entry.path, ()))
        return {name: value for name, value in said.items() if value and value != PUBLISHED}

    def _show(self, section: FoundSection, result: SearchResult, room: int) -> int:
        """Put the whole section or its best sentences into a result; what that costs."""
        whole = self._best if result is self._results[0] else self._whole(section, room)
        if whole is not None and whole.cost <= room:
            result["snippet"], result["whole"] = whole.text, True
            return whole.cost
        text = clean(sentences(section))
        cost = self._count(compact({"snippet": text})) - _KEY
        if cost > room:
            return 0
        result["snippet"] = text
        return cost

    def _whole(self, section: FoundSection, room: int) -> _Whole | None:
        """A section as it would come whole; None when it has no text or far more than the room."""
        if not self._may_be_whole or not 0 < len(section.text) <= room * _LONGEST_TOKEN:
            return None
        text = section.shown()
        return _Whole(text, self._count(compact({"snippet": text, "whole": True})) - _KEY)

    def _shorten(self) -> None:
        """Take back the text of the last result that has one, then the last result."""
        shown = next((one for one in reversed(self._results) if one["snippet"]), None)
        if shown is None:
            self._results.pop()
        else:
            shown["snippet"] = ""
            shown.pop("whole", None)


def _is_before(entry: DocumentEntry, day: date) -> bool:
    try:
        return date.fromisoformat(entry.last_updated[:10]) < day
    except ValueError:
        return False


def _shortened(word: str) -> str:
    return word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…"


MAX_SNIPPET = 300
_MAX_TEXT = 60_000
_MAX_MATCHES = 300
_WIDE = 240
_AGAIN = 0.05
"""What a second occurrence of the same word adds."""
_END = re.compile(r"[.!?](?=[\s\"')\]]|$)|[。！？；]|\n")
_BLANK = re.compile(r"\s+")
_ELLIPSIS = " …"


def sentences(section: FoundSection) -> str:
    """The sentences around the best match, as plain text."""
    instead = section.summary or section.title
    if section.section is None:
        return shortened(instead)
    text = section_prose(section.text, 1 if section.heading else 0).whole
    return snippet(text, section.highlights.owners, section.highlights.rarities, instead)


class Match(NamedTuple):
    """A matching word in a text: where it is and which concept it is of."""

    start: int
    end: int
    concept: int


def find(text: str, owners: Mapping[str, int]) -> list[Match]:
    """The matching words in a text that is folded and in lower case."""
    found: list[Match] = []
    for form, concept in owners.items():
        # One fast scan a form: looking at every word of the text took five times as long.
        at = text.find(form)
        size = len(form)
        whole = not is_cjk(form)
        while at >= 0:
            end = at + size
            if not (whole and (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())):
                found.append(Match(at, end, concept))
            at = text.find(form, end)
        if len(found) > _MAX_MATCHES:
            break
    found.sort()
    return found


def snippet(
    text: str, owners: Mapping[str, int], rarities: Sequence[float], instead: str = ""
) -> str:
    """At most 300 characters of a text: whole sentences where they fit around the best match."""
    text = text[:_MAX_TEXT]
    if not text.strip():
        return shortened(instead)
    searched = folded(text).lower()
    # Folding may change lengths (one sign for two letters): then words are sought as written.
    matches = find(searched if len(searched) == len(text) else text, owners)
    start, end = _densest(matches, rarities) if matches else (0, 1)
    return _cut(text, start, end)


def shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    line = _BLANK.sub(" ", text).strip()
    if len(line) <= MAX_SNIPPET:
        return line
    return line[: MAX_SNIPPET - len(_ELLIPSIS)].rsplit(" ", 1)[0] + _ELLIPSIS


def _densest(matches: Sequence[Match], rarities: Sequence[float]) -> tuple[int, int]:
    """The stretch that holds the most of what is rare."""
    best, place = 0.0, (0, 1)
    held = [0] * len(rarities)
    score = 0.0
    last = 0
    for match in matches:
        while last < len(matches) and matches[last].end - match.start <= _WIDE:
            concept = matches[last].concept
            score += rarities[concept] * (1.0 if not held[concept] else _AGAIN)
            held[concept] += 1
            last += 1
        if score > best + 1e-9:
            best, place = score, (match.start, matches[last - 1].end)
        held[match.concept] -= 1
        score -= rarities[match.concept] * (1.0 if not held[match.concept] else _AGAIN)
    return place


def _cut(text: str, start: int, end: int) -> str:
    """Widen a stretch to sentences, then trim it to what may be shown."""
    begin = _sentence_start(text, start)
    if end - begin > MAX_SNIPPET:
        begin = _word_start(text, max(begin, start - 40))
    stop = _sentence_end(text, end, begin + MAX_SNIPPET)
    shown = _BLANK.sub(" ", text[begin:stop]).strip(" |")
    before = "… " if begin and not _ends_sentence(text, begin) else ""
    after = _ELLIPSIS if stop < len(text) and not _ends_sentence(text, stop) else ""
    room = MAX_SNIPPET - len(before) - len(after)
    if len(shown) > room:
        shown, after = shown[: room - 2], _ELLIPSIS
        shown = shown.rsplit(" ", 1)[0] if " " in shown[room // 2 :] else shown
    return before + shown.rstrip() + after


def _sentence_start(text: str, at: int) -> int:
    begin = max(0, at - MAX_SNIPPET)
    ends = [match.end() for match in _END.finditer(text, begin, at)]
    if ends:
        return ends[-1]
    return begin and _word_start(text, max(begin, at - 40))


def _sentence_end(text: str, at: int, most: int) -> int:
    """The end of the last sentence that still fits, or the last word."""
    if most >= len(text):
        return len(text)
    stop = most
    for match in _END.finditer(text, max(at - 1, 0), most):
        stop = match.end()
    return stop


def _word_start(text: str, at: int) -> int:
    space = text.find(" ", at, at + 40)
    return space + 1 if space >= 0 else at


def _ends_sentence(text: str, at: int) -> bool:
    return bool(_END.match(text, at - 1)) or text[at - 1 : at] == "\n"
