import math

import pytest

from sage.search.scoring import DOCUMENT_BOOSTS, rarity, shown_score, standing_of
from tests.conftest import Base
from tests.indexed_base import IndexedBase


def test_rare_words_are_worth_more_and_common_ones_nothing_less_than_zero() -> None:
    assert rarity(1, 100) > rarity(10, 100) > rarity(100, 100) > 0
    assert rarity(1, 100) == pytest.approx(math.log(1 + 99.5 / 1.5))


def test_a_score_lies_between_zero_and_one_and_rises_with_strength() -> None:
    scores = [shown_score(strength, 10.0) for strength in (0.0, 1.0, 20.0, 1e9)]
    assert scores == sorted(scores)
    assert scores[0] > 0
    assert scores[-1] == 1.0


def test_the_same_strength_is_worth_less_when_more_was_asked() -> None:
    assert shown_score(5.0, 10.0) > shown_score(5.0, 20.0)


def test_the_title_weighs_most() -> None:
    assert max(DOCUMENT_BOOSTS, key=DOCUMENT_BOOSTS.__getitem__) == "title"


def test_the_page_of_a_folder_stands_between_a_page_and_a_readme(base: Base) -> None:
    names = ("core/a/_index.md", "core/b/README.md", "core/c/page.md")
    base.write(dict.fromkeys(names, "# Retries\n\nHow calls are repeated.\n"))
    entries = IndexedBase(base).update().searcher.catalog.entries
    folder, readme, page = (standing_of(entries[f".knowledge/{name}"]) for name in names)
    assert page > folder > readme
