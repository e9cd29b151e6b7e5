from collections.abc import Mapping

import pytest

from sage.terms.analysis import stem_of
from sage.terms.gathering import GatheredTerm, Pool
from sage.terms.postings import MAX_POSITION, Postings


def by_form(pool: Pool) -> dict[str, Mapping[str, GatheredTerm]]:
    return {key.decode().partition("\0")[2]: fields for key, fields in pool.iter_postings()}


def test_terms_are_gathered_by_form_and_field() -> None:
    pool = Pool(stem_of)
    pool.gather(0, {"body": {"b": [3]}})
    pool.gather(1, {"body": {"b": [4, 9], "a": [0]}, "title": {"a": [1]}})
    gathered = by_form(pool)
    assert set(gathered) == {"a", "b"}
    assert set(gathered["a"]) == {"body", "title"}
    term = gathered["b"]["body"]
    assert (list(term.rows), list(term.counts), list(term.places)) == ([0, 1], [1, 2], [3, 4, 9])


def test_positions_are_kept_within_bounds() -> None:
    pool = Pool(stem_of)
    pool.gather(0, {"body": {"far": [5, 10**9], "often": list(range(1000))}})
    gathered = by_form(pool)
    assert list(gathered["far"]["body"].places) == [5, MAX_POSITION]
    assert list(gathered["often"]["body"].counts) == [255]


def test_whoosh_indexes_nothing_itself() -> None:
    with pytest.raises(NotImplementedError):
        Pool(stem_of).add(("body", b"a", 0, 1.0, b""))


def test_positions_are_read_on_request() -> None:
    asked: list[tuple[int, int]] = []

    def places(start: int, stop: int) -> list[int]:
        asked.append((start, stop))
        return [10, 11, 12, 13, 14, 15][start:stop]

    postings = Postings([2, 5, 7], bytes([1, 2, 3]), places)
    assert asked == []
    assert postings.positions(1) == [11, 12]
    assert asked == [(1, 3)]
    assert dict(postings.items()) == {2: [10], 5: [11, 12], 7: [13, 14, 15]}
