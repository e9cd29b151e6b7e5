"""From weighed candidates to a pack: what comes first, what fills the rest.

Budgets are kept by `packing`; the words about what came are those of `reasons`.
"""

from collections.abc import Sequence

from sage.candidates import Candidate, Lineup, Stock
from sage.deadline import Deadline
from sage.errors import InvalidInput
from sage.packing import Packing, Style
from sage.parts import Part
from sage.reasons import Pack, Wish, explained
from sage.tally import Tally

ALWAYS_SHARE = 0.6
CORE_SHARE_WITH_TASK = 0.6
"""How much of its share the core is sure of when there is a task to answer to."""
LEAST_CORE = 0.3
MOST_CORE = 0.5
ONE_PRINCIPLE = 220
"""Tokens that hold one principle: a small budget keeps as much for the core."""
FLOOR = 0.6
_CANDIDATES_FOR_LEAST = 200
_SMALLEST_FOR_LEAST = 50
_CUTS_TRIED = 150

BY_RECIPE = Style(same_document=0.95, over_share=0.4)
BY_TASK = Style(same_document=0.85, over_share=0.3)


def assemble(wish: Wish, budget: int, tally: Tally, deadline: Deadline) -> Pack:
    """The pack.

    Raises:
        InvalidInput: the budget holds nothing; the message says how much would.
    """
    style = BY_TASK if wish.has_task else BY_RECIPE
    packing = Packing(budget, tally, wish.shares, style, deadline)
    return _Assembly(wish, budget, tally, packing).run()


class _Assembly:
    """One pack in the making."""

    def __init__(self, wish: Wish, budget: int, tally: Tally, packing: Packing) -> None:
        self._wish = wish
        self._budget = budget
        self._tally = tally
        self._packing = packing

    def run(self) -> Pack:
        packing = self._packing
        packing.pack(Lineup(Stock(self._wish.always)), int(self._budget * ALWAYS_SHARE))
        packing.pack(self._wish.core, packing.used + self._sure_of_core(), FLOOR)
        left = packing.pack(self._wish.free, self._budget, FLOOR)
        self._fill(left)
        parts = self._parts()
        tokens = self._tally.whole(parts)
        while tokens > self._budget:
            packing.drop_last()
            parts = self._parts()
            tokens = self._tally.whole(parts)
        if not parts:
            parts, tokens = self._least()
        return explained(self._wish, packing, parts, tokens, self._tally)

    def _sure_of_core(self) -> int:
        """The tokens that the core may use before anything else comes."""
        share = self._wish.core_share * (CORE_SHARE_WITH_TASK if self._wish.has_task else 1.0)
        least = min(ONE_PRINCIPLE, int(self._budget * LEAST_CORE))
        return max(least, int(self._budget * min(share, MOST_CORE)))

    def _fill(self, left: Sequence[Candidate]) -> None:
        """Use up the budget: cut the next best, then take what is small enough."""
        packing = self._packing
        packing.fill(left)
        if packing.is_full:
            return
        left = packing.pack(self._wish.all, self._budget)
        while packing.fill(left):
            pass
        if packing.is_wasteful:
            packing.pack(packing.small_enough(self._wish.all), self._budget)
            best = self._wish.all.first(_CUTS_TRIED)
            while packing.is_wasteful and packing.fill(best, _CUTS_TRIED):
                pass

    def _least(self) -> tuple[list[Part], int]:
        """The best candidate of which at least something fits."""
        best = self._wish.all.first(_CANDIDATES_FOR_LEAST)
        by_size = sorted(self._wish.all, key=lambda one: (one.passage.size_bytes, one.key))
        tried = [*best, *by_size[:_SMALLEST_FOR_LEAST]]
        if not tried:
            return [], 0
        needed: list[int] = []
        for candidate in tried:
            self._packing.take_least(candidate)
            parts = self._parts()
            needed.append(self._tally.whole(parts))
            if needed[-1] <= self._budget:
                return parts, needed[-1]
            self._packing.drop_last()
        raise InvalidInput(
            f"token_budget {self._budget} is too small for any section of this knowledge base; "
            f"the least that works here is {min(needed)}"
        )

    def _parts(self) -> list[Part]:
        """Core documents in reading order, then the others as they came in: best first."""
        return self._packing.parts(self._wish.places)
