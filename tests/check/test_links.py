"""Links, anchors and paths that lead nowhere are found; those that may lead somewhere are not."""

import pytest

from tests.conftest import Base
from tests.findings import checked, found

OTHERS = {
    "core/other.md": "# Other\n\nText.\n\n## Some Part: two\n\nText.\n",
    "practices/python/testing.md": "# Testing\n\nText.\n",
    "practices/my page.md": "# Spaced\n\nText.\n",
}


@pytest.mark.parametrize(
    "link",
    [
        "[a](gone.md)",
        "[a](./gone.md)",
        "[a](../practices/gone.md)",
        "[a](/gone/page.md)",
        "[a](/.knowledge/gone)",
        "[a](../gone/)",
        "![image](gone.png)",
        '[a](gone.md "title")',
        "[a](<gone file.md>)",
        "[a](other.mdx)",
        "[a](gone.md#part)",
        "[a][r]\n\n[r]: gone.md",
        "[a](../../../outside.md)",
        "[`code`](gone.md)",
        "| [a](gone.md) | b |",
    ],
)
def test_a_link_to_nothing_is_found(base: Base, link: str) -> None:
    assert len(found(base, "dead-link", f"# Page\n\nText.\n\n{link}\n", OTHERS)) == 1


@pytest.mark.parametrize(
    "link",
    [
        "[a](other.md)",
        "[a](other)",
        "[a](../core/other.md)",
        "[a](/.knowledge/core/other.md)",
        "[a](../practices/)",
        "[a](../practices/my%20page.md)",
        "[a](<../practices/my page.md>)",
        "[a](other.md?raw=1)",
        "[a](/docs/concepts/#part)",
        "[a](../other/#text)",
        "[a](https://example.org/gone.md)",
        "[a](mailto:a@example.org)",
        "[a](//host/gone.md)",
        "[a](url)",
        "[a]()",
        "[a]({path}/gone.md)",
        "[a](path/to/file.md)",
        "`[a](gone.md)`",
        "```\n[a](gone.md)\n```",
        "<!-- [a](gone.md) -->",
        "\\[a](gone.md)",
        "a[0](x)",
    ],
)
def test_what_leads_somewhere_or_is_no_link_is_let_pass(base: Base, link: str) -> None:
    assert found(base, "dead-link", f"# Page\n\nText.\n\n{link}\n", OTHERS) == []


def test_the_file_that_was_meant_is_named(base: Base) -> None:
    report = checked(base, {"core/page.md": "# P\n\n[a](testing.md)\n", **OTHERS})
    assert "did you mean ../practices/python/testing.md?" in str(report.problems[0])


def test_front_matter_counts_in_the_line(base: Base) -> None:
    text = "---\ntitle: P\n---\n# P\n\nText [a](gone.md)\r\n"
    assert found(base, "dead-link", text) == [6]


@pytest.mark.parametrize(
    ("link", "lines"),
    [
        ("[a](#gone)", [5]),
        ("[a](other.md#gone)", [5]),
        ("[a](#page)", []),
        ("[a](#Page)", []),
        ("[a](other.md#some-part-two)", []),
        ("[a](other#gone)", []),
        ("[a](#explicit)", []),
        ("[a](#in-a-list)", []),
        ("[a](#x--y)", []),
        ("[a](#top)", []),
        ("[a](../practices/my%20page.md#spaced)", []),
    ],
)
def test_an_anchor_must_be_that_of_a_heading(base: Base, link: str, lines: list[int]) -> None:
    text = (
        f'# Page\n\nText.\n\n{link}\n\n<a id="explicit"></a>\n\n- ## In a list\n\n## X & Y\n\nz\n'
    )
    assert found(base, "dead-anchor", text, OTHERS) == lines


@pytest.mark.parametrize(("anchor", "lines"), [("usage", []), ("gone", [5])])
def test_the_headings_of_a_page_outside_the_layers_are_known(
    base: Base, anchor: str, lines: list[int]
) -> None:
    (base.root / "README.md").write_text("# Read me\n\n## Usage\n\nx\n")
    (base.root / "data.txt").write_text("no page\n")
    text = f"# Page\n\nText [a](../../data.txt#x)\n\n[b](../../README.md#{anchor})\n"
    assert found(base, "dead-anchor", text) == lines


def test_a_numbered_heading_of_another_page_is_suggested(base: Base) -> None:
    more = {"core/b.md": "# B\n\nT.\n\n## 3. Agenda\n\nx\n"}
    report = checked(base, {"core/a.md": "# A\n\n[a](b.md#agenda)\n", **more})
    assert "did you mean #3-agenda?" in str(report.problems[0])


def test_a_numbered_heading_is_suggested(base: Base) -> None:
    report = checked(base, {"core/page.md": "# P\n\n[a](#agenda)\n\n## 3. Agenda\n\nx\n"})
    assert "did you mean #3-agenda?" in str(report.problems[0])


@pytest.mark.parametrize(
    "path",
    [
        ".knowledge/core/gone.md",
        "core/gone.md",
        "practices/python/gone.md",
        "./gone.md",
        "../core/gone.md",
        "practices/python/gone.md#part",
        "src/app/gone.py",
        "src/app/gone.py:12",
    ],
)
def test_a_path_in_backticks_that_begins_at_something_real_must_exist(
    base: Base, path: str
) -> None:
    (base.root / "src" / "app").mkdir(parents=True)
    assert found(base, "dead-path", f"# P\n\nSee `{path}`.\n", OTHERS) == [3]


@pytest.mark.parametrize(
    "path",
    [
        ".knowledge/core/other.md",
        "core/other.md",
        "other.md",
        "python/testing.md",
        "practices/python/testing.md",
        "src/app/real.py",
        "docs/guide.md",
        "src/example.py",
        "elsewhere/gone.md",
        "core/*.md",
        "core/<name>.md",
        "core/{topic}.md",
        "core/ADR_XXX.md",
        "core/your-page.md",
        "path/to/gone.md",
        "https://example.org/gone.md",
        "cat core/gone.md",
        "core/gone",
        "text/markdown",
        "and/or",
        "N/A",
    ],
)
def test_other_texts_in_backticks_are_let_pass(base: Base, path: str) -> None:
    (base.root / "src" / "app").mkdir(parents=True)
    (base.root / "src" / "app" / "real.py").touch()
    assert found(base, "dead-path", f"# P\n\nSee `{path}`.\n", OTHERS) == []
