"""Packing: the most worth that fits a budget, section by section.

It is given candidates with their worth; it knows nothing of recipes, languages or search.
"""

import bisect
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sage.candidates import Candidate, Lineup, Stock
from sage.deadline import Deadline
from sage.parts import Excerpt, Part, parts_of
from sage.passages import Passage
from sage.tally import Tally

USED_WELL = 0.95
"""Below this share of the budget a section is cut to fill the rest."""
USED_ENOUGH = 0.91
"""Below this share the whole knowledge base is looked through for what could fill the rest."""
LARGEST_SHARE = 0.4
"""A section that would take more of the budget than this is cut, so that others come too."""
LARGEST_TOKENS = 400
"""Unless it is no larger than this: a small budget had better hold one section whole."""
LEAST_ADDED = 24
"""Tokens that are worth the trouble of another heading."""
REPEATED_SHARE = 0.8
"""Text of which so much is packed already is not packed again."""
MOST_MISFITS = 16
"""So many sections in a row that do not fit show that the pack is full."""
_LEFT_OVER = 0.02
_BESIDE = 1.05
"""What a section gains by each neighbour in the pack: they read as one and share a heading."""
_BYTES_PER_TOKEN = 4
_MOST_BYTES_PER_TOKEN = 8
_USUAL_TOKENS = 160
_CUTS_TRIED = 12


@dataclass(frozen=True, slots=True)
class Style:
    """How a pack is balanced."""

    same_document: float
    """What a section is worth for each section of usual size that its document already has."""
    over_share: float
    """How steeply worth falls once a layer has used its share; 0 ignores shares."""


class Packing:
    """A pack under way."""

    def __init__(
        self,
        budget: int,
        tally: Tally,
        shares: Mapping[str, float],
        style: Style,
        deadline: Deadline,
    ) -> None:
        self._budget = budget
        self._tally = tally
        self._shares = {layer: max(1.0, share * budget) for layer, share in shares.items()}
        self._style = style
        self._deadline = deadline
        self._chosen: dict[str, list[Excerpt]] = {}
        self._costs: dict[str, int] = {}
        self._by_layer: dict[str, int] = {}
        self._said: set[int] = set()
        self.taken: dict[int, Candidate] = {}
        """What came in, by the identity of the passage."""
        self._too_little = max(LEAST_ADDED, int(budget * _LEFT_OVER))
        self.used = 0
        """The tokens used, the break behind the last part included."""

    @property
    def room(self) -> int:
        """The tokens left."""
        return self._budget - self.used

    @property
    def is_full(self) -> bool:
        """Whether so little is left that nothing more is worth adding."""
        return self.room <= max(LEAST_ADDED, self._budget * (1 - USED_WELL))

    def parts(self, order: Mapping[str, int]) -> list[Part]:
        """The parts: documents in the given order come first, then as they came in."""
        first = sorted((path for path in self._chosen if path in order), key=lambda p: order[p])
        rest = [path for path in self._chosen if path not in order]
        return [part for path in first + rest for part in parts_of(self._chosen[path])]

    def holds(self, candidate: Candidate) -> bool:
        """Whether a candidate is in the pack, whole or cut."""
        packed = self._chosen.get(candidate.path)
        return packed is not None and any(one.passage is candidate.passage for one in packed)

    def lacks(self, candidate: Candidate) -> bool:
        """Whether something is missing without a candidate: it is neither here nor said here."""
        return not self.holds(candidate) and not self.is_repeated(candidate)

    def is_repeated(self, candidate: Candidate) -> bool:
        """Whether nearly all that a candidate says has been packed from elsewhere."""
        if not self._said or self.holds(candidate):
            return False
        own = candidate.passage.shingles
        return len(own & self._said) >= REPEATED_SHARE * len(own)

    def pack(self, lineup: Lineup, limit: int, floor: float = 0.0) -> list[Candidate]:
        """Take the best while the pack stays within the limit; returns the next best.

        Args:
            floor: once something did not fit, smaller sections come in its place only down to
                this share of its gain.
        """
        queue = _Queue(lineup)
        left: list[Candidate] = []
        lowest = 0.0
        while len(left) < MOST_MISFITS and (best := self._next(queue)):
            self._deadline.check()
            candidate, gain = best
            if limit - self.used < self._too_little or gain < lowest:
                return [*left, candidate, *queue.rest(_CUTS_TRIED)]
            if self.is_repeated(candidate):
                continue
            if self._take(candidate, limit):
                for near in queue.neighbours(candidate.passage):
                    queue.push(near, self._gain(near))
            else:
                left.append(candidate)
                lowest = max(lowest, gain * floor)
        return [*left, *queue.rest(_CUTS_TRIED)]

    @property
    def is_wasteful(self) -> bool:
        """Whether more is left than a pack should leave."""
        return self.room > max(LEAST_ADDED, self._budget * (1 - USED_ENOUGH))

    def small_enough(self, candidates: Iterable[Candidate]) -> Lineup:
        """Those that are likely to fit what is left."""
        most = self.room * _BYTES_PER_TOKEN
        return Lineup(Stock(one for one in candidates if one.passage.size_bytes <= most))

    def fill(self, candidates: Sequence[Candidate], tried: int = _CUTS_TRIED) -> bool:
        """Cut one section to use what is left; false when nothing was gained."""
        if self.is_full:
            return False
        room = self.room
        best: tuple[int, Excerpt, Candidate] | None = None
        for candidate in candidates[:tried]:
            self._deadline.check()
            excerpt = None if self.is_repeated(candidate) else self._cut(candidate, room)
            if excerpt is None:
                continue
            added = self._added(excerpt)
            if best is None or added > best[0]:
                best = added, excerpt, candidate
            if added >= 0.7 * room:
                break
        if best is None or best[0] < LEAST_ADDED:
            return False
        self._keep(best[2], best[1], best[0])
        return True

    def take_least(self, candidate: Candidate) -> None:
        """Pack the least of a candidate that is worth packing, however much it is."""
        points = candidate.passage.cut_points[:1]
        options = [Excerpt(candidate.passage), *(Excerpt(candidate.passage, n) for n in points)]
        least = min(options, key=self._added)
        self._keep(candidate, least, self._added(least))

    def drop_last(self) -> None:
        """Take out the document that came in last."""
        path = next(reversed(self._chosen))
        self.used -= self._costs.pop(path)
        del self._chosen[path]

    def _next(self, queue: "_Queue") -> tuple[Candidate, float] | None:
        """The candidate of the highest gain. An old gain is an upper bound: gains only fall."""
        while (best := queue.pop()) is not None:
            candidate, before = best
            if self.holds(candidate):
                continue
            gain = self._gain(candidate)
            if gain >= before or gain >= queue.highest:
                return candidate, gain
            queue.push(candidate, gain)
        return None

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
        return self._tally.inner(Excerpt(passage))

    def _keep(self, candidate: Candidate, excerpt: Excerpt, added: int) -> None:
        document = excerpt.passage.document
        self.taken[id(excerpt.passage)] = candidate
        self._chosen[document.path] = self._with(excerpt)
        self._costs[document.path] = self._costs.get(document.path, 0) + added
        self._by_layer[document.layer] = self._by_layer.get(document.layer, 0) + added
        self.used += added
        self._said.update(excerpt.passage.shingles)

    def _with(self, excerpt: Excerpt) -> list[Excerpt]:
        packed = self._chosen.get(excerpt.passage.document.path, ())
        return [*(one for one in packed if one.passage is not excerpt.passage), excerpt]

    def _added(self, excerpt: Excerpt) -> int:
        """The tokens that an excerpt adds; beside its neighbours it needs no heading."""
        cost = sum(map(self._tally.part, parts_of(self._with(excerpt))))
        return cost - self._costs.get(excerpt.passage.document.path, 0)

    def _gain(self, candidate: Candidate) -> float:
        document = candidate.passage.document
        gain = candidate.appeal
        used = self._by_layer.get(document.layer, 0)
        used += candidate.passage.size_bytes // _BYTES_PER_TOKEN
        share = self._shares.get(document.layer, 1.0)
        if used > share:
            gain *= (share / used) ** self._style.over_share
        cost = self._costs.get(candidate.path)
        if cost is None:
            return gain
        beside = self._beside(candidate.passage)
        return float(gain * self._style.same_document ** (cost / _USUAL_TOKENS) * _BESIDE**beside)

    def _beside(self, passage: Passage) -> int:
        """How many neighbours of a passage are in the pack."""
        packed = (one.passage for one in self._chosen[passage.document.path])
        return sum(one.end == passage.first or one.first == passage.end for one in packed)

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


class _Queue:
    """Candidates by gain, without looking at those that are too weak to come."""

    def __init__(self, lineup: Lineup) -> None:
        self._lineup = lineup
        self._source = iter(lineup)
        self._following = next(self._source, None)
        self._heap: list[tuple[float, tuple[str, int], Candidate]] = []

    @property
    def highest(self) -> float:
        """An upper bound of the gains of all that wait."""
        waiting = -self._heap[0][0] if self._heap else 0.0
        return max(waiting, self._following.appeal) if self._following else waiting

    def push(self, candidate: Candidate, gain: float) -> None:
        heapq.heappush(self._heap, (-gain, candidate.key, candidate))

    def pop(self) -> tuple[Candidate, float] | None:
        while self._following and (not self._heap or -self._heap[0][0] <= self._following.appeal):
            self.push(self._following, self._following.appeal)
            self._following = next(self._source, None)
        if not self._heap:
            return None
        gain, _, candidate = heapq.heappop(self._heap)
        return candidate, -gain

    def rest(self, most: int) -> Iterator[Candidate]:
        """Some of what waits, roughly the best first."""
        yield from (one for _, _, one in heapq.nsmallest(most, self._heap))
        if self._following:
            yield self._following
        yield from islice(self._source, most)

    def neighbours(self, passage: Passage) -> Iterator[Candidate]:
        """The candidates beside a passage, which have just gained by it."""
        for candidate in self._lineup.on(passage.document.path):
            near = candidate.passage
            if near.end == passage.first or near.first == passage.end:
                yield candidate
