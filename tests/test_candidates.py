"""Candidates, the best first, with what a search found merged in."""

from sage.candidates import Candidate, Fit, Lineup, Reason, Stock, best_first
from sage.passages import passages_of
from tests.contexts import document, prose


def candidate(name: str, value: float, relevance: float = 0.0, words: int = 30) -> Candidate:
    page = document(f"practices/{name}.md", f"# {name}\n\n{prose(words)}\n")
    return Candidate(passages_of(page)[0], Fit(value, (Reason("fits", value),)), relevance)


def names(lineup: Lineup) -> list[str]:
    return [one.passage.document.title for one in lineup]


def test_relevance_counts_more_than_fit_and_length_a_little() -> None:
    found = best_first(
        [candidate("fit", 1.0), candidate("found", 0.6, 0.3), candidate("long", 1.0, words=900)]
    )
    assert [one.passage.document.title for one in found] == ["found", "fit", "long"]


def test_equals_stand_in_the_order_of_their_paths() -> None:
    found = best_first([candidate("b", 1.0), candidate("a", 1.0)])
    assert [one.passage.document.title for one in found] == ["a", "b"]


def test_what_was_found_is_merged_and_replaces_what_was_there() -> None:
    stock = Stock([candidate("a", 1.0), candidate("b", 0.9), candidate("c", 0.1)])
    found = [candidate("b", 0.9, 0.5), candidate("d", 0.5)]
    paths = {one.path for one in found}
    assert names(Lineup(stock)) == ["a", "b", "c"]
    assert names(Lineup(stock, found, paths)) == ["b", "a", "d", "c"]
    assert [one.relevance for one in Lineup(stock, found, paths).first(1)] == [0.5]


def test_a_lineup_knows_the_candidates_of_a_document() -> None:
    stock = Stock([candidate("a", 1.0), candidate("b", 0.9)])
    found = [candidate("b", 0.9, 0.5)]
    lineup = Lineup(stock, found, {found[0].path})
    assert list(lineup.on(found[0].path)) == found
    assert list(lineup.on(stock.candidates[0].path)) == stock.candidates[:1]
    assert list(lineup.on("elsewhere")) == []


def test_a_replacement_is_a_reason() -> None:
    one = candidate("a", 1.0)
    assert [reason.words for reason in one.reasons] == ["fits"]
    one.replaces = "practices/old.md"
    assert [reason.words for reason in one.reasons] == ["replaces practices/old.md", "fits"]
