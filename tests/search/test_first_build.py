"""A search during the first build answers from what is indexed so far."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from sage.deadline import Deadline
from sage.documents.files import SourceFile
from sage.documents.library import Loaded
from sage.search import engine, update
from sage.search import index as kept_index
from sage.search.index import Index
from sage.search.sections import SearchOptions
from sage.terms import index_file
from sage.terms.index_file import UntrustedIndex
from tests.conftest import Base
from tests.indexed_base import IndexedBase
from tests.processes import PATIENCE_SECONDS

COUNT = 40


@pytest.fixture
def indexed(base: Base, monkeypatch: pytest.MonkeyPatch) -> IndexedBase:
    monkeypatch.setattr(update, "FIRST_BATCH_BYTES", 2_000)
    monkeypatch.setattr(update, "MAX_BATCH_BYTES", 4_000)
    base.write({f"core/p{n:02}.md": f"# Page {n}\n\nzebra number{n}\n" for n in range(COUNT)})
    return IndexedBase(base)


class Stop:
    """Stops the build before a document until it may go on."""

    def __init__(self, indexed: IndexedBase, after: int) -> None:
        self._indexed = indexed
        self._after = after
        self.reached, self.go_on = threading.Event(), threading.Event()

    def look_up(self, source: SourceFile) -> Loaded:
        if len(self._indexed.loaded) == self._after:
            self.reached.set()
            self.go_on.wait()
        return self._indexed.look_up(source)

    def build(self) -> threading.Thread:
        files = self._indexed.files()
        work: Callable[[], object] = lambda: self._indexed.engine.update(  # noqa: E731
            files, self.look_up, Deadline()
        )
        thread = threading.Thread(target=work)
        thread.start()
        self.reached.wait()
        return thread


def test_what_is_indexed_so_far_is_found_and_the_rest_is_counted(indexed: IndexedBase) -> None:
    stop = Stop(indexed, after=20)
    thread = stop.build()
    snapshot = indexed.engine.update(indexed.files(), indexed.look_up, Deadline(60_000))
    found = snapshot.search("zebra", SearchOptions(50), Deadline())
    state = indexed.engine.state
    stop.go_on.set()
    thread.join()
    assert 0 < found.total < COUNT
    assert not found.complete
    assert f"{COUNT - found.total} of {COUNT} documents are not indexed yet" in found.note
    assert (state.state, state.documents, state.pending) == (
        "building",
        found.total,
        COUNT - found.total,
    )
    found = indexed.search("zebra", limit=50)
    assert (found.total, found.complete, found.note) == (COUNT, True, "")
    assert indexed.engine.state.state == "ready"


def test_nothing_outdated_is_shown_while_many_documents_are_indexed_again(
    indexed: IndexedBase, base: Base
) -> None:
    indexed.update()
    base.write({f"core/p{n:02}.md": f"# Page {n}\n\nlion number{n}\n" for n in range(COUNT)})
    indexed.loaded.clear()
    stop = Stop(indexed, after=20)
    thread = stop.build()
    snapshot = indexed.engine.update(indexed.files(), indexed.look_up, Deadline(60_000))
    old = snapshot.search("zebra", SearchOptions(50), Deadline())
    new = snapshot.search("lion", SearchOptions(50), Deadline())
    stop.go_on.set()
    thread.join()
    assert (old.total, old.complete) == (0, False)
    assert 0 < new.total < COUNT


def test_a_build_that_ran_out_of_time_goes_on_where_it_stopped(indexed: IndexedBase) -> None:
    class After(Deadline):
        checks = 0

        @property
        def expired(self) -> bool:
            self.checks += 1
            return self.checks > 60

    partial = indexed.update(After()).search("zebra", SearchOptions(50), Deadline())
    assert 0 < partial.total < COUNT
    assert not partial.complete
    loaded = set(indexed.loaded)
    indexed.loaded.clear()
    assert indexed.search("zebra", limit=50).total == COUNT
    assert len(loaded & set(indexed.loaded)) < COUNT // 2


def test_an_index_built_in_batches_answers_as_one_built_at_once(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    footer = "\n---\n\n*Handbook of lions*\n"
    base.write(
        {
            f"core/p{n:02}.md": f"# Page {n}\n\nzebra number{n}\n{footer if n > 20 else ''}"
            for n in range(COUNT)
        }
    )
    at_once = IndexedBase(base)
    base.environment["SAGE_CACHE_DIR"] += "-other"
    monkeypatch.setattr(update, "FIRST_BATCH_BYTES", 2_000)
    in_batches = IndexedBase(base)
    for query in ("zebra", "number7", "lions", "page handbook"):
        assert in_batches.search(query, limit=50) == at_once.search(query, limit=50)
    assert len(in_batches.engine._served.index.segments.data) > 1  # type: ignore[union-attr]


def test_an_earlier_version_of_a_file_that_is_being_written_is_said_to_be_one(
    indexed: IndexedBase, base: Base
) -> None:
    indexed.update()
    before = {
        source.path: indexed.library.look_up(source, Deadline()) for source in indexed.files()
    }
    base.write({"core/p00.md": "# Page 0\n\nlion\n"})
    snapshot = indexed.engine.update(
        indexed.files(), lambda source: before[source.path], Deadline()
    )
    found = snapshot.search("zebra", SearchOptions(50), Deadline())
    assert (found.total, found.complete) == (COUNT, False)
    assert "being written" in found.note
    assert indexed.paths("lion") == ["core/p00.md"]


@pytest.mark.parametrize("checks", range(1, 40, 3))
def test_wherever_time_runs_out_a_footer_that_appeared_is_found_nowhere(
    base: Base, monkeypatch: pytest.MonkeyPatch, checks: int
) -> None:
    class After(Deadline):
        left = checks

        @property
        def expired(self) -> bool:
            self.left -= 1
            return self.left < 0

    monkeypatch.setattr(update, "FIRST_BATCH_BYTES", 1_500)
    footer = "\n---\n\n*Handbook of lions*\n"
    base.write({f"core/p{n}.md": f"# Page {n}\n\nzebra {n}\n{footer}" for n in range(3)})
    indexed = IndexedBase(base)
    assert len(indexed.paths("lions")) == 3
    base.write({f"core/q{n}.md": f"# Other {n}\n\nzebra q{n}\n{footer}" for n in range(9)})
    indexed.update(After())
    assert len(indexed.paths("zebra", limit=50)) == 12
    assert indexed.paths("lions") == []


def test_a_long_build_holds_little_in_memory_and_goes_on_after_a_kill(
    base: Base, indexed: IndexedBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MOST_IN_MEMORY", 2_000)
    monkeypatch.setattr(index_file, "IN_MEMORY", 0)
    stop = Stop(indexed, after=30)
    thread = stop.build()
    assert indexed.engine._served is not None
    index = indexed.engine._served.index
    assert index.segments.memory_bytes <= 2_000 < index.segments.size_bytes
    killed = IndexedBase(base)  # another process that finds what the first one wrote
    killed.update()
    assert 0 < len(killed.loaded) < COUNT
    assert killed.engine.state.documents == COUNT
    stop.go_on.set()
    thread.join()
    assert killed.search("number7").total == indexed.search("number7").total == 1


def test_a_build_that_cannot_write_goes_on_in_memory(
    indexed: IndexedBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MOST_IN_MEMORY", 2_000)
    tried: list[object] = []

    def refuse(*_: object) -> int:
        tried.append(1)
        raise UntrustedIndex("the disk is full")

    monkeypatch.setattr(kept_index, "save", refuse)
    indexed.update()
    indexed.engine.close()
    assert len(tried) == 2  # once in the middle, once at the end
    state = indexed.engine.state
    assert (state.documents, state.where) == (COUNT, "memory")
    assert "the disk is full" in state.message


def test_an_update_that_writes_so_far_does_not_wait_for_ever_for_the_writer(
    base: Base, indexed: IndexedBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each had the lock that the other one needs next."""
    monkeypatch.setattr(index_file, "IN_MEMORY", 0)
    monkeypatch.setattr(engine, "IN_MEMORY", 0)
    save, contents_of = kept_index.save, kept_index.contents_of
    writing, updating = threading.Event(), threading.Event()

    def slowly(*given: Any) -> int:
        if threading.current_thread().name == "sage-index-writer":
            writing.set()
            assert updating.wait(PATIENCE_SECONDS)
        return save(*given)

    def seen(index: Index) -> kept_index.Contents:
        if writing.is_set():
            updating.set()  # the update writes what it has so far: it holds its lock
        return contents_of(index)

    monkeypatch.setattr(kept_index, "save", slowly)
    monkeypatch.setattr(kept_index, "contents_of", seen)
    indexed.update()
    assert writing.wait(PATIENCE_SECONDS)
    monkeypatch.setattr(engine, "_MOST_IN_MEMORY", 1)
    base.write({f"core/more-{number}.md": f"# More {number}\n\nA yak.\n" for number in range(30)})
    thread = threading.Thread(target=indexed.update, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert len(indexed.paths("yak", limit=50)) == 30
