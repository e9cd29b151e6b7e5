import base64

import pytest

from sage.cluster.page_record import from_column, to_column

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
