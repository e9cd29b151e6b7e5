import json
from typing import Any

import pytest

from sage.documents.files import Stamp
from sage.search.catalog import EMPTY, DocumentEntry, RowRange, from_json, to_json


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
    catalog = EMPTY.changed((), [entry("a.md", 0)]).changed(
        (), [entry("b.md", 1), entry("c.md", 0)]
    )
    changed = catalog.changed({"b.md"}, [entry("d.md", 0)], merged_from=1)
    assert changed.ranges == (RowRange("a.md", 1), RowRange("d.md", 1), RowRange("c.md", 1))


def test_sizes_are_by_layer() -> None:
    catalog = EMPTY.changed((), [entry("a.md"), entry("b.md", 1, "practices")])
    assert catalog.sizes == {"core": (3, 20), "practices": (2, 10)}


def test_it_survives_being_written_down() -> None:
    catalog = EMPTY.changed((), [entry("a.md"), entry("b.md", 1)]).changed({"a.md"}, [])
    again = from_json(json.loads(json.dumps(to_json(catalog))))
    assert again == catalog


def written_down(*entries: DocumentEntry) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(to_json(EMPTY.changed((), entries))))
    return data


def field_of(data: dict[str, Any], name: str) -> list[Any]:
    column: list[Any] = data["fields"][DocumentEntry._fields.index(name)]
    return column


def test_values_that_pages_share_are_kept_once() -> None:
    data = written_down(*(entry(f"{number}.md") for number in range(5)))
    assert field_of(data, "layer") == [["core"], [0] * 5]
    assert field_of(data, "path") == [[f"{number}.md" for number in range(5)], []]
    entries = from_json(data).slots
    assert entries[0].layer is entries[4].layer


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("path", [["a.md"], []]),
        ("path", [["a.md", "a.md"], []]),
        ("path", [["a.md", 1], []]),
        ("layer", [["core"], [0, 1]]),
        ("layer", [["core"], [0, -1]]),
        ("layer", [["core"], [0]]),
        ("layer", ["core"]),
        ("is_index", [[0], [0, 0]]),
        ("indexed_sections", [[True], [0, 0]]),
        ("indexed_sections", [[5], [0, 0]]),
        ("tags", [[["a", 1]], [0, 0]]),
        ("stamp", [[[1, 2, 3], [1, 2, 3]], []]),
        ("order", [["1"], [0, 0]]),
    ],
)
def test_a_field_of_another_shape_is_refused(name: str, column: list[Any]) -> None:
    data = written_down(entry("a.md"), entry("b.md"))
    assert len(from_json(data).slots) == 2
    data["fields"][DocumentEntry._fields.index(name)] = column
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_json(data)


@pytest.mark.parametrize(
    "changed",
    [
        {"fields": []},
        {"fields": [[[], []]]},
        {"owners": [0]},
        {"owners": [0, 0]},
        {"owners": [0, -1]},
        {"owners": [0, -2]},
        {"owners": [0, 2]},
        {"owners": [0, True]},
        {"rows": [3]},
        {"rows": [3, 2]},
        {"rows": [3, -3]},
        {"rows": [3, "3"]},
    ],
)
def test_rows_of_another_shape_are_refused(changed: dict[str, Any]) -> None:
    data = written_down(entry("a.md"), entry("b.md"))
    assert len(from_json(data).slots) == 2
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_json(data | changed)
