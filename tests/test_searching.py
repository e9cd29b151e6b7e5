import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sage import holdings
from sage.deadline import Deadline
from sage.files import SourceFile
from sage.library import Loaded
from sage.vault import Vault
from tests.conftest import Base
from tests.searcher import Searcher

PAGES = {
    "core/principles.md": "# Principles\n\nBoring tools win.\n\n## Naming\n\nNames are nouns.\n",
    "practices/testing.md": (
        "# Testing\n\nTests are written first.\n\n## Fixtures\n\nA fixture is built in one place.\n"
    ),
    "practices/retries.md": "# Retries\n\nA failed request is retried with exponential backoff.\n",
}


@pytest.fixture
def searcher(base: Base) -> Iterator[Searcher]:
    base.write(PAGES)
    made = Searcher(base)
    yield made
    made.engine.close()


def stored(base: Base) -> Path:
    settings = base.settings()
    return Vault(settings.cache_dir, settings.root).path


def test_a_question_finds_the_section_that_answers_it(searcher: Searcher) -> None:
    found = searcher.search("where should I build a fixture?")
    best = found.results[0]
    assert best["path"] == ".knowledge/practices/testing.md"
    assert best["topic"] == "practices/testing#fixtures"
    assert best["heading"] == "Testing > Fixtures"
    assert best["lines"] == [5, 7]
    assert best["snippet"] == "A fixture is built in one place."
    assert best["layer"] == "practices"
    assert best["title"] == "Testing"
    assert best["tokens"] > 0
    assert found.complete


def test_an_edited_file_is_found_by_the_next_search(searcher: Searcher, base: Base) -> None:
    assert searcher.paths("zebra") == []
    base.write({"practices/testing.md": "# Testing\n\nA zebra.\n"})
    assert searcher.paths("zebra") == ["practices/testing.md"]
    assert searcher.paths("fixture") == []


def test_a_deleted_file_is_gone_and_a_renamed_one_moves(searcher: Searcher, base: Base) -> None:
    searcher.update()
    base.path("practices/testing.md").rename(base.path("core/checks.md"))
    base.path("practices/retries.md").unlink()
    assert searcher.paths("fixture") == ["core/checks.md"]
    assert searcher.paths("backoff") == []


def test_only_what_changed_is_loaded_again(searcher: Searcher, base: Base) -> None:
    searcher.update()
    searcher.loaded.clear()
    searcher.update()
    assert searcher.loaded == []
    base.write({"core/new.md": "# New\n\nText.\n"})
    searcher.update()
    assert searcher.loaded == [".knowledge/core/new.md"]


def test_a_kept_index_is_opened_without_loading_a_document(searcher: Searcher, base: Base) -> None:
    before = searcher.search("fixture")
    searcher.engine.close()
    again = Searcher(base)
    assert again.search("fixture") == before
    assert again.loaded == []
    assert again.engine.state.where == "disk"
    assert again.engine.state.message == ""


def test_edits_made_while_nobody_served_are_seen(searcher: Searcher, base: Base) -> None:
    searcher.update()
    searcher.engine.close()
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    base.path("practices/testing.md").unlink()
    again = Searcher(base)
    assert again.paths("zebra fixture") == ["core/new.md"]
    assert again.loaded == [".knowledge/core/new.md"]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "planted"])
def test_a_damaged_index_is_built_again_and_says_so(
    searcher: Searcher, base: Base, damage: str
) -> None:
    searcher.update()
    searcher.engine.close()
    data = bytearray(stored(base).read_bytes())
    data[len(data) // 2] ^= 255
    contents = {"flip": bytes(data), "cut": bytes(data[:100]), "empty": b"", "planted": b"\x80\x04"}
    stored(base).write_bytes(contents[damage])
    again = Searcher(base)
    assert again.paths("fixture") == ["practices/testing.md"]
    assert again.engine.state.message.startswith("built again: the index file")
    again.engine.close()
    assert Searcher(base).paths("fixture") == ["practices/testing.md"]


def test_an_index_of_another_version_is_built_again(
    searcher: Searcher, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    searcher.update()
    searcher.engine.close()
    monkeypatch.setattr(holdings, "FORMAT", -1)
    again = Searcher(base)
    assert again.paths("fixture") == ["practices/testing.md"]
    assert "another version" in again.engine.state.message


def test_an_index_for_another_encoding_is_built_again(searcher: Searcher, base: Base) -> None:
    searcher.update()
    searcher.engine.close()
    again = Searcher(base, encoding="o200k_base")
    again.update()
    assert "other settings" in again.engine.state.message


def test_without_a_safe_place_the_index_stays_in_memory(base: Base) -> None:
    base.write(PAGES)
    folder = stored(base).parent
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    searcher = Searcher(base)
    assert searcher.paths("fixture") == ["practices/testing.md"]
    searcher.engine.close()
    state = searcher.engine.state
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
    searcher = Searcher(base)
    assert searcher.paths("fixture") == ["practices/testing.md"]
    searcher.engine.close()
    assert "No space left" in searcher.engine.state.message
    assert searcher.engine.state.where == "memory"


def test_two_engines_on_one_root_do_not_disturb_each_other(base: Base) -> None:
    base.write(PAGES)
    one, other = Searcher(base), Searcher(base)
    one.update()
    other.update()
    base.write({"core/new.md": "# New\n\nA zebra.\n"})
    assert one.paths("zebra") == other.paths("zebra") == ["core/new.md"]
    one.engine.close()
    base.path("core/new.md").unlink()
    assert other.paths("zebra") == []
    other.engine.close()
    third = Searcher(base)
    assert third.paths("fixture") == ["practices/testing.md"]
    assert third.engine.state.message == ""


def test_when_time_runs_out_the_next_update_goes_on(searcher: Searcher) -> None:
    class Soon(Deadline):
        checks = 0

        @property
        def expired(self) -> bool:
            self.checks += 1
            return self.checks > 4

    searcher.update(Soon())
    partial = searcher.engine.search("fixture request", limit=10, deadline=Deadline())
    assert searcher.engine.state.state == "partial"
    assert not partial.complete
    assert "not indexed yet" in partial.note
    found = searcher.search("fixture request backoff naming")
    assert found.complete
    assert found.total == 3
    assert searcher.engine.state.state == "ready"


def test_while_another_call_indexes_nothing_outdated_is_shown(
    searcher: Searcher, base: Base
) -> None:
    searcher.update()
    base.write({"practices/testing.md": "# Testing\n\nFixtures are gone.\n"})
    inside, finish = threading.Event(), threading.Event()

    def stuck(source: SourceFile) -> Loaded:
        inside.set()
        finish.wait()
        return searcher.library.look_up(source, Deadline())

    files = searcher.files()
    other = threading.Thread(target=searcher.engine.update, args=(files, stuck, Deadline()))
    other.start()
    inside.wait()
    searcher.update(Deadline(0))
    found = searcher.engine.search("fixture backoff", limit=10, deadline=Deadline())
    finish.set()
    other.join()
    assert [result["title"] for result in found.results] == ["Retries"]
    assert not found.complete
    assert found.note == "some documents changed and could not be indexed in time"
    assert searcher.search("fixture").complete


def test_a_search_that_runs_out_of_time_says_it_is_not_complete(searcher: Searcher) -> None:
    searcher.update()
    gone = Deadline()
    gone.cancel()
    found = searcher.engine.search("fixture", limit=10, deadline=gone)
    assert not found.complete
    assert found.results == []


def test_before_the_first_update_nothing_is_found_and_it_says_so(base: Base) -> None:
    engine = Searcher(base).engine
    found = engine.search("x", limit=10, deadline=Deadline())
    assert not found.complete
    assert engine.state.state == "empty"
    assert engine.rank_sections("x", limit=3, deadline=Deadline()) == []
    assert engine.explain("x", limit=3, deadline=Deadline()) == []
    assert engine.suggest(["x"]) == []
    assert engine.sizes() == {}


def test_an_empty_base_answers(base: Base) -> None:
    searcher = Searcher(base)
    found = searcher.search("anything")
    assert found.results == []
    assert found.complete
    assert searcher.engine.state.state == "ready"


def test_a_file_that_cannot_be_read_is_tried_again(searcher: Searcher, base: Base) -> None:
    base.write({"core/bad.md": b"\x00\x01"})
    searcher.update()
    searcher.loaded.clear()
    searcher.update()
    assert searcher.loaded == []
    base.write({"core/bad.md": "# Good\n\nA zebra.\n"})
    assert searcher.paths("zebra") == ["core/bad.md"]


def test_progress_is_told_from_the_first_document_to_the_last(searcher: Searcher) -> None:
    seen: list[tuple[int, int]] = []
    searcher.update(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(7)]


def test_searches_run_while_files_change(searcher: Searcher, base: Base) -> None:
    searcher.update()
    failures: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                for query in ("fixture", "zebra number", "boring tols", '"one place"'):
                    searcher.engine.search(query, limit=10, deadline=Deadline())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        base.write({f"core/page{number % 7}.md": f"# Page {number}\n\nzebra number{number}\n"})
        assert searcher.paths(f"number{number}") == [f"core/page{number % 7}.md"]
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_sections_are_ranked_over_all_documents(searcher: Searcher) -> None:
    searcher.update()
    ranked = searcher.engine.rank_sections("fixture tests", limit=5, deadline=Deadline())
    assert ranked[0].path == ".knowledge/practices/testing.md"
    assert {section.ordinal for section in ranked} == {0, 1}
    assert all(0 < section.score <= 1 for section in ranked)


def test_sizes_count_every_section(searcher: Searcher) -> None:
    searcher.update()
    sizes = searcher.engine.sizes()
    assert {layer: sections for layer, (sections, _) in sizes.items()} == {
        "core": 2,
        "practices": 3,
    }


def test_a_footer_that_appears_everywhere_stops_matching(base: Base) -> None:
    pages = {
        f"core/p{n}.md": f"# P{n}\n\nText {n}.\n\n---\n\n*Handbook of zebras*\n" for n in range(3)
    }
    base.write(pages)
    searcher = Searcher(base)
    assert len(searcher.paths("zebras")) == 3
    base.write({"core/p3.md": "# P3\n\nText.\n\n*Handbook of zebras*\n"})
    assert searcher.paths("zebras") == []
    base.path("core/p0.md").unlink()
    base.path("core/p1.md").unlink()
    assert len(searcher.paths("zebras")) == 2


def test_what_may_still_be_there_stays_indexed_and_is_not_shown(
    searcher: Searcher, base: Base
) -> None:
    searcher.update()
    files = searcher.files()
    searcher.loaded.clear()
    searcher.engine.update(files[1:], searcher.look_up, Deadline(), unseen=True)
    found = searcher.engine.search("the", limit=50, deadline=Deadline())
    assert not found.complete
    assert "could not be looked at" in found.note
    assert files[0].path not in {result["path"] for result in found.results}
    searcher.update()
    assert searcher.loaded == []
    assert searcher.engine.search("the", limit=50, deadline=Deadline()).complete


def test_without_a_thread_to_be_had_the_index_is_kept_later(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        searcher.update()
        assert "no thread" in searcher.engine.state.message
    searcher.engine.close()
    assert searcher.engine.state.where == "disk"
