"""Areas are shares, and nothing overlaps or sticks out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.page.treemap import treemap


@given(st.lists(st.integers(0, 100_000), max_size=40))
def test_areas_are_shares_of_the_whole(sizes: list[int]) -> None:
    tiles = treemap([(str(number), size) for number, size in enumerate(sizes)], 960, 360)
    assert len(tiles) == sum(size > 0 for size in sizes)
    for tile in tiles:
        assert tile.width * tile.height == pytest.approx(
            960 * 360 * tile.size / sum(sizes), rel=1e-3
        )
        assert -1e-6 <= tile.x <= tile.x + tile.width <= 960 + 1e-3
        assert -1e-6 <= tile.y <= tile.y + tile.height <= 360 + 1e-3


def test_an_empty_base_has_no_tile() -> None:
    assert treemap([], 960, 360) == []
