import gc
import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sage.deadline import Deadline
from sage.documents.files import SourceFile
from sage.documents.library import Loaded
from sage.search import index as kept_index
from sage.search.answering import sentences
from sage.search.searcher import NOT_BUILT
from sage.search.sections import SearchOptions
from sage.terms.index_file import FilePart, IndexFile, UntrustedIndex
from tests.conftest import Base
from tests.indexed_base import IndexedBase

PAGES = {
    "core/principles.md": "# Principles\n\nBoring tools win.\n\n## Naming\n\nNames are nouns.\n",
    "practices/testing.md": (
        "# Testing\n\nTests are written first.\n\n## Fixtures\n\nA fixture is built in one place.\n"
    ),
    "practices/retries.md": "# Retries\n\nA failed request is retried with exponential backoff.\n",
}


@pytest.fixture
def indexed(base: Base) -> Iterator[IndexedBase]:
    base.write(PAGES)
    made = IndexedBase(base)
    yield made
    made.engine.close()


def stored(base: Base) -> Path:
    settings = base.settings()
    return IndexFile(settings.cache_dir, settings.root).path


@contextmanager
def another_call_indexing(indexed: IndexedBase) -> Iterator[None]:
    """Another call is in the middle of an update, until it may end it."""
    inside, finish = threading.Event(), threading.Event()

    def stuck(source: SourceFile) -> Loaded:
        inside.set()
        finish.wait()
        return indexed.library.look_up(source, Deadline())

    files = indexed.files()
    other = threading.Thread(target=indexed.engine.update, args=(files, stuck, Deadline()))
    other.start()
    inside.wait()
    try:
        yield
    finally:
        finish.set()
        other.join()


def test_a_question_finds_the_section_that_answers_it(indexed: IndexedBase) -> None:
    found = indexed.search("where should I build a fixture?")
    best = found.sections[0]
    assert best.path == ".knowledge/practices/testing.md"
    assert best.topic == "practices/testing#fixtures"
    assert best.heading == "Testing > Fixtures"
    assert best.lines == [5, 7]
    assert sentences(best) == "A fixture is built in one place."
    assert best.entry.layer == "practices"
    assert best.title == "Testing"
    assert best.tokens > 0
    assert found.complete


def test_an_edited_file_is_found_by_the_next_search(indexed: IndexedBase, base: Base) -> None:
    assert indexed.paths("zebra") == []
    base.write({"practices/testing.md": "# Testing\n\nA zebra.\n"})
    assert indexed.paths("zebra") == ["practices/testing.md"]
    assert indexed.paths("fixture") == []


def test_a_deleted_file_is_gone_and_a_renamed_one_moves(indexed: IndexedBase, base: Base) -> None:
    indexed.update()
    base.path("practices/testing.md").rename(base.path("core/checks.md"))
    base.path("practices/retries.md").unlink()
    assert indexed.paths("fixture") == ["core/checks.md"]
    assert indexed.paths("backoff") == []


def test_only_what_changed_is_loaded_again(indexed: IndexedBase, base: Base) -> None:
    indexed.update()
    indexed.loaded.clear()
    indexed.update()
    assert indexed.loaded == []
    base.write({"core/new.md": "# New\n\nText.\n"})
    indexed.update()
    assert indexed.loaded == [".knowledge/core/new.md"]


def test_a_kept_index_is_opened_without_loading_a_document(
    indexed: IndexedBase, base: Base
) -> None:
    before = indexed.search("fixture")
    indexed.engine.close()
    again = IndexedBase(base)
    assert again.search("fixture") == before
    assert again.loaded == []
    assert again.engine.state.where == "disk"
    assert again.engine.state.message == ""


def test_edits_made_while_nobody_served_are_seen(indexed: IndexedBase, base: Base) -> None:
    indexed.update()
    indexed.engine.close()
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    base.path("practices/testing.md").unlink()
    again = IndexedBase(base)
    assert again.paths("zebra fixture") == ["core/new.md"]
    assert again.loaded == [".knowledge/core/new.md"]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "planted"])
def test_a_damaged_index_is_built_again_and_says_so(
    indexed: IndexedBase, base: Base, damage: str
) -> None:
    indexed.update()
    indexed.engine.close()
    data = bytearray(stored(base).read_bytes())
    data[len(data) // 2] ^= 255
    contents = {"flip": bytes(data), "cut": bytes(data[:100]), "empty": b"", "planted": b"\x80\x04"}
    stored(base).write_bytes(contents[damage])
    again = IndexedBase(base)
    assert again.paths("fixture") == ["practices/testing.md"]
    assert again.engine.state.message.startswith("built again: the index file")
    again.engine.close()
    assert IndexedBase(base).paths("fixture") == ["practices/testing.md"]


def test_a_kept_file_that_breaks_while_it_is_served_is_built_again(
    indexed: IndexedBase, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
    indexed.update()
    indexed.engine.close()
    again = IndexedBase(base)
    snapshot = again.update()
    stored(base).write_bytes(b"")
    with pytest.raises(UntrustedIndex) as refused:
        snapshot.search("fixture", SearchOptions(10), Deadline())
    snapshot.distrust(refused.value)
    assert again.paths("fixture") == ["practices/testing.md"]
    assert again.engine.state.message == "built again: the index file is damaged"


def test_a_snapshot_stands_until_the_index_changes(indexed: IndexedBase, base: Base) -> None:
    first = indexed.update()
    assert first.stands
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    second = indexed.update()
    assert second.stands
    assert not first.stands


def test_a_snapshot_that_turns_out_to_be_damaged_does_not_stand(indexed: IndexedBase) -> None:
    snapshot = indexed.update()
    snapshot.distrust(UntrustedIndex("damaged"))
    assert not snapshot.stands
    assert indexed.update().stands


def test_calls_that_see_the_same_files_get_the_one_snapshot_that_can_be_taken_back(
    indexed: IndexedBase,
) -> None:
    snapshots = [indexed.update(), indexed.update()]
    assert [one.stands for one in snapshots] == [True, True]
    snapshots[1].distrust(UntrustedIndex("damaged"))
    assert [one.stands for one in snapshots] == [False, False]


def test_what_was_built_since_is_not_thrown_away_for_damage_that_is_found_late(
    indexed: IndexedBase,
) -> None:
    before = indexed.update()
    before.distrust(UntrustedIndex("damaged"))
    since = indexed.update()
    before.distrust(UntrustedIndex("damaged"))
    assert since.stands
    assert indexed.update() is since


def test_while_a_damaged_index_is_built_again_nobody_is_given_it(indexed: IndexedBase) -> None:
    indexed.update().distrust(UntrustedIndex("damaged"))
    with another_call_indexing(indexed):
        found = indexed.update(Deadline(0)).search("fixture", SearchOptions(10), Deadline())
    assert (found.sections, found.complete) == ([], False)
    assert indexed.search("fixture").complete


def test_a_snapshot_that_is_behind_does_not_stand(indexed: IndexedBase) -> None:
    files = indexed.files()
    snapshot = indexed.engine.update(files[1:], indexed.look_up, Deadline(), unseen=True)
    assert snapshot.behind
    assert not snapshot.stands


def test_a_kept_file_that_breaks_before_it_is_merged_is_built_again(
    indexed: IndexedBase, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
    monkeypatch.setattr("sage.search.index._IN_TIER", 1)
    indexed.update()
    indexed.engine.close()
    again = IndexedBase(base)
    again.update()
    stored(base).write_bytes(b"")
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    assert again.paths("zebra") == ["core/new.md"]
    assert again.paths("fixture") == ["practices/testing.md"]


def test_a_large_index_is_read_from_its_file_once_it_is_kept(
    indexed: IndexedBase, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.terms.index_file.IN_MEMORY", 0)
    monkeypatch.setattr("sage.search.engine.IN_MEMORY", 0)
    before = indexed.search("fixture")
    indexed.engine.close()
    assert indexed.engine._served is not None
    index = indexed.engine._served.index
    assert isinstance(index.segments.data[0].parts["rows"], FilePart)
    assert indexed.search("fixture") == before
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    assert indexed.paths("zebra") == ["core/new.md"]


def test_an_index_of_another_version_is_built_again(
    indexed: IndexedBase, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed.update()
    indexed.engine.close()
    monkeypatch.setattr(kept_index, "FORMAT", -1)
    again = IndexedBase(base)
    assert again.paths("fixture") == ["practices/testing.md"]
    assert "another version" in again.engine.state.message


def test_an_index_of_another_mapping_is_built_again(base: Base) -> None:
    (base.root / "docs" / "guides").mkdir(parents=True)
    (base.root / "docs" / "guides" / "deploy.md").write_text("# Deploy\n\nRun ship.\n", "utf-8")
    mapping = base.root / "sage.yaml"
    for places, topic in (("[docs]", "core/guides/deploy"), ("[docs/guides]", "core/deploy")):
        mapping.write_text(f"layers:\n  core: {places}\n", "utf-8")
        knowledge = base.open()
        (result,) = knowledge.search("ship")["results"]
        assert result["topic"] == topic
        knowledge.close()
    assert "another mapping of layers" in knowledge.index()["message"]


def test_without_a_safe_place_the_index_stays_in_memory(base: Base) -> None:
    base.write(PAGES)
    folder = stored(base).parent
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    indexed = IndexedBase(base)
    assert indexed.paths("fixture") == ["practices/testing.md"]
    indexed.engine.close()
    state = indexed.engine.state
    assert (state.state, state.where) == ("ready", "memory")
    assert state.message == "not kept on disk: others may write to the cache folder"
    assert list(folder.iterdir()) == []


def test_a_full_disk_leaves_the_index_in_memory(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    base.write(PAGES)
    monkeypatch.setattr(os, "fsync", full)
    indexed = IndexedBase(base)
    assert indexed.paths("fixture") == ["practices/testing.md"]
    indexed.engine.close()
    assert "No space left" in indexed.engine.state.message
    assert indexed.engine.state.where == "memory"


def test_two_engines_on_one_root_do_not_disturb_each_other(base: Base) -> None:
    base.write(PAGES)
    one, other = IndexedBase(base), IndexedBase(base)
    one.update()
    other.update()
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    assert one.paths("zebra") == other.paths("zebra") == ["core/new.md"]
    one.engine.close()
    base.path("core/new.md").unlink()
    assert other.paths("zebra") == []
    other.engine.close()
    third = IndexedBase(base)
    assert third.paths("fixture") == ["practices/testing.md"]
    assert third.engine.state.message == ""


def test_when_time_runs_out_the_next_update_goes_on(indexed: IndexedBase) -> None:
    class Soon(Deadline):
        checks = 0

        @property
        def expired(self) -> bool:
            self.checks += 1
            return self.checks > 4

    partial = indexed.update(Soon()).search("fixture request", SearchOptions(10), Deadline())
    assert indexed.engine.state.state == "partial"
    assert not partial.complete
    assert "not indexed yet" in partial.note
    found = indexed.search("fixture request backoff naming")
    assert found.complete
    assert found.total == 3
    assert indexed.engine.state.state == "ready"


def test_while_another_call_indexes_nothing_outdated_is_shown(
    indexed: IndexedBase, base: Base
) -> None:
    indexed.update()
    base.write({"practices/testing.md": "# Testing\n\nFixtures are gone.\n"})
    with another_call_indexing(indexed):
        found = indexed.update(Deadline(0)).search("fixture backoff", SearchOptions(10), Deadline())
    assert [result.title for result in found.sections] == ["Retries"]
    assert not found.complete
    assert found.note == "some documents changed and could not be indexed in time"
    assert indexed.search("fixture").complete


def test_a_search_that_runs_out_of_time_says_it_is_not_complete(indexed: IndexedBase) -> None:
    snapshot = indexed.update()
    gone = Deadline()
    gone.cancel()
    found = snapshot.search("fixture", SearchOptions(10), gone)
    assert not found.complete
    assert found.sections == []


def test_before_the_first_update_nothing_is_found_and_it_says_so(base: Base) -> None:
    base.write(PAGES)
    made = IndexedBase(base)
    engine = made.engine
    assert engine.state.state == "empty"
    assert not engine.entries
    inside, finish = threading.Event(), threading.Event()

    def stuck(source: SourceFile) -> Loaded:
        inside.set()
        finish.wait()
        return made.look_up(source)

    files = made.files()
    other = threading.Thread(target=engine.update, args=(files, stuck, Deadline()))
    other.start()
    inside.wait()
    snapshot = engine.update(files, made.look_up, Deadline(0))
    state = engine.state.state
    finish.set()
    other.join()
    found = snapshot.search("fixture", SearchOptions(10), Deadline())
    assert (found.sections, found.complete, found.note) == ([], False, NOT_BUILT)
    assert not snapshot.searcher.rank_sections("fixture", limit=3, deadline=Deadline()).sections
    assert state == "building"


def test_an_empty_base_answers(base: Base) -> None:
    indexed = IndexedBase(base)
    found = indexed.search("anything")
    assert found.sections == []
    assert found.complete
    assert indexed.engine.state.state == "ready"


def test_a_file_that_cannot_be_read_is_tried_again(indexed: IndexedBase, base: Base) -> None:
    base.write({"core/bad.md": b"\x00\x01"})
    indexed.update()
    indexed.loaded.clear()
    indexed.update()
    assert indexed.loaded == []
    base.write({"core/bad.md": "# Good\n\nA zebra.\n"})
    assert indexed.paths("zebra") == ["core/bad.md"]


def test_progress_is_told_from_the_first_document_to_the_last(indexed: IndexedBase) -> None:
    seen: list[tuple[int, int]] = []
    indexed.update(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(7)]


def test_searches_run_while_files_change(indexed: IndexedBase, base: Base) -> None:
    indexed.update()
    failures: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                for query in ("fixture", "zebra number", "boring tols", '"one place"'):
                    indexed.search(query)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        base.write({f"core/page{number % 7}.md": f"# Page {number}\n\nzebra number{number}\n"})
        assert indexed.paths(f"number{number}") == [f"core/page{number % 7}.md"]
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_sections_are_ranked_over_all_documents(indexed: IndexedBase) -> None:
    snapshot = indexed.update()
    ranked = snapshot.rank_sections("fixture tests", limit=5, deadline=Deadline()).sections
    assert ranked[0].path == ".knowledge/practices/testing.md"
    assert {section.ordinal for section in ranked} == {0, 1}
    assert all(0 < section.score <= 1 for section in ranked)


def test_sizes_count_every_section(indexed: IndexedBase) -> None:
    indexed.update()
    totals: Counter[str] = Counter()
    for entry in indexed.engine.entries.values():
        totals[entry.layer] += entry.section_total
    assert totals == {"core": 2, "practices": 3}


def test_a_footer_that_appears_everywhere_stops_matching(base: Base) -> None:
    pages = {
        f"core/p{n}.md": f"# P{n}\n\nText {n}.\n\n---\n\n*Handbook of zebras*\n" for n in range(3)
    }
    base.write(pages)
    indexed = IndexedBase(base)
    assert len(indexed.paths("zebras")) == 3
    base.write({"core/p3.md": "# P3\n\nText.\n\n*Handbook of zebras*\n"})
    assert indexed.paths("zebras") == []
    base.path("core/p0.md").unlink()
    base.path("core/p1.md").unlink()
    assert len(indexed.paths("zebras")) == 2


def test_a_footer_of_one_layer_is_found_in_another(base: Base) -> None:
    ending = "Text.\n\n---\n\n*Handbook of zebras*\n"
    base.write({f"core/p{n}.md": f"# P{n}\n\n{ending}" for n in range(3)})
    base.write({f"practices/q{n}.md": f"# Q{n}\n\n{ending}" for n in range(3)})
    indexed = IndexedBase(base)
    assert len(indexed.paths("zebras")) == 6
    indexed.loaded.clear()
    base.write({"core/p3.md": f"# P3\n\n{ending}"})
    assert indexed.paths("zebras") == [f"practices/q{n}.md" for n in range(3)]
    assert sorted(indexed.loaded) == [f".knowledge/core/p{n}.md" for n in range(4)]
    indexed.loaded.clear()
    base.path("core/p0.md").unlink()
    assert len(indexed.paths("zebras")) == 6
    assert sorted(indexed.loaded) == [f".knowledge/core/p{n}.md" for n in range(1, 4)]


def test_what_may_still_be_there_stays_indexed_and_is_not_shown(
    indexed: IndexedBase, base: Base
) -> None:
    indexed.update()
    files = indexed.files()
    indexed.loaded.clear()
    snapshot = indexed.engine.update(files[1:], indexed.look_up, Deadline(), unseen=True)
    found = snapshot.search("the", SearchOptions(50), Deadline())
    assert not found.complete
    assert "could not be looked at" in found.note
    assert files[0].path not in {result.path for result in found.sections}
    assert indexed.search("the", limit=50).complete
    assert indexed.loaded == []


def test_without_a_thread_to_be_had_the_index_is_kept_later(
    indexed: IndexedBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        indexed.update()
        assert "no thread" in indexed.engine.state.message
    indexed.engine.close()
    assert indexed.engine.state.where == "disk"


def test_a_generation_that_is_over_is_freed_without_the_garbage_collector(
    indexed: IndexedBase, base: Base
) -> None:
    snapshot = indexed.update()
    indexed.search('layer:core "boring tools" tolswin')
    over = weakref.ref(snapshot.searcher)
    gc.disable()
    try:
        del snapshot
        base.write({"core/zebra.md": "# Zebra\n"})
        indexed.update()
        assert over() is None
    finally:
        gc.enable()
