"""How well search answers a team's own questions: golden queries, ranks, and three measures."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sage.documents.topics import topic_parts
from sage.errors import InvalidInput, SageError
from sage.safe_yaml import YamlError, load_yaml

DEFAULT_LIMIT = 10
DEFAULT_WITHIN = 3
"""Of five pages any is among ten results: only the first places say that a search is good."""
MAX_BYTES = 1_000_000
_KEYS = ("query", "expect", "layer")
_SHAPE = "a list of {query: text, expect: topic or list of topics}, or a mapping of query to topics"

Search = Callable[[str, str, int], Sequence[str]]
"""Query, layer and limit to the topics of the results, best first."""


class Golden(NamedTuple):
    """A query and the topics that answer it."""

    query: str
    expected: tuple[str, ...]
    layer: str = "all"


class Outcome(NamedTuple):
    """Where the expected topics of one query came out."""

    query: str
    expected: tuple[str, ...]
    ranks: tuple[int | None, ...]
    """The place of each expected topic, from 1; None when it is not among the results."""
    ndcg: float

    @property
    def best(self) -> int | None:
        """The place of the first expected topic."""
        return min((rank for rank in self.ranks if rank is not None), default=None)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measures over all queries of a file."""

    outcomes: tuple[Outcome, ...]
    hit_rate: float
    """The share of queries with an expected topic among the first results."""
    mrr: float
    """The mean of 1 / the place of the first expected topic."""
    ndcg: float
    """The mean of nDCG over the results: every expected topic counts, earlier ones more."""

    def as_object(self) -> dict[str, object]:
        """The measures as a JSON object."""
        return {
            "queries": len(self.outcomes),
            "hit_rate": round(self.hit_rate, 4),
            "mrr": round(self.mrr, 4),
            "ndcg": round(self.ndcg, 4),
            "outcomes": [
                {"query": one.query, "expect": list(one.expected), "ranks": list(one.ranks)}
                for one in self.outcomes
            ],
        }


class Floors(NamedTuple):
    """The least a team accepts of each measure."""

    hit_rate: float = 0.0
    mrr: float = 0.0
    ndcg: float = 0.0

    def check(self, found: Evaluation) -> None:
        """Compare.

        Raises:
            BelowFloor: a measure is lower than its floor.
        """
        measured = (found.hit_rate, found.mrr, found.ndcg)
        low = [
            f"{name} is {value:.3f}, below {floor:.3f}"
            for name, value, floor in zip(self._fields, measured, self, strict=True)
            if value < floor
        ]
        if low:
            raise BelowFloor("; ".join(low))


class BelowFloor(SageError):
    """Search answers the golden queries less well than it must."""


def read_golden_file(path: Path) -> list[Golden]:
    """The golden queries of a file.

    Raises:
        InvalidInput: it cannot be read or has another shape.
    """
    try:
        if not path.is_file():  # a pipe or a device would never end
            said = "is not a file" if path.exists() else "is not there"
            raise InvalidInput(f"{path} {said}; write questions into it as {_SHAPE}")
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode("utf-8-sig")
        return read_golden(load_yaml(text, MAX_BYTES))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InvalidInput(f"{path}: cannot be read: {reason}") from error
    except YamlError as error:
        raise InvalidInput(f"{path}:{error.line}: {error}") from error


def read_golden(data: object) -> list[Golden]:
    """The golden queries of a parsed YAML file.

    Raises:
        InvalidInput: it has another shape; the message says where.
    """
    if isinstance(data, Mapping) and set(data) == {"queries"}:
        data = data["queries"]
    if isinstance(data, Mapping):
        data = [{"query": query, "expect": expected} for query, expected in data.items()]
    if not isinstance(data, list) or not data:
        raise InvalidInput(f"golden queries: expected {_SHAPE}")
    return [_golden(position, one) for position, one in enumerate(data, 1)]


def evaluate(
    queries: Sequence[Golden],
    search: Search,
    limit: int = DEFAULT_LIMIT,
    within: int = DEFAULT_WITHIN,
) -> Evaluation:
    """Run every query and measure where its topics come out.

    Args:
        within: the last place that counts as a hit.
    """
    outcomes = tuple(_outcome(one, search(one.query, one.layer, limit)) for one in queries)
    count = max(len(outcomes), 1)
    places = [outcome.best for outcome in outcomes]
    return Evaluation(
        outcomes=outcomes,
        hit_rate=sum(place is not None and place <= within for place in places) / count,
        mrr=sum(1 / place for place in places if place is not None) / count,
        ndcg=sum(outcome.ndcg for outcome in outcomes) / count,
    )


def discounted(grades: Sequence[float], ideal: Sequence[float]) -> float:
    """nDCG: the gain of grades in their order against the best possible order."""
    best = _gain(sorted(ideal, reverse=True)[: max(len(grades), 1)])
    return _gain(grades) / best if best else 0.0


def _gain(grades: Sequence[float]) -> float:
    return sum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _outcome(golden: Golden, topics: Sequence[str]) -> Outcome:
    ranks = tuple(
        next((place for place, topic in enumerate(topics, 1) if _answers(topic, expected)), None)
        for expected in golden.expected
    )
    found = {rank for rank in ranks if rank is not None}
    grades = [1.0 if place in found else 0.0 for place in range(1, len(topics) + 1)]
    ideal = [1.0] * len(golden.expected)
    ndcg = discounted(grades, ideal) if found else 0.0
    return Outcome(golden.query, golden.expected, ranks, ndcg)


def _answers(topic: str, expected: str) -> bool:
    """Whether a result is what was expected: the page, or the very section if one is named."""
    page, _, heading = topic.partition("#")
    wanted, _, section = expected.partition("#")
    if section and section.casefold() != heading.casefold():
        return False
    have, want = topic_parts(page), topic_parts(wanted)
    return bool(want) and have[-len(want) :] == want


def _golden(position: int, one: object) -> Golden:
    if not isinstance(one, Mapping) or not isinstance(one.get("query"), str):
        raise InvalidInput(f"golden queries: number {position} has no query; expected {_SHAPE}")
    unknown = [str(key) for key in one if key not in _KEYS]
    if unknown:
        raise InvalidInput(
            f"golden queries: number {position} has {', '.join(unknown)}; known: {', '.join(_KEYS)}"
        )
    expected = one.get("expect")
    topics = [expected] if isinstance(expected, str) else expected
    if not isinstance(topics, list) or not topics or not all(isinstance(t, str) for t in topics):
        raise InvalidInput(f"golden queries: number {position} expects no topic; {_SHAPE}")
    return Golden(one["query"], tuple(topics), str(one.get("layer", "all")))
