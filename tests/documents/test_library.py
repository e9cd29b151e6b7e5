import threading
from pathlib import Path

import pytest

from sage.deadline import Deadline, no_deadline
from sage.documents import containment, source_roots
from sage.documents.document import Document
from sage.documents.library import Library, decoded
from sage.documents.source_roots import Listing
from sage.errors import TimeoutExceeded
from tests.conftest import Base, Clock


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were really read, in order."""
    seen: list[str] = []
    read = containment.read_file

    def note(root: Path, path: str, most: int, within: str) -> object:
        seen.append(path.removeprefix(".knowledge/core/"))
        return read(root, path, most, within)

    monkeypatch.setattr(source_roots, "read_file", note)
    return seen


def open_library(base: Base, texts: dict[str, str | bytes], **flags: object) -> Library:
    base.write({f"core/{name}": text for name, text in texts.items()})
    return Library(base.settings(**flags), base.clocks)


def listed(library: Library) -> Listing:
    (listing,) = library.refresh(("core",), no_deadline())
    return listing


def loaded(library: Library) -> dict[str, Document | None]:
    return {
        source.path.rpartition("/")[2]: library.load(source, no_deadline())
        for source in listed(library).files
    }


def problems(library: Library) -> list[str]:
    listings = library.refresh(("core",), no_deadline())
    return [str(problem) for problem in library.problems(listings, no_deadline())]


def test_listing_is_the_same_object_until_something_changes(base: Base) -> None:
    library = open_library(base, {"a.md": "x", ".hidden": "x"})
    first = listed(library)
    assert listed(library) is first
    base.write({"core/a.md": "y"})
    second = listed(library)
    assert second is not first
    assert listed(library) is second


def test_listing_changes_with_what_is_left_out_too(base: Base) -> None:
    library = open_library(base, {"a.md": "x"})
    first = listed(library)
    base.write({"core/b.png": "x"})
    assert listed(library) is not first


def test_only_the_changed_file_is_read_again(base: Base, reads: list[str]) -> None:
    library = open_library(base, {"a.md": "one", "b.md": "two"})
    before = loaded(library)
    base.write({"core/a.md": "three"})
    after = loaded(library)
    assert reads == ["a.md", "b.md", "a.md"]
    assert after["b.md"] is before["b.md"]
    assert after["a.md"] is not None
    assert after["a.md"].body == "three"


def test_file_saved_without_a_change_is_not_parsed_again(base: Base, reads: list[str]) -> None:
    library = open_library(base, {"a.md": "one"})
    before = loaded(library)
    base.path("core/a.md").touch()
    assert loaded(library)["a.md"] is before["a.md"]
    assert reads == ["a.md", "a.md"]


def test_file_is_read_again_when_its_time_to_live_is_over(base: Base, reads: list[str]) -> None:
    library = open_library(base, {"a.md": "one"}, cache__ttl_seconds=30)
    loaded(library)
    base.clock.tick(29)
    loaded(library)
    assert len(reads) == 1
    base.clock.tick(1)
    loaded(library)
    assert len(reads) == 2


def test_no_more_documents_are_kept_than_allowed(
    base: Base, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sage.documents.library.MAX_KEPT_BYTES", 7_100)
    library = open_library(base, {f"{n}.md": "x" for n in range(4)})
    loaded(library)
    loaded(library)
    assert len(reads) == 8
    assert len(library._last_good) == 2


def test_deleted_files_are_forgotten(base: Base) -> None:
    library = open_library(base, {"a.md": "one", "b.md": "two"})
    loaded(library)
    base.path("core/a.md").unlink()
    assert list(loaded(library)) == ["b.md"]
    assert list(library._last_good) == [".knowledge/core/b.md"]


def test_file_deleted_after_the_scan_is_no_longer_there(base: Base) -> None:
    library = open_library(base, {"a.md": "one"})
    first = listed(library)
    base.path("core/a.md").unlink()
    assert library.look_up(first.files[0], no_deadline()).problem is None
    assert library.load(first.files[0], no_deadline()) is None
    assert listed(library) is not first


def test_file_swapped_for_a_link_after_the_scan_is_not_served(base: Base, tmp_path: Path) -> None:
    library = open_library(base, {"a.md": "one"})
    (source,) = listed(library).files
    (tmp_path / "secret.md").write_text("secret")
    base.path("core/a.md").unlink()
    base.path("core/a.md").symlink_to(tmp_path / "secret.md")
    looked_up = library.look_up(source, no_deadline())
    assert looked_up.document is None
    assert "leaves the repository" in str(looked_up.problem)


def test_error_that_may_pass_is_reported_and_tried_again(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_library(base, {"a.md": "one"})
    first = listed(library)

    def fail(*_: object) -> None:
        raise OSError(5, "I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(source_roots, "read_file", fail)
        assert problems(library) == [".knowledge/core/a.md: cannot be read: I/O error"]
    assert listed(library) is not first
    assert problems(library) == []


def test_file_that_is_empty_but_has_its_old_times_is_being_truncated(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_library(base, {"a.md": "one"})
    (source,) = listed(library).files
    assert library.load(source, no_deadline())
    emptied = source.stamp._replace(size=0)
    with monkeypatch.context() as patched:
        patched.setattr(source_roots, "read_file", lambda *_: (b"", emptied))
        document = library.load(source._replace(stamp=emptied), no_deadline())
    assert document is not None
    assert document.body == "one"


def test_layers_come_in_the_order_of_the_settings(base: Base) -> None:
    library = open_library(base, {}, layers=["practices", "core"])
    assert library.layers == ("practices", "core")
    listings = library.refresh(library.layers, no_deadline())
    assert [listing.layer for listing in listings] == ["practices", "core"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é".encode(), "é"),
        ("é\n".encode("utf-16"), "é\n"),
        (b"\xfe\xff\x00a", "a"),
        (b"\xef\xbb\xbfa", "\ufeffa"),
        (b"", ""),
    ],
)
def test_text_is_decoded(data: bytes, text: str) -> None:
    assert decoded(data) == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"caf\xe9", "byte 3 is not UTF-8; save the file as UTF-8"),
        (b"a\0b", "it holds NUL bytes, so it is not text"),
        (b"\xff\xfea", "byte 2 is not UTF-16"),
        (b"\xff\xfe\x00\xd8", "is not UTF-16"),
        (b"\xed\xa0\x80", "byte 0 is not UTF-8"),
        ("\ufeffa".encode("utf-32-le"), "it holds NUL characters; save the file as UTF-8"),
    ],
)
def test_file_that_is_no_text_is_left_out_and_reported(base: Base, data: bytes, words: str) -> None:
    library = open_library(base, {"a.md": data, "b.md": "fine"})
    documents = loaded(library)
    assert documents["a.md"] is None
    assert documents["b.md"] is not None
    (problem,) = problems(library)
    assert problem.startswith(".knowledge/core/a.md: left out: ")
    assert words in problem


def test_problems_of_files_documents_and_layers_come_together(base: Base) -> None:
    library = open_library(base, {"a.md": "---\norder: x\n---\n", "b.md": b"\xff", ".c": ""})
    found = problems(library)
    assert len(found) == 3
    assert [line.split(":")[0] for line in sorted(found)] == [
        ".knowledge/core/.c",
        ".knowledge/core/a.md",
        ".knowledge/core/b.md",
    ]


def test_problems_are_not_looked_for_beyond_the_deadline(base: Base) -> None:
    library = open_library(base, {"a.md": "x"})
    listings = library.refresh(("core",), no_deadline())
    with pytest.raises(TimeoutExceeded):
        library.problems(listings, Deadline(0, base.clock))


def test_twenty_threads_read_one_file_once(base: Base, reads: list[str]) -> None:
    library = open_library(base, {"a.md": "one"})
    (source,) = listed(library).files
    started = threading.Barrier(20)
    found: list[Document | None] = []

    def load() -> None:
        started.wait()
        found.append(library.load(source, no_deadline()))

    threads = [threading.Thread(target=load) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reads == ["a.md"]
    assert len(found) == 20
    assert len({id(document) for document in found}) == 1


def test_clock_of_the_library_is_the_real_one_by_default(base: Base, clock: Clock) -> None:
    base.write({"core/a.md": "x"})
    library = Library(base.settings())
    (source,) = listed(library).files
    document = library.load(source, no_deadline())
    assert document is not None
    assert document.body == "x"


@pytest.mark.parametrize(("number", "passing"), [(5, True), (24, True), (13, False)])
def test_whatever_hinders_reading_is_tried_again_by_the_next_call(
    base: Base, monkeypatch: pytest.MonkeyPatch, number: int, passing: bool
) -> None:
    library = open_library(base, {"a.md": "one"})
    first = listed(library)

    def fail(*_: object) -> None:
        raise OSError(number, "hindered")

    with monkeypatch.context() as patched:
        patched.setattr(source_roots, "read_file", fail)
        assert library.look_up(first.files[0], no_deadline()).passing is passing
    assert listed(library) is not first
    assert loaded(library)["a.md"] is not None


def test_a_page_of_very_many_lines_is_served_to_its_end(base: Base) -> None:
    guide = "# Guide\n\n" + "".join(f"## Step {n}\n\n- do {n}\n\n" for n in range(3_000))
    library = open_library(base, {"long.md": guide, "list.md": "- a\n" * 9_000})
    long, plain = loaded(library)["long.md"], loaded(library)["list.md"]
    assert long is not None
    assert plain is not None
    assert len(long.sections) == 3_001
    assert long.text(long.sections[-1]) == "## Step 2999\n\n- do 2999\n\n"
    assert long.sections[-1].end_line == 12_002
    assert plain.body.count("- a") == 9_000
    assert problems(library) == []


def test_a_page_of_very_many_lines_is_served_with_its_sections(base: Base) -> None:
    library = open_library(
        base, {"long.md": "# A\n\n" + "- a\n" * 9_000 + "\n## B {#b-id}\n\nEnd.\n"}
    )
    document = library.load(library.refresh(["core"], no_deadline())[0].files[0], no_deadline())
    assert document is not None
    assert [(one.heading, one.anchor) for one in document.sections] == [("A", "a"), ("B", "b-id")]
    assert problems(library) == []
