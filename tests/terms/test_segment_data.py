import random
from array import array

import pytest

from sage.terms.analysis import stem_of
from sage.terms.gathering import Pool, build
from sage.terms.index_file import MemoryPart, UntrustedIndex
from sage.terms.postings import FIELDS, PARTS, SegmentData, SegmentTerm


def built() -> SegmentData:
    pool = Pool(stem_of)
    pool.gather(0, {"title": {"retries": [0]}, "body": {"retry": [0, 4], "数据": [2]}})
    pool.gather(1, {"body": {"retry": [1], "retries": [2]}, "code": {"retry_": [3]}})
    return build(pool.iter_postings(), [5, 4], [b"first", b""])


def all_read(data: SegmentData) -> dict[tuple[str, str], dict[int, list[int]]]:
    """Everything a search could read."""
    read: dict[tuple[str, str], dict[int, list[int]]] = {}
    for term in data.all_terms():
        for field in FIELDS:
            postings = data.postings(term, field)
            if postings is not None:
                rows = {row: list(places) for row, places in postings.items()}
                assert rows == {
                    row: list(postings.positions(at)) for at, row in enumerate(postings.rows)
                }
                read[term.form, field] = rows
    for row in range(len(data.lengths)):
        data.record(row)
    return read


def test_terms_are_found_by_their_stem_with_their_places() -> None:
    data = built()
    assert {term.form for term in data.terms("retri")} == {"retry", "retries", "retry_"}
    assert data.terms("retr") == []
    assert all_read(data) == {
        ("retries", "title"): {0: [0]},
        ("retries", "body"): {1: [2]},
        ("retry", "body"): {0: [0, 4], 1: [1]},
        ("retry_", "code"): {1: [3]},
        ("数据", "body"): {0: [2]},
    }
    assert (data.record(0), data.record(1)) == (b"first", b"")
    assert list(data.lengths) == [5, 4]


def test_it_is_the_same_from_its_parts() -> None:
    data = built()
    assert all_read(SegmentData(data.parts)) == all_read(data)


def test_an_empty_segment_holds_nothing() -> None:
    data = build([], [], [])
    assert data.terms("a") == []
    assert list(data.all_terms()) == []


def test_a_row_that_is_not_there_is_refused() -> None:
    data = built()
    changed = {**data.parts, "rows": MemoryPart(array("H", [9] * 6).tobytes())}
    with pytest.raises(UntrustedIndex):
        all_read(SegmentData(changed))
    with pytest.raises(UntrustedIndex):
        data.record(2)
    with pytest.raises(UntrustedIndex):
        data.postings(SegmentTerm("x", 255, 10**6), "body")


def test_whatever_stands_in_the_parts_is_read_or_refused() -> None:
    chance = random.Random(7)
    refused = 0
    for _ in range(3_000):
        parts = dict(built().parts)
        name = chance.choice(PARTS)
        data = bytearray(parts[name].read(0, parts[name].size))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        parts[name] = MemoryPart(bytes(data))
        try:
            opened = SegmentData(parts)
            opened.terms("retri")
            all_read(opened)
        except UntrustedIndex:
            refused += 1
    assert refused > 1_000
