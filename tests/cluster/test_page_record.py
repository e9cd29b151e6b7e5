import base64
from array import array

import pytest

from sage.cluster.page_record import (
    PageRows,
    bytes_from_column,
    columns_of,
    content_stamp,
    from_column,
    lines_of,
    occurrences,
    rows_of,
    to_column,
)
from sage.cluster.schema import bucket_of
from sage.errors import SageError
from sage.terms.postings import Row

TEXT = "".join(map(chr, range(1, 700))) + "数据\ud800\U0001f600"


@pytest.mark.parametrize("text", [TEXT, TEXT[1:], TEXT[2:], "a", ""])
def test_a_column_comes_back_however_the_cluster_writes_base64(text: str) -> None:
    column = to_column(text)
    assert from_column(column) == text
    assert from_column(column.rstrip("=")) == text
    safe = base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()
    assert from_column(safe) == text
    assert from_column(safe.rstrip("=")) == text


@pytest.mark.parametrize("column", ["A", "é", "/////w"])
def test_what_is_no_column_is_refused(column: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_column(column)


def test_a_stamp_tells_the_text_and_no_day() -> None:
    one, other = content_stamp(b"one"), content_stamp(b"two")
    assert one != other
    assert one.day == other.day


def _row(length: int, heading: int = 0, **fields: dict[str, list[int]]) -> Row:
    return Row(fields, length, heading=heading)


def test_where_a_form_occurs_is_read_from_the_columns_of_some_pages() -> None:
    one = columns_of(
        lines_of([_row(0, title={"cafés": [0]}), _row(3, body={"cafés": [4, 9], "café": [1]})])
    )
    other = columns_of(
        lines_of([_row(0), _row(2, code={"x": [0]}), _row(5, body={"cafés": [70_000]})])
    )
    bucket = bucket_of("cafés")
    found = occurrences(
        [(10, bytes_from_column(one[bucket])), (20, bytes_from_column(other[bucket]))], "cafés"
    )
    assert {name: list(postings.items()) for name, postings in found.items()} == {
        "title": [(10, array("H", [0]))],
        "body": [(11, array("H", [4, 9])), (22, array("H", [65_535]))],
    }


def test_a_column_that_is_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match=r"."):
        occurrences([(0, b"\nword\t6 1:")], "word")


def test_rows_that_the_entry_does_not_have_are_refused() -> None:
    source = {"entry": {"lengths": [0, 70_000], "headings": [0, 2]}}
    assert rows_of(source, 2) == PageRows(array("I", [0, 70_000]).tobytes(), b"\0\2")
    with pytest.raises(SageError, match="publish again"):
        rows_of(source, 3)
