"""Words and meaning in one order: what each side proposes, what leads, what the verdict learns."""

from collections.abc import Callable, Sequence

from sage.deadline import no_deadline
from sage.search.catalog import Catalog
from sage.search.engine import SearchEngine
from sage.search.explain import explain_results
from sage.search.fusion import WEIGHTS, Bounds, Likeness, Near, Similarities
from sage.search.searcher import Searcher
from sage.search.sections import Found, ReadDocument, SearchOptions
from tests.conftest import Base

BOUNDS = Bounds(far=0.5, near=0.7, very_near=0.9)
PAGES = {
    "core/caching.md": "# Caching\n\nKeep expensive results.\n\n## Keys\n\nName what was asked.\n",
    "core/retries.md": "# Retries\n\nCall again after a pause.\n",
    "practices/deploy.md": "# Deploy\n\nRoll out the release in steps.\n",
}


class Told:
    """Similarities that a test says, by path and section."""

    def __init__(self, said: dict[str, tuple[int, float]], catalog: Catalog) -> None:
        self._near = [
            Near(slot, *said[entry.path])
            for slot, entry in enumerate(catalog.slots)
            if entry.path in said
        ]
        self.bounds = BOUNDS

    def best(self, limit: int, allowed: Callable[[int], bool] | None) -> Sequence[Near]:
        near = [one for one in self._near if allowed is None or allowed(one.slot)]
        return sorted(near, key=lambda one: -one.similarity)[:limit]

    def of(self, slot: int) -> Near | None:
        return next((one for one in self._near if one.slot == slot), None)


class Telling:
    """A meaning that knows what a test says, whatever is asked."""

    generation = 1
    is_multilingual = False

    def __init__(self, said: dict[str, tuple[int, float]]) -> None:
        self._said = {f".knowledge/{path}": near for path, near in said.items()}

    def compare(self, text: str, catalog: Catalog) -> Similarities | None:
        return Told(self._said, catalog)

    def likeness(self, catalog: Catalog) -> Likeness | None:
        return None

    def follow(self, catalog: Catalog, read: ReadDocument) -> None:
        pass

    def make_way(self) -> None:
        pass

    def use(self, paths: Sequence[str]) -> None:
        pass


def searcher(base: Base, said: dict[str, tuple[int, float]]) -> Searcher:
    """A searcher of the pages above that knows what is near."""
    base.write(PAGES)
    knowledge = base.open()
    knowledge.warm()
    engine = knowledge._index.engine
    assert isinstance(engine, SearchEngine)
    assert engine._served is not None
    found = engine._served.searcher
    found.meaning = Telling(said)
    return found


FIVE = SearchOptions(5)


def search(
    base: Base,
    text: str,
    said: dict[str, tuple[int, float]],
    options: SearchOptions = FIVE,
) -> Found:
    return searcher(base, said).search(text, options, no_deadline())


def paths(found: Found) -> list[str]:
    return [one.path.removeprefix(".knowledge/") for one in found.sections]


def test_a_page_without_a_word_of_the_question_is_found_by_meaning_and_says_so(base: Base) -> None:
    found = search(base, "remember costly lookups", {"core/caching.md": (1, 0.8)})
    assert paths(found)[0] == "core/caching.md"
    assert found.sections[0].by_meaning
    assert found.sections[0].heading.endswith("Keys")
    assert found.verdict == "partly"


def test_a_far_page_is_no_candidate(base: Base) -> None:
    found = search(base, "remember costly lookups", {"core/caching.md": (0, 0.5)})
    assert paths(found) == []
    assert found.verdict == "no"


def test_what_is_not_near_enough_is_found_and_still_called_no(base: Base) -> None:
    found = search(base, "remember costly lookups", {"core/caching.md": (0, 0.6)})
    assert paths(found) == ["core/caching.md"]
    assert found.verdict == "no"


def test_what_is_very_near_is_an_answer(base: Base) -> None:
    found = search(base, "remember costly lookups", {"core/caching.md": (0, 0.92)})
    assert found.verdict == "yes"


def test_words_lead_where_they_answer(base: Base) -> None:
    said = {"core/caching.md": (0, 0.75), "practices/deploy.md": (0, 0.7)}
    found = search(base, "roll out the release in steps", said)
    assert paths(found)[0] == "practices/deploy.md"
    assert not found.sections[0].by_meaning


def test_meaning_leads_where_words_do_not_answer(base: Base) -> None:
    said = {"core/caching.md": (0, 0.8), "core/retries.md": (0, 0.55)}
    found = search(base, "pause the remembering of costly lookups forever", said)
    assert paths(found)[0] == "core/caching.md"


def test_a_layer_holds_for_meaning_before_the_limit(base: Base) -> None:
    said = {
        "core/caching.md": (0, 0.9),
        "core/retries.md": (0, 0.85),
        "practices/deploy.md": (0, 0.8),
    }
    found = search(base, "gradual shipping", said, SearchOptions(1, layers=["practices"]))
    assert paths(found) == ["practices/deploy.md"]


def test_a_page_without_vectors_keeps_the_place_that_words_gave_it(base: Base) -> None:
    found = search(base, "call again after a pause", {"core/caching.md": (0, 0.8)})
    assert paths(found)[0] == "core/retries.md"


def test_scores_never_rise_down_the_list_and_equal_pages_stand_by_path(base: Base) -> None:
    said = dict.fromkeys(PAGES, (0, 0.8))
    found = search(base, "something else entirely", said)
    assert paths(found) == sorted(PAGES)
    scores = [one.score for one in found.sections]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_the_total_counts_what_either_side_found_once(base: Base) -> None:
    said = dict.fromkeys(PAGES, (0, 0.8))
    assert search(base, "release in steps", said).total == len(PAGES)


def test_an_explanation_says_what_meaning_gave(base: Base) -> None:
    said = {"core/caching.md": (0, 0.8)}
    asked = searcher(base, said)
    (one,) = explain_results(asked, "remember costly lookups", SearchOptions(3), no_deadline())
    assert one.meaning is not None
    assert one.meaning.is_alone
    assert one.meaning.similarity == 0.8
    assert one.meaning.weight == WEIGHTS["no"]


def test_the_sections_of_a_task_include_the_nearest(base: Base) -> None:
    asked = searcher(base, {"core/caching.md": (1, 0.8)})
    ranked = asked.rank_sections("remember costly lookups", limit=6, deadline=no_deadline())
    assert ranked.sections[0].path == ".knowledge/core/caching.md"
    assert ranked.sections[0].ordinal == 1
    assert ranked.is_about_it
