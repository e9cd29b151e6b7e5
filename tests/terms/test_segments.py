import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sage.terms.analysis import stem_of
from sage.terms.postings import PARTS, Row, SegmentData
from sage.terms.segments import SegmentStore


def row(text: str, **fields: str) -> Row:
    terms: dict[str, dict[str, list[int]]] = {}
    for name, words in fields.items():
        for place, word in enumerate(words.split()):
            terms.setdefault(name, {}).setdefault(word, []).append(place)
    return Row(terms, 1, text.encode())


def found(index: SegmentStore, field: str, form: str) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (base + at, tuple(places))
        for base, postings in index.reader.postings(field, form)
        for at, places in postings.items()
    ]


def test_a_term_is_found_in_its_field_with_its_positions() -> None:
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a b a"), row("two", title="b", body="c")])
    assert found(index, "body", "a") == [(0, (0, 2))]
    assert found(index, "title", "b") == [(1, (0,))]
    assert found(index, "body", "zzz") == []
    assert index.reader.record(1).decode() == "two"


def test_an_empty_index_can_be_read_and_changed() -> None:
    index = SegmentStore(stem_of)
    assert found(index, "body", "a") == []
    index.change((), [])
    assert index.reader.segment_sizes == []


def test_rows_are_added_behind_the_last() -> None:
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a")])
    index.change((0,), [row("two", body="a"), row("three", body="a b")])
    assert index.reader.segment_sizes == [1, 2]
    assert [number for number, _ in found(index, "body", "a")] == [0, 1, 2]


def test_merging_drops_deleted_rows_and_moves_the_rest_behind_the_added() -> None:
    index = SegmentStore(stem_of)
    for text in ("one", "two", "three"):
        index.change((), [row(text, body=f"a {text}")])
    index.change((1,), [row("four", body="a")], merged=2)
    assert index.reader.segment_sizes == [1, 2]
    assert [index.reader.record(number).decode() for number in range(3)] == ["one", "four", "three"]
    assert found(index, "body", "two") == []
    assert found(index, "body", "three") == [(2, (1,))]


def test_merged_segments_are_what_their_living_rows_would_have_made() -> None:
    chance = random.Random(11)
    words = ("retry", "retries", "retry_", "数据", "a", "ab", "b")
    texts = [" ".join(chance.choices(words, k=6)) for _ in range(60)]
    rows = [row(str(at), body=text, title=text[:9]) for at, text in enumerate(texts)]
    index, plain = SegmentStore(stem_of), SegmentStore(stem_of)
    for start in range(0, 50, 10):
        index.change((), rows[start : start + 10])
    deleted = set(chance.sample(range(50), 20))
    index.change(deleted, rows[50:], merged=5)
    living = [rows[at] for at in (*range(50, 60), *range(50)) if at not in deleted]
    plain.change((), living)
    (merged,), (expected,) = index.data, plain.data
    for name in PARTS:
        part, other = merged.parts[name], expected.parts[name]
        assert part.read(0, part.size) == other.read(0, other.size), name


def test_everything_deleted_and_merged_leaves_nothing() -> None:
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a")])
    index.change((0,), [], merged=1)
    assert found(index, "body", "a") == []


def test_its_arrays_open_again() -> None:
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a b"), row("数据", body="数据")])
    again = SegmentStore(stem_of, [(SegmentData(data.parts), []) for data in index.data])
    assert found(again, "body", "数据") == [(1, (0,))]
    assert again.reader.record(1).decode() == "数据"
    again.change((0,), [row("two", body="a")])
    assert [number for number, _ in found(again, "body", "a")] == [0, 2]


def test_a_reader_keeps_seeing_its_own_generation() -> None:
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a")])
    before = index.reader
    index.change((0,), [row("two", body="a")], merged=1)
    assert before.record(0).decode() == "one"
    assert index.reader.record(0).decode() == "two"


def test_a_failed_change_leaves_the_index_as_it_was() -> None:
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a")])

    def broken() -> Iterator[Row]:
        yield row("two", body="b")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.change((0,), broken())
    assert found(index, "body", "b") == []
    index.change((), [row("three", body="c")], merged=1)
    assert found(index, "body", "c") == [(0, (0,))]
    assert found(index, "body", "a") == [(1, (0,))]


def test_nothing_is_written_outside_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a")])
    index.change((), [row("two", body="a")], merged=1)
    assert list(tmp_path.iterdir()) == []


def test_no_pickle_is_made_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a pickle")

    for name in ("dumps", "loads", "dump", "load"):
        monkeypatch.setattr(f"pickle.{name}", fail)
    index = SegmentStore(stem_of)
    index.change((), [row("one", body="a"), row("two", body="b")])
    index.change((0,), [row("three", body="a")], merged=1)
    assert found(index, "body", "a") == [(0, (0,))]


def test_rows_beyond_two_bytes_are_numbered_in_four() -> None:
    index = SegmentStore(stem_of)
    index.change((), (row("", body=f"all word{n}") for n in range(66_000)))
    assert found(index, "body", "word65999") == [(65_999, (1,))]
    assert len(found(index, "body", "all")) == 66_000
