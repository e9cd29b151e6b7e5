"""The exact text of pages, as the rules look at it."""

from sage.pages import folded, read_base
from tests.conftest import Base


def test_lines_are_those_of_the_file(base: Base) -> None:
    base.write({"core/a.md": "\ufeff---\ntitle: T\n---\r\n# A\r\n\r\nlast"})
    page = read_base(base.settings()).pages[0]
    assert page.line(page.text.index("# A")) == 4
    assert [page.line_text(number) for number in (1, 4, 6)] == ["---", "# A", "last"]


def test_front_matter_is_no_prose(base: Base) -> None:
    base.write({"core/a.md": "---\nsummary: '[a](b.md)'\n---\n# A\n\n[c](d.md)\n"})
    page = read_base(base.settings()).pages[0]
    assert "b.md" not in page.masked.prose
    assert page.masked.prose.index("[c]") == page.text.index("[c]")


def test_whether_something_exists_is_asked_once(base: Base) -> None:
    base.write({"core/a.md": "# A\n"})
    read = read_base(base.settings())
    assert read.exists(".knowledge/core/a.md")
    base.path("core/a.md").unlink()
    assert read.exists(".knowledge/core/a.md")
    assert not read.exists(".knowledge/core/b.md")


def test_anchors_are_compared_as_renderers_write_them() -> None:
    assert folded("Some--Part_1") == folded("some-part-1") == "some-part-1"
