import json

import pytest

from sage.catalog import EMPTY, Block, Card, SectionCard, from_json, to_json
from sage.files import Stamp


def card(path: str, sections: int = 2, layer: str = "core") -> Card:
    return Card(
        path=path,
        layer=layer,
        topic=path.removesuffix(".md"),
        title=path,
        summary="",
        stamp=Stamp(1, 2, 3, 4),
        tags=("ci",),
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
        sections=tuple(SectionCard(n, f"H{n}", "", n, n, 10, 5) for n in range(sections)),
    )


def test_each_row_belongs_to_its_document() -> None:
    catalog = EMPTY.changed((), [card("a.md"), card("b.md", 1)])
    assert catalog.owners == [0, 0, 0, 1, 1]
    assert catalog.first_rows == (0, 3)
    assert catalog.row_lengths == [0, 5, 5, 0, 5]
    assert catalog.section_count == 3
    assert catalog.rows_of({"b.md"}) == [3, 4]


def test_a_document_indexed_again_leaves_dead_rows() -> None:
    catalog = EMPTY.changed((), [card("a.md"), card("b.md", 1)])
    changed = catalog.changed({"a.md"}, [card("a.md", 1)])
    assert changed.owners == [-1, -1, -1, 0, 0, 1, 1]
    assert [slot.path for slot in changed.slots] == ["b.md", "a.md"]
    assert changed.dead_rows == 3
    assert changed.row_lengths == [0, 0, 0, 0, 5, 0, 5]


def test_merged_rows_move_behind_the_added() -> None:
    catalog = EMPTY.changed((), [card("a.md", 0)]).changed((), [card("b.md", 1), card("c.md", 0)])
    changed = catalog.changed({"b.md"}, [card("d.md", 0)], merged_from=1)
    assert changed.blocks == (Block("a.md", 1), Block("d.md", 1), Block("c.md", 1))


def test_sizes_are_by_layer() -> None:
    catalog = EMPTY.changed((), [card("a.md"), card("b.md", 1, "practices")])
    assert catalog.sizes == {"core": (3, 20), "practices": (2, 10)}


def test_it_survives_being_written_down() -> None:
    catalog = EMPTY.changed((), [card("a.md"), card("b.md", 1)]).changed({"a.md"}, [])
    again = from_json(json.loads(json.dumps(to_json(catalog))))
    assert again == catalog


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"cards": [], "blocks": [["a.md", 1]]},
        {"cards": [[1, 2]], "blocks": []},
        {"cards": [], "blocks": [1]},
    ],
)
def test_another_shape_is_refused(data: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(data)
