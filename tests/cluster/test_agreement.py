"""Made pages and many queries: a replica says what the files say."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from sage.cluster.reader import CANDIDATES, MANY_CANDIDATES
from sage.knowledge import KnowledgeBase
from sage.token_counter import LightCounter
from sage.values import DEFAULT_RESULTS
from tests.cluster.conftest import Team
from tests.cluster.nodes import Node
from tests.conftest import Base

SEED = 1
PAGES = 400
LAYERS = ("core", "guidelines", "practices")
SMALL_WORDS = ("the", "a", "of", "to", "and", "is")
NAMES = ("getUserName", "user_name", "set-cache", "utf8")
TAGS = ("Testing", "testing", "ci", "CI", "Mixed1", "\u00dcber")
TYPES = ("Gotcha", "plan", "bug_fix", "Bug Fix")
STATUSES = ("draft", "Draft", "published", "deprecated")
Asked = tuple[str, Mapping[str, Any]]


class Made:
    """Pages of random words, and queries about them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        starts, ends = (
            ("ka", "re", "so", "mi", "tu", "lo", "na", "pe"),
            ("ber", "don", "fal", "gus"),
        )
        middles = ("na", "ri", "mo")
        self.words = [one + two + three for one in starts for two in middles for three in ends]
        self.texts: list[str] = []
        self.pages = {
            f"{self.any(LAYERS)}/p{number:03}.md": self._page() for number in range(PAGES)
        }

    def any(self, values: Sequence[str]) -> str:
        return self.chance.choice(values)

    def word(self) -> str:
        return self.any(self.words)

    def phrase(self, length: int = 2) -> str:
        """Words that stand together on some page, and mostly without its ends."""
        words = self.any(self.texts).split()
        at = self.chance.randrange(max(1, len(words) - length))
        return " ".join(words[at : at + length])

    def _text(self) -> str:
        words = [
            self.any(SMALL_WORDS) if self.chance.random() < 0.2 else self.word()
            for _ in range(self.chance.randint(4, 14))
        ]
        self.texts.append(" ".join(words))
        return self.texts[-1]

    def _page(self) -> str:
        said = [f"last_updated: 2024-0{self.chance.randint(1, 3)}-01"]
        if self.chance.random() < 0.6:
            said.append(f"tags: [{', '.join(self.chance.sample(TAGS, 2))}]")
        if self.chance.random() < 0.4:
            said.append(f"type: {self.any(TYPES)}")
        if self.chance.random() < 0.4:
            said.append(f"status: {self.any(STATUSES)}")
        if self.chance.random() < 0.1:
            said.append(f"superseded_by: p{self.chance.randrange(PAGES):03}.md")
        head = "---\n" + "\n".join(said) + f"\n---\n# {self.word().title()} {self.word()}\n\n"
        name = f" `{self.any(NAMES)}`" if self.chance.random() < 0.2 else ""
        return f"{head}{self._text()}{name}\n\n## {self.word().title()}\n\n{self._text()}\n"


def phrases(made: Made) -> Iterator[Asked]:
    for length in (1, 2, 2, 2, 3):
        for _ in range(5):
            yield f'"{made.phrase(length)}"', {}
            yield f'"{made.phrase(length)}" {made.word()}', {}
    for _ in range(5):
        yield f'"{made.phrase()}" "{made.phrase()}"', {}
        yield f'"{made.word()} {made.word()}"', {}
        yield f'"{made.phrase()}" -{made.word()}', {"tags": ["ci"]}


def exclusions(made: Made) -> Iterator[Asked]:
    for _ in range(12):
        yield f"{made.word()} -{made.word()}", {}
        yield f"{made.word()} {made.word()} -{made.word()} -{made.word()}", {}
    for name in NAMES:
        yield f"{made.word()} -{name}", {}
    yield f"layer:core -{made.word()}", {}
    yield f"tag:ci -{made.word()} -getUserName", {}
    yield f"-{made.word()}", {}


def filters(made: Made) -> Iterator[Asked]:
    for tag in (*TAGS, "TESTING", "mixed1", "\u00fcber", "absent"):
        yield made.word(), {"tags": [tag]}
        yield "", {"tags": [tag, "ci"]}
        yield f"tag:{tag} {made.word()}", {}
    for kind in ("gotcha", "Plan", "bug-fix"):
        yield made.word(), {"types": [kind]}
        yield f"type:{kind} {made.word()}", {}
    for status in ("draft", "DRAFT", "superseded", "published"):
        yield made.word(), {"status": status}
        yield f"status:{status} {made.word()}", {}
    for layer in LAYERS:
        yield f"{made.word()} {made.word()}", {"layer": layer}
    yield made.word(), {"source": "own"}
    yield f"source:OWN {made.word()}", {}


def orders(made: Made) -> Iterator[Asked]:
    for order in ("date", "path"):
        yield "", {"sort": order}
        yield "", {"sort": order, "offset": 377, "limit": 50}
        yield f"{made.word()} {made.word()}", {"sort": order, "offset": 7}
        yield " ".join(made.word() for _ in range(12)), {"sort": order, "offset": 222}
        yield f'"{made.phrase()}"', {"sort": order}
        yield f"{made.word()} -{made.word()}", {"sort": order, "tags": ["CI"]}


def parts(made: Made) -> Iterator[Asked]:
    for offset in (5, 30, 60, 195, 250, 399, 1_000):
        yield made.word(), {"offset": offset, "limit": 5}
        yield " ".join(made.word() for _ in range(9)), {"offset": offset}
    yield made.word(), {"limit": 50}
    yield f"{made.word()} {made.word()}", {"limit": 50}


def small_words(made: Made) -> Iterator[Asked]:
    for small in ("the", "a", "of the", "is to and"):
        yield f'"{small}" {made.word()}', {}
        yield f'"{small}" "{made.phrase()}"', {}
    yield '{"a":1}', {}
    yield f'"with" {made.word()}', {}
    yield f'"the" -{made.word()} {made.word()}', {}


def misspellings(made: Made) -> Iterator[Asked]:
    for _ in range(5):
        word = made.word()
        yield word[:2] + word[3] + word[2] + word[4:], {}
        yield f"{word}x {made.word()}", {}
        yield made.word() + made.word(), {}
        yield made.phrase().replace(" ", ""), {}
    for name in ("getUserName", "userName", "set_cache", "nothing of that", "utf-8"):
        yield name, {}


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, node: Node, light_counter: LightCounter
) -> Iterator[tuple[KnowledgeBase, KnowledgeBase]]:
    folder = tmp_path_factory.mktemp("agreement")
    base = Base(folder / "repo", folder / "cache", light_counter)
    team = Team(base, node.url)
    with team.connection:
        team.publish(Made(SEED).pages)
        files = base.open()
        files.warm()
        yield files, team.replica()


def said(base: KnowledgeBase, query: str, options: Mapping[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = dict(base.search(query, max_tokens=50_000, whole=False, **options))
    del answer["query_time_ms"]
    return answer


@pytest.mark.parametrize(
    "form", [phrases, exclusions, filters, orders, parts, small_words, misspellings]
)
def test_a_replica_says_what_the_files_say(
    both: tuple[KnowledgeBase, KnowledgeBase], form: Callable[[Made], Iterator[Asked]]
) -> None:
    compared = 0
    asked = list(form(Made(SEED)))
    for query, options in asked:
        theirs, ours = (said(base, query, options) for base in both)
        results = [answer.pop("results") for answer in (theirs, ours)]
        if theirs["total"] > most_compared(query, options):
            # Another page may have one of the places, and take another room in the answer.
            for answer in (theirs, ours):
                answer.pop("next_offset", None)
            assert ours == theirs, (query, options)
            continue
        compared += 1
        assert ours == theirs, (query, options)
        topics = [[result["topic"] for result in found] for found in results]
        assert topics[1] == topics[0], (query, options)
        scores = [[result["score"] for result in found] for found in results]
        assert scores[1] == pytest.approx(scores[0], abs=0.0101), (query, options)
    assert compared > 0.4 * len(asked)


def test_a_replica_explains_a_place_as_the_files_do(
    both: tuple[KnowledgeBase, KnowledgeBase],
) -> None:
    made = Made(SEED)
    places = set()
    for number in range(0, PAGES, 40):
        query = " ".join(made.word() for _ in range(9))
        path = f".knowledge/{list(made.pages)[number]}"
        told = [
            [
                (one.place, [(share.word, share.documents) for share in one.shares])
                for one in base.explain(query, path=path)
            ]
            for base in both
        ]
        assert told[1] == told[0], query
        places.add(told[0][0][0])
    assert max(places) > MANY_CANDIDATES


def most_compared(query: str, options: Mapping[str, Any]) -> float:
    """How many pages may match where the order is that of all of them."""
    if not query or options.get("offset") or "sort" in options:
        return float("inf")
    return CANDIDATES if options.get("limit", 0) <= DEFAULT_RESULTS else MANY_CANDIDATES
