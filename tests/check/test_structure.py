"""Pages: front matter, titles, headings, size, names, layers and replacements."""

import pytest

from tests.conftest import Base
from tests.findings import checked, found

PAGE = "# Page\n\nText.\n"


def rules_of(base: Base, files: dict[str, str | bytes]) -> list[tuple[str, str]]:
    return [(problem.path, problem.rule) for problem in checked(base, files).problems]


def test_a_healthy_page_has_no_problems(base: Base) -> None:
    text = "---\nsummary: S.\ntags: [a]\nlast_updated: 2026-06-01\n---\n# Page\n\nText.\n"
    report = checked(
        base,
        {
            f"{layer}/{layer}-page.md": text.replace("Page", layer)
            for layer in ("core", "guidelines", "frameworks", "practices")
        },
    )
    assert report.problems == ()
    assert report.pages == 4


def test_a_misspelt_key_is_a_warning_and_a_strange_one_a_note(base: Base) -> None:
    text = "---\ntag: [a]\nstages: 2\ndescription: D\nsage_ignore: [stale]\n---\n# P\n\nT.\n"
    problems = checked(base, {"core/page.md": text}).problems
    assert [(p.rule, p.line, p.level) for p in problems] == [
        ("unknown-key", 2, "warning"),
        ("unknown-key", 3, "note"),
    ]
    assert "did you mean tags?" in problems[0].message


def test_a_task_type_that_does_not_exist_is_found(base: Base) -> None:
    text = "---\ntask_types: [coding, cooking]\n---\n" + PAGE
    assert found(base, "front-matter", text) == [2]
    assert found(base, "front-matter", text.replace("cooking", "debugging")) == []


def test_bad_front_matter_is_reported_with_its_line(base: Base) -> None:
    assert found(base, "front-matter", "---\ntitle: [\n---\n" + PAGE) == [2]
    assert found(base, "front-matter", "---\ntitle: T\npriority: huge\n---\n" + PAGE) == [3]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Just text.\n", ["no-title"]),
        ("# Only a title\n", ["no-summary"]),
        ("# A\n\n## B\n\nText.\n", ["no-summary"]),
        ("", ["no-summary", "no-title"]),
        ("---\ntitle: T\nsummary: S\n---\n", []),
        ("Setext\n======\n\nText.\n", []),
        ("# A\n\n> quoted summary\n", []),
    ],
)
def test_a_page_says_what_it_is_called_and_about(base: Base, text: str, rules: list[str]) -> None:
    problems = checked(base, {"core/page.md": text}).problems
    assert [problem.rule for problem in problems] == rules


def test_a_heading_twice_below_the_same_heading_is_found(base: Base) -> None:
    text = "# P\n\nT.\n\n## A\n\n### Example\n\n## B\n\n### Example\n\n### Example\n\n## A\n\nx\n"
    assert found(base, "duplicate-heading", text) == [13, 15]
    assert found(base, "duplicate-heading", "# P\n\nT.\n\n```\n# P\n```\n") == []


def test_large_pages_and_sections_are_found_by_their_tokens(base: Base) -> None:
    limits = {"check.max_page_tokens": 300, "check.max_section_tokens": 100}
    text = "# P\n\nT.\n\n## Long\n\n" + "word " * 400 + "\n\n## Short\n\nx\n"
    problems = checked(base, {"core/page.md": text}, **limits).problems
    assert [(p.rule, p.line) for p in problems] == [("large-page", 1), ("large-section", 5)]
    assert "'Long' has 40" in problems[1].message
    assert checked(base, {"core/page.md": text}).problems == ()


def test_two_files_of_one_topic_are_an_error_and_a_likeness_a_warning(base: Base) -> None:
    files: dict[str, str | bytes] = {
        "core/a.md": PAGE.replace("Page", "A"),
        "core/a.markdown": PAGE.replace("Page", "B"),
        "practices/my-page.md": PAGE.replace("Page", "C"),
        "practices/my_page.md": PAGE.replace("Page", "D"),
    }
    problems = checked(base, files).problems
    assert [(p.path, p.rule, p.level) for p in problems] == [
        (".knowledge/core/a.md", "duplicate-topic", "error"),
        (".knowledge/practices/my_page.md", "duplicate-topic", "warning"),
    ]


def test_the_same_title_in_a_layer_is_a_note_but_not_for_index_pages(base: Base) -> None:
    files: dict[str, str | bytes] = {"core/a.md": PAGE, "core/b.md": PAGE, "practices/c.md": PAGE}
    files |= {"core/x/index.md": "# X\n\nT.\n", "core/y/index.md": "# X\n\nT.\n"}
    assert rules_of(base, files) == [(".knowledge/core/b.md", "duplicate-title")]


def test_names_that_differ_in_case_only_are_found(base: Base) -> None:
    files: dict[str, str | bytes] = {
        "core/Setup.md": PAGE,
        "core/setup.md": PAGE.replace("Page", "Other"),
        "practices/Go/a.md": "# A\n\nT.\n",
        "practices/go/b.md": "# B\n\nT.\n",
        "practices/caf\u00e9.md": "# C\n\nT.\n",
        "practices/cafe\u0301.md": "# D\n\nT.\n",
    }
    assert [path for path, rule in rules_of(base, files) if rule == "case-collision"] == [
        ".knowledge/core/setup.md",
        ".knowledge/practices/caf\u00e9.md",
        ".knowledge/practices/go/b.md",
    ]


def test_pages_beside_the_layers_are_counted_by_folder(base: Base) -> None:
    files: dict[str, str | bytes] = {
        "core/a.md": PAGE,
        "README.md": PAGE,
        "notes.txt": "x",
        "Practice/b.md": PAGE,
        "Practice/deep/c.md": PAGE,
        "images/x.png": b"\x89PNG",
        "drafts/d.md": PAGE,
        ".hidden/e.md": PAGE,
    }
    problems = [
        p for p in checked(base, files, ignore=["drafts/"]).problems if p.rule == "no-layer"
    ]
    assert [(p.path, p.message) for p in problems] == [
        (".knowledge/Practice", "2 pages are in no layer; did you mean practices?"),
        (".knowledge/README.md", "the page is in no layer"),
    ]


@pytest.mark.parametrize(
    ("meta", "lines"),
    [
        ("status: superseded", [2]),
        ("status: superseded\nsuperseded_by: core/gone", [3]),
        ("superseded_by: page", [2]),
        ("status: superseded\nsuperseded_by: core/new", []),
        ("superseded_by: new.md", []),
        ("status: deprecated", []),
    ],
)
def test_a_replaced_page_leads_to_one_that_exists(base: Base, meta: str, lines: list[int]) -> None:
    more = {"core/new.md": "# New\n\nT.\n"}
    assert found(base, "superseded", f"---\n{meta}\n---\n{PAGE}", more) == lines


def test_what_cannot_be_read_is_reported_and_the_rest_is_checked(base: Base) -> None:
    files: dict[str, str | bytes] = {
        "core/a.md": PAGE,
        "core/b.md": b"\xff\xfe\xff",
        "core/c.md": b"\x00",
    }
    assert [rule for _, rule in rules_of(base, files)] == ["not-text", "not-text"]
