import pytest

from sage.deadline import Deadline
from sage.documents.files import SourceFile, Stamp
from sage.documents.library import Loaded
from sage.errors import TimeoutExceeded
from sage.search.index import Index
from sage.search.update import IndexUpdate
from sage.terms.analysis import Analyzer
from tests.conftest import Base
from tests.indexed_base import IndexedBase, count_words

PAGES = {f"core/p{n}.md": f"# P{n}\n\nText {n}.\n" for n in range(3)}


def test_only_what_differs_from_the_catalog_is_loaded(base: Base) -> None:
    base.write(PAGES)
    indexed = IndexedBase(base)
    index = Index()
    first = update_of(indexed, index)
    assert len(first.documents) == 3
    index.change(first.gone, first.described(Analyzer(), count_words))
    assert not update_of(indexed, index).is_needed
    base.write({"core/p0.md": "# New\n"})
    base.path("core/p1.md").unlink()
    again = update_of(indexed, index)
    assert set(again.documents) == {".knowledge/core/p0.md"}
    assert again.gone == {".knowledge/core/p0.md", ".knowledge/core/p1.md"}


def test_a_page_of_many_words_goes_alone_and_the_others_stay_until_their_turn(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.write(PAGES)
    indexed, index = IndexedBase(base), Index()
    first = update_of(indexed, index)
    index.change(first.replaced, first.described(Analyzer(), count_words))
    monkeypatch.setattr("sage.search.update.MAX_DESCRIBED", 1)
    base.write({path: f"# New\n\nAnother {path}.\n" for path in PAGES})
    again = update_of(indexed, index)
    titles: list[list[str]] = []
    while again.is_needed:
        again.load()
        described = again.described(Analyzer(), count_words)
        assert len(described) == len(again.replaced) == 1
        index.change(again.replaced, described)
        again.applied()
        titles.append(sorted(entry.title for entry in index.catalog.slots))
    assert titles == [["New", "P1", "P2"], ["New", "New", "P2"], ["New", "New", "New"]]


def test_a_file_that_could_not_be_read_in_time_is_not_reached() -> None:
    def slow(source: SourceFile) -> Loaded:
        raise TimeoutExceeded("late")

    source = SourceFile("a.md", "core", Stamp(1, 2, 3, 4))
    update = IndexUpdate(Index(), [source], slow, Deadline(), {})
    update.load()
    assert update.unreached == {"a.md"}
    assert not update.is_needed


def test_a_copy_older_than_the_file_is_tried_again(base: Base) -> None:
    base.write(PAGES)
    indexed = IndexedBase(base)
    old = Stamp(0, 0, 0, 0)

    def stale(source: SourceFile) -> Loaded:
        loaded = indexed.library.look_up(source, Deadline())
        return Loaded(old, loaded.digest, loaded.document)

    update = IndexUpdate(Index(), indexed.files(), stale, Deadline(), {})
    update.load()
    assert update.retried == {source.path for source in indexed.files()}
    assert all(stamp == old for _, stamp in update.documents.values())


def test_a_file_that_vanished_is_tried_again_and_a_bad_one_is_not() -> None:
    nothing: dict[str, Stamp] = {}
    stamp = Stamp(1, 2, 3, 4)
    files = [SourceFile("gone.md", "core", stamp), SourceFile("bad.md", "core", stamp)]

    def look_up(source: SourceFile) -> Loaded:
        return Loaded(stamp, b"digest" if source.path == "bad.md" else b"", None)

    update = IndexUpdate(Index(), files, look_up, Deadline(), nothing)
    update.load()
    assert update.retried == {"gone.md"}
    assert nothing == {"bad.md": stamp}


def update_of(indexed: IndexedBase, index: Index) -> IndexUpdate:
    made = IndexUpdate(
        index,
        indexed.files(),
        lambda source: indexed.library.look_up(source, Deadline()),
        Deadline(),
        {},
    )
    made.load()
    return made
