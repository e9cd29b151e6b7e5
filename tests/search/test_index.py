from pathlib import Path

import pytest

from sage.documents.document import Heading
from sage.documents.files import Stamp
from sage.search.catalog import DocumentEntry
from sage.search.index import Index, contents_of, load, reopened, save
from sage.search.sections import SectionEntry, StoredDocument, pack_record, unpack_record
from sage.terms import index_file as index_file_module
from sage.terms.index_file import FilePart, IndexFile, MemoryPart, UntrustedIndex
from sage.terms.postings import PARTS, Row
from tests.search.test_catalog import entry

MADE_FOR = {"root": "/r"}


def described(path: str, text: str) -> tuple[DocumentEntry, list[Row]]:
    terms = {"body": {word: [at] for at, word in enumerate(text.split())}}
    section = SectionEntry(0, "", "", 1, 1, 1, 1, 1, 1, text)
    record = pack_record(StoredDocument("", (section,), (Heading("", 0, "", 1, 0),), 1, text))
    return entry(path, 1), [Row({"title": {"t": [0]}}, 0, record), Row(terms, len(text.split()))]


def texts(index: Index) -> dict[str, str]:
    rows, reader = index.catalog.first_rows, index.segments.reader
    return {
        one.path: unpack_record(reader.record(rows[slot])).sections[0].text
        for slot, one in enumerate(index.catalog.slots)
    }


def test_documents_come_and_go_together_with_their_rows() -> None:
    index = Index()
    index.change((), [described("a.md", "one"), described("b.md", "two")])
    index.change({"a.md"}, [described("a.md", "three")])
    index.change({"b.md", "unknown.md"}, [])
    assert texts(index) == {"a.md": "three"}


def test_many_small_changes_stay_few_segments() -> None:
    index = Index()
    index.change((), [described(f"p{n}.md", f"old {n}") for n in range(200)])
    for n in range(100):
        index.change({f"p{n}.md"}, [described(f"p{n}.md", f"new {n}")])
    assert len(index.segments.reader.segment_sizes) < 12
    assert texts(index) == {f"p{n}.md": f"{'new' if n < 100 else 'old'} {n}" for n in range(200)}


def test_dead_rows_do_not_pile_up() -> None:
    index = Index()
    for n in range(20):
        pages = [described(f"p{page}.md", f"text {n}") for page in range(40)]
        index.change({f"p{page}.md" for page in range(40)}, pages)
    assert sum(index.segments.reader.segment_sizes) < 1000


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    index_file = IndexFile(tmp_path, Path("/r"))
    index = Index(footers={("own", "core"): frozenset({"abc", "def"})})
    index.change((), [described("a.md", "one \ud7ff"), described("b.md", "two")])
    assert save(index_file, contents_of(index), MADE_FOR) == index_file.path.stat().st_size
    again = load(index_file, MADE_FOR)
    assert again is not None
    assert texts(again) == texts(index)
    assert again.footers == index.footers
    assert list(again.segments.reader.forms("two")) == ["two"]
    assert again.catalog.entries["a.md"].stamp == Stamp(1, 2, 3, 4)


def test_what_is_saved_is_of_one_moment(tmp_path: Path) -> None:
    index_file = IndexFile(tmp_path, Path("/r"))
    index = Index()
    index.change((), [described("a.md", "one")])
    contents = contents_of(index)
    index.change({"a.md"}, [described("b.md", "two")])
    save(index_file, contents, MADE_FOR)
    again = load(index_file, MADE_FOR)
    assert again is not None
    assert texts(again) == {"a.md": "one"}
    assert not again.segments.reader.forms("two")


def test_nothing_kept_is_nothing(tmp_path: Path) -> None:
    assert load(IndexFile(tmp_path, Path("/r")), MADE_FOR) is None


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("alive", b"\1"),
        ("row_counts", b"\1\0\0"),
        ("path.ends", b"\1\0\0\0"),
        ("layer.codes", None),
    ],
)
def test_a_sealed_file_of_another_catalog_is_refused(
    tmp_path: Path, name: str, part: bytes | None
) -> None:
    with_parts(tmp_path, {f"catalog.{name}": None if part is None else MemoryPart(part)})
    with pytest.raises(UntrustedIndex):
        load(IndexFile(tmp_path, Path("/r")), MADE_FOR)


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"segments": "1"},
        {"segments": 1},
        {"footers": 1},
        {"footers": None},
        {"footers": [["own", "core"]]},
    ],
)
def test_a_sealed_file_of_another_manifest_is_refused(
    tmp_path: Path, manifest: dict[str, object]
) -> None:
    file = IndexFile(tmp_path, Path("/r"))
    save(file, contents_of(Index()), MADE_FOR)
    said, parts = file.read() or ({}, {})
    whole = {"segments": 0, "footers": [], **manifest} if manifest else {}
    file.write({"made": said["made"], **whole}, parts)
    with pytest.raises(UntrustedIndex):
        load(file, MADE_FOR)


@pytest.mark.parametrize("name", [f"0.{part}" for part in PARTS])
@pytest.mark.parametrize("change", ["missing", "empty", "longer", "shorter"])
def test_a_sealed_file_whose_parts_do_not_fit_is_refused(
    tmp_path: Path, name: str, change: str
) -> None:
    index = Index()
    index.change((), [described("a.md", "one two one"), described("b.md", "two")])
    data = contents_of(index).segments[0].parts[name.removeprefix("0.")]
    whole = data.read(0, data.size)
    changed = {"empty": b"", "longer": whole + bytes(4), "shorter": whole[:-1]}
    with_parts(tmp_path, {name: MemoryPart(changed[change]) if change in changed else None}, index)
    with pytest.raises(UntrustedIndex):
        load(IndexFile(tmp_path, Path("/r")), MADE_FOR)


def with_parts(
    cache: Path, parts: dict[str, MemoryPart | None], index: Index | None = None
) -> None:
    """A sealed file in which some parts are others, or missing."""
    file = IndexFile(cache, Path("/r"))
    save(file, contents_of(index or Index()), MADE_FOR)
    manifest, kept = file.read() or ({}, {})
    manifest.pop("parts")
    kept |= {name: part for name, part in parts.items() if part is not None}
    file.write(manifest, {name: part for name, part in kept.items() if parts.get(name, part)})


def test_a_large_file_is_read_by_the_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file_module, "IN_MEMORY", 0)
    file = IndexFile(tmp_path, Path("/r"))
    index = Index()
    index.change((), [described(f"p{n}.md", f"word{n} all") for n in range(20)])
    contents = contents_of(index)
    save(file, contents, MADE_FOR)
    index.segments.replace(reopened(file, contents, MADE_FOR))
    assert isinstance(index.segments.data[0].parts["rows"], FilePart)
    assert texts(index)["p7.md"] == "word7 all"
    index.change({"p7.md"}, [described("new.md", "fresh")])
    assert "p7.md" not in texts(index)


def test_another_file_does_not_replace_what_is_in_memory(tmp_path: Path) -> None:
    file = IndexFile(tmp_path, Path("/r"))
    index, other = Index(), Index()
    index.change((), [described("a.md", "one")])
    other.change((), [described("b.md", "one")])
    save(file, contents_of(other), MADE_FOR)
    assert reopened(file, contents_of(index), MADE_FOR) == {}
