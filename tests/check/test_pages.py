"""The exact text of pages, as the rules look at it."""

from dataclasses import replace
from datetime import date

from sage.check.pages import folded, read_base
from sage.check.run import check_knowledge
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


def test_a_check_for_some_layers_tells_nothing_of_the_others(base: Base) -> None:
    links = " ".join(
        f"[x](../guidelines/{name})"
        for name in ("secret.md", "secre.md", "none.md", "secret.md#salary", "secret.md#salry")
    )
    page = f"# A\n\nSee {links} and `guidelines/none.md`, [y](none.md).\n"
    base.write(
        {
            "core/a.md": f"---\nsuperseded_by: guidelines/secret\n---\n{page}",
            "core/b.md": f"---\nsuperseded_by: guidelines/none\n---\n# B{page[3:]}",
            "guidelines/secret.md": "# Secret\n\n## Salary\n\nMuch.\n",
            "frameworks/other.md": "# Other\n",
        }
    )
    settings = base.settings()
    narrowed = replace(settings, is_narrowed=True, own_layers=settings.layers, layers=("core",))
    problems = check_knowledge(narrowed, date(2026, 1, 1)).problems
    assert {(one.rule, one.path) for one in problems} == {
        ("dead-link", ".knowledge/core/a.md"),
        ("dead-link", ".knowledge/core/b.md"),
    }
    assert {one.message.partition(";")[0] for one in problems} == {"none.md does not exist"}
