import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.files import Stamp
from sage.search.catalog import EMPTY, Catalog, DocumentEntry, catalog_of, from_parts, to_parts
from sage.terms.index_file import UntrustedIndex


def entry(path: str, sections: int = 2, layer: str = "core") -> DocumentEntry:
    return DocumentEntry(
        path=path,
        layer=layer,
        source="own",
        topic=path.removesuffix(".md"),
        id="",
        title=path,
        summary="About it.",
        stamp=Stamp(1, 2, 3, 4),
        tags=("ci",),
        aliases=(),
        task_types=(),
        applies_to=(),
        superseded_by="",
        last_updated="",
        priority=0,
        order=None,
        languages=("python",),
        type="guide",
        status="published",
        is_index=False,
        title_length=1,
        path_length=1,
        last_lines=("abc",),
        section_total=sections + 1,
        tokens=10 * sections,
        length=5 * sections,
        indexed_sections=sections,
    )


def test_each_row_belongs_to_its_document() -> None:
    catalog = EMPTY.changed((), [entry("a.md"), entry("b.md", 1)])
    assert list(catalog.owners) == [0, 0, 0, 1, 1]
    assert list(catalog.first_rows) == [0, 3]
    assert catalog.section_count == 3
    assert catalog.rows_of({"b.md"}) == [3, 4]


def test_a_document_indexed_again_leaves_dead_rows() -> None:
    catalog = EMPTY.changed((), [entry("a.md"), entry("b.md", 1)])
    changed = catalog.changed({"a.md"}, [entry("a.md", 1)])
    assert list(changed.owners) == [-1, -1, -1, 0, 0, 1, 1]
    assert [slot.path for slot in changed.slots] == ["b.md", "a.md"]
    assert changed.dead_rows == 3


def test_merged_rows_move_behind_the_added() -> None:
    catalog = catalog_of([entry("a.md", 0)]).changed((), [entry("b.md", 1), entry("c.md", 0)])
    changed = catalog.changed({"b.md"}, [entry("d.md", 0)], merged_from=1)
    assert [one.path for one in changed.slots] == ["a.md", "d.md", "c.md"]
    assert list(changed.owners) == [0, 1, 2]
    assert changed.dead_rows == 0


def test_sizes_are_by_layer() -> None:
    catalog = EMPTY.changed((), [entry("a.md"), entry("b.md", 1, "practices")])
    assert catalog.sizes == {"core": (3, 20), "practices": (2, 10)}


def test_an_entry_is_what_was_put_in_and_made_once() -> None:
    entries = [entry("a.md"), entry("b.md", 1, "practices"), entry("\udce9.md")]
    entries[1] = entries[1]._replace(order=1.5, is_index=True, tags=(), problems=("é", "x"))
    catalog = catalog_of(entries)
    assert list(catalog.slots) == entries
    assert catalog.slots[1:] == entries[1:]
    assert catalog.slots[0] is catalog.slots[0]
    assert catalog.entries["b.md"].is_index is True
    assert "c.md" not in catalog.entries
    assert catalog.slots.stamps() == [Stamp(1, 2, 3, 4)] * 3
    assert list(catalog.entries) == ["a.md", "b.md", "\udce9.md"]
    assert len(catalog.entries) == 3


def written_down(catalog: Catalog) -> Catalog:
    return from_parts(to_parts(catalog))


def test_it_survives_being_written_down() -> None:
    catalog = catalog_of([entry("a.md"), entry("b.md", 1)]).changed({"a.md"}, [])
    again = written_down(catalog)
    assert list(again.slots) == list(catalog.slots)
    assert again.owners == catalog.owners
    assert (again.dead_rows, again.section_count) == (3, 1)
    assert list(written_down(EMPTY).slots) == []


NAMES = st.text(st.characters(codec="utf-8"), max_size=5)


@given(st.data())
def test_any_changes_leave_the_entries_that_a_plain_list_would(data: st.DataObject) -> None:
    catalog, plain = EMPTY, list[DocumentEntry]()
    for _ in range(data.draw(st.integers(1, 5))):
        gone = data.draw(st.sets(st.sampled_from([one.path for one in plain] or [""]))) - {""}
        paths = data.draw(st.lists(NAMES, unique=True, max_size=4))
        added = [
            entry(path, data.draw(st.integers(0, 2)))._replace(
                title=data.draw(NAMES),
                tags=tuple(data.draw(st.lists(NAMES, max_size=2))),
                order=data.draw(st.sampled_from([None, 1, 2.5])),
            )
            for path in paths
            if path not in {one.path for one in plain} - gone
        ]
        kept = [one for one in plain if one.path not in gone]
        # A merge begins where a segment does: before the first row of a document.
        cut = data.draw(st.integers(0, len(plain)))
        row = (*catalog.first_rows, len(catalog.owners))[cut] if catalog.dead_rows == 0 else None
        if row is not None and data.draw(st.booleans()):
            before = [one for one in plain[:cut] if one.path not in gone]
            kept, plain = kept[len(before) :], [*before, *added, *kept[len(before) :]]
            catalog = catalog.changed(gone, added, row)
        else:
            plain = [*kept, *added]
            catalog = catalog.changed(gone, added)
        again = written_down(catalog)
        for one in (catalog, again):
            assert list(one.slots) == plain
            assert one.tags == {tag for page in plain for tag in page.tags}
        assert again.owners == catalog.owners
        assert [catalog.owners[row] for row in catalog.first_rows] == list(range(len(plain)))


def test_values_that_pages_share_are_kept_once() -> None:
    parts = to_parts(catalog_of([entry(f"{number}.md") for number in range(5)]))
    assert parts["layer.values"] == b'["core"]'
    catalog = from_parts(parts)
    assert catalog.slots[0].layer is catalog.slots[4].layer


def test_values_that_no_page_has_any_more_are_not_kept_for_ever() -> None:
    catalog = catalog_of([entry("a.md")])
    for number in range(2_000):
        catalog = catalog.changed(["a.md"], [entry("a.md")._replace(last_lines=(str(number),))])
    assert len(to_parts(catalog)["last_lines.values"]) < 12_000
    assert catalog.slots[0].last_lines == ("1999",)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("path.texts", b"a.mda.md"),
        ("path.ends", b"\x04\0\0\0"),
        ("path.ends", b"\x08\0\0\0\x04\0\0\0"),
        ("path.ends", b"\x04\0\0\0\x08\0\0"),
        ("title.ends", b""),
        ("layer.codes", b"\0\0\0\0"),
        ("tokens.numbers", b"\0" * 24),
        ("indexed_sections.numbers", b"\0" * 16),
        ("row_counts", b"\3\0\0\0"),
        ("row_counts", b"\3\0\0\0\2\0\0\0"),
        ("alive", b"\1"),
        ("alive", b"\1\0"),
        ("alive", b"\1\2"),
    ],
)
def test_parts_of_another_shape_are_refused(name: str, part: bytes) -> None:
    parts = to_parts(catalog_of([entry("a.md"), entry("b.md")]))
    assert len(from_parts(parts).slots) == 2
    assert name in parts
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_parts({**parts, name: part})
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_parts({one: parts[one] for one in parts if one != name})


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("layer.values", b"[]"),
        ("layer.values", b'{"core": 1}'),
        ("layer.values", b'["core", 1]'),
        ("layer.values", b'["core"'),
        ("layer.values", b'["\xff"]'),
        ("layer.values", b"[" * 100_000),
        ("layer.codes", b"\1\0\0\0\0\0\0\0"),
        ("tags.values", b'[["a", 1]]'),
        ("title.texts", b"\xff\xff\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_values_of_another_shape_are_refused_when_they_are_needed(name: str, part: bytes) -> None:
    parts = to_parts(catalog_of([entry("a.md"), entry("b.md")]))
    assert name in parts
    catalog = from_parts({**parts, name: part})
    with pytest.raises(UntrustedIndex):
        catalog.slots[0]
