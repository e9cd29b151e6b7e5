"""Packing: the most worth that fits a budget, section by section.

It is given candidates with their worth; it knows nothing of recipes, languages or search.
"""

import bisect
import heapq
from collections.abc import Mapping, Sequence

from sage.context.excerpts import DocumentExcerpts, Excerpt, TokenTally, in_order
from sage.context.passages import Passage, PassageKey
from sage.context.scoring import Candidate
from sage.deadline import Deadline

LARGEST_SHARE = 0.4
"""A section that would take more of the budget than this is cut, so that others come too."""
LARGEST_TOKENS = 400
"""Unless it is no larger than this: a small budget had better hold one section whole."""
LEAST_ADDED = 40
"""Tokens that are worth the trouble of another excerpt."""
LEAST_OF_CUT = 0.4
"""The least share of a section that is worth having without the rest."""
REPEATED_SHARE = 0.8
"""Text of which so much is packed already is not packed again."""
MOST_MISFITS = 16
"""So many sections that do not fit show that the budget is used up."""
OVER_SHARE = 0.4
"""How steeply worth falls once a layer has used its share."""
_BYTES_PER_TOKEN = 4
_MOST_BYTES_PER_TOKEN = 8
_USUAL_TOKENS = 160


class Packing:
    """A context under way."""

    def __init__(
        self,
        budget: int,
        tally: TokenTally,
        shares: Mapping[str, float],
        same_document: float,
        deadline: Deadline,
    ) -> None:
        """`same_document` is what a section is worth for each one its document already has."""
        self._budget = budget
        self._tally = tally
        self._shares = {layer: max(1.0, share * budget) for layer, share in shares.items()}
        self._same_document = same_document
        self._deadline = deadline
        self._chosen: dict[str, list[Excerpt]] = {}
        self._costs: dict[str, int] = {}
        self._by_layer: dict[str, int] = {}
        self._said: set[int] = set()
        self.taken: dict[PassageKey, Candidate] = {}
        """What came in, in order."""
        self.used = 0
        """The tokens used."""

    def documents(self, places: Mapping[str, int] | None = None) -> list[DocumentExcerpts]:
        """What is held of each document, as they came in; those with a place in its order."""
        paths = list(self._chosen)
        if places is not None:
            paths.sort(key=lambda path: places.get(path, len(places)))
        return [in_order(self._chosen[path]) for path in paths]

    def lacks(self, candidate: Candidate) -> bool:
        """Whether something is missing without a candidate: it is neither here nor said here."""
        return candidate.key not in self.taken and not self._is_repeated(candidate)

    def cost(self, candidate: Candidate) -> int:
        """The tokens that the whole of a candidate would add now."""
        return self._added(Excerpt(candidate.passage))

    def pack(
        self, candidates: Sequence[Candidate], limit: int, stop: float = 0.0, floor: float = 0.0
    ) -> list[Candidate]:
        """Take the best while all stays within the limit; returns what would have served too.

        Args:
            stop: what is worth less than this does not come.
            floor: once something did not fit, smaller sections come in its place only down to
                this share of its worth.
        """
        heap = [(-one.appeal, one.key, one) for one in candidates if one.appeal >= stop]
        heapq.heapify(heap)
        left: list[Candidate] = []
        while heap and len(left) < MOST_MISFITS:
            self._deadline.check()
            before, key, candidate = heapq.heappop(heap)
            if not self.lacks(candidate):
                continue
            gain = self._gain(candidate)
            if gain < stop:
                continue
            if gain < -before and heap and gain < -heap[0][0]:
                # What came in meanwhile makes it worth less than the next one.
                heapq.heappush(heap, (-gain, key, candidate))
                continue
            if not self._take(candidate, limit):
                left.append(candidate)
                stop = max(stop, gain * floor)
        rest = heapq.nsmallest(MOST_MISFITS, heap)
        return [*left, *(one for _, _, one in rest if self.lacks(one))]

    def fill(self, candidates: Sequence[Candidate], limit: int) -> bool:
        """Cut the first that can be cut well to what is left; false when none can."""
        for candidate in candidates[:MOST_MISFITS]:
            self._deadline.check()
            room = limit - self.used
            if room < LEAST_ADDED:
                return False
            excerpt = self._cut(candidate, room) if self.lacks(candidate) else None
            if excerpt is not None and self._says_enough(excerpt):
                self._keep(candidate, excerpt, self._added(excerpt))
                return True
        return False

    def take_least(self, candidate: Candidate) -> None:
        """Take the least of a candidate that is worth taking, however much it is."""
        points = candidate.passage.cut_points[:1]
        options = [Excerpt(candidate.passage), *(Excerpt(candidate.passage, n) for n in points)]
        least = min(options, key=self._added)
        self._keep(candidate, least, self._added(least))

    def drop_last(self) -> None:
        """Take out what came in last."""
        key, candidate = self.taken.popitem()
        held = [one for one in self._chosen[key.path] if one.passage is not candidate.passage]
        cost = self._tally.document(in_order(held)) if held else 0
        self.used -= self._costs[key.path] - cost
        self._costs[key.path] = cost
        self._chosen[key.path] = held
        if not held:
            del self._chosen[key.path], self._costs[key.path]

    def _is_repeated(self, candidate: Candidate) -> bool:
        """Whether nearly all that a candidate says has been packed from elsewhere."""
        if not self._said:
            return False
        own = candidate.passage.shingles
        return len(self._said.intersection(own)) >= REPEATED_SHARE * len(own)

    def _take(self, candidate: Candidate, limit: int) -> bool:
        room = limit - self.used
        largest = max(LARGEST_TOKENS, int(self._budget * LARGEST_SHARE))
        tokens = self._least_tokens(candidate.passage, max(room, largest))
        excerpt: Excerpt | None = Excerpt(candidate.passage)
        if tokens > largest:
            excerpt = self._cut(candidate, min(largest, room))
        elif tokens > room:
            excerpt = None
        added = self._added(excerpt) if excerpt else 0
        if excerpt is None or added > room:
            return False
        self._keep(candidate, excerpt, added)
        return True

    def _least_tokens(self, passage: Passage, room: int) -> int:
        """The tokens of a passage without any heading; not counted when they cannot fit."""
        if passage.size_bytes > _MOST_BYTES_PER_TOKEN * room:
            return room + 1
        return self._tally.excerpt(Excerpt(passage))

    def _keep(self, candidate: Candidate, excerpt: Excerpt, added: int) -> None:
        document = excerpt.passage.document
        self.taken[candidate.key] = candidate
        self._chosen.setdefault(document.path, []).append(excerpt)
        self._costs[document.path] = self._costs.get(document.path, 0) + added
        self._by_layer[document.layer] = self._by_layer.get(document.layer, 0) + added
        self.used += added
        self._said.update(excerpt.passage.shingles)

    def _added(self, excerpt: Excerpt) -> int:
        """The tokens that an excerpt adds; beside others of its document it needs less."""
        path = excerpt.passage.document.path
        held = in_order([*self._chosen.get(path, ()), excerpt])
        return self._tally.document(held) - self._costs.get(path, 0)

    def _gain(self, candidate: Candidate) -> float:
        gain = candidate.appeal
        layer = candidate.passage.document.layer
        share = self._shares.get(layer)
        if share is not None:
            used = self._by_layer.get(layer, 0)
            used += candidate.passage.size_bytes // _BYTES_PER_TOKEN
            if used > share:
                gain *= (share / used) ** OVER_SHARE
        cost = self._costs.get(candidate.path, 0)
        return float(gain * self._same_document ** (cost / _USUAL_TOKENS))

    def _cut(self, candidate: Candidate, room: int) -> Excerpt | None:
        """A candidate, cut to the room there is unless all of it fits."""
        passage = candidate.passage
        whole = Excerpt(passage)
        if self._least_tokens(passage, room) <= room and self._added(whole) <= room:
            return whole
        points = passage.cut_points
        fitting = bisect.bisect_right(
            points, room, key=lambda lines: self._added(Excerpt(passage, lines))
        )
        return Excerpt(passage, points[fitting - 1]) if fitting else None

    def _says_enough(self, excerpt: Excerpt) -> bool:
        """Whether an excerpt is worth having without the rest of its section."""
        kept = excerpt.kept_lines or len(excerpt.passage.lines)
        tokens = self._tally.excerpt(excerpt)
        return tokens >= LEAST_ADDED and kept >= LEAST_OF_CUT * len(excerpt.passage.lines)
