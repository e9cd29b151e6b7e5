from sage.analysis import Analyzer
from sage.changes import Work
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded
from sage.files import SourceFile, Stamp
from sage.holdings import Holdings
from sage.library import Loaded
from tests.conftest import Base
from tests.searcher import Searcher, count_words

PAGES = {f"core/p{n}.md": f"# P{n}\n\nText {n}.\n" for n in range(3)}


def test_only_what_differs_from_the_cards_is_loaded(base: Base) -> None:
    base.write(PAGES)
    searcher = Searcher(base)
    held = Holdings()
    first = work_of(searcher, held)
    assert len(first.documents) == 3
    held.change(first.gone, first.described(Analyzer(), count_words))
    assert not work_of(searcher, held).is_needed
    base.write({"core/p0.md": "# New\n"})
    base.path("core/p1.md").unlink()
    again = work_of(searcher, held)
    assert set(again.documents) == {".knowledge/core/p0.md"}
    assert again.gone == {".knowledge/core/p0.md", ".knowledge/core/p1.md"}


def test_a_file_that_could_not_be_read_in_time_is_not_reached() -> None:
    def slow(source: SourceFile) -> Loaded:
        raise TimeoutExceeded("late")

    source = SourceFile("a.md", "core", Stamp(1, 2, 3, 4))
    work = Work(Holdings(), [source], slow, Deadline(), {})
    work.load()
    assert work.unreached == {"a.md"}
    assert not work.is_needed


def test_a_copy_older_than_the_file_is_tried_again(base: Base) -> None:
    base.write(PAGES)
    searcher = Searcher(base)
    old = Stamp(0, 0, 0, 0)

    def stale(source: SourceFile) -> Loaded:
        loaded = searcher.library.look_up(source, Deadline())
        return Loaded(old, loaded.digest, loaded.document)

    work = Work(Holdings(), searcher.files(), stale, Deadline(), {})
    work.load()
    assert work.retried == {source.path for source in searcher.files()}
    assert all(stamp == old for _, stamp in work.documents.values())


def test_a_file_that_vanished_is_tried_again_and_a_bad_one_is_not() -> None:
    nothing: dict[str, Stamp] = {}
    stamp = Stamp(1, 2, 3, 4)
    files = [SourceFile("gone.md", "core", stamp), SourceFile("bad.md", "core", stamp)]

    def look_up(source: SourceFile) -> Loaded:
        return Loaded(stamp, b"digest" if source.path == "bad.md" else b"", None)

    work = Work(Holdings(), files, look_up, Deadline(), nothing)
    work.load()
    assert work.retried == {"gone.md"}
    assert nothing == {"bad.md": stamp}


def work_of(searcher: Searcher, held: Holdings) -> Work:
    made = Work(
        held,
        searcher.files(),
        lambda source: searcher.library.look_up(source, Deadline()),
        Deadline(),
        {},
    )
    made.load()
    return made
