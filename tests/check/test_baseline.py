"""Findings known before do not fail; new ones do."""

from pathlib import Path

import pytest

from sage.check.baseline import read_baseline, write_baseline
from sage.check.run import check_knowledge, only_new
from sage.errors import ConfigError
from tests.conftest import Base
from tests.findings import TODAY, checked

PAGE = "# Page\n\nSee [a](gone.md).\n"


def test_what_is_known_is_not_reported_again_wherever_it_has_moved(base: Base) -> None:
    file = base.root / "known.json"
    assert write_baseline(file, checked(base, {"core/page.md": PAGE}).problems, base.root) == 1
    moved = PAGE.replace("\n\n", "\n\nNew words.\n\n\n")
    report = only_new(checked(base, {"core/page.md": moved}), read_baseline(file))
    assert (report.problems, report.known) == ((), 1)


def test_what_is_new_is_reported_also_when_it_is_the_same_again(base: Base) -> None:
    file = base.root / "known.json"
    write_baseline(file, checked(base, {"core/page.md": PAGE}).problems, base.root)
    texts = {"core/page.md": PAGE + "\nAnd [a](gone.md).\n", "core/b.md": "# B\n\n[x](none.md)\n"}
    report = only_new(checked(base, texts), read_baseline(file))
    assert [(one.path, one.rule) for one in report.problems] == [
        (".knowledge/core/b.md", "dead-link"),
        (".knowledge/core/page.md", "dead-link"),
    ]


def test_nothing_about_safety_is_ever_known(base: Base) -> None:
    file = base.root / "known.json"
    report = checked(base, {"core/page.md": "# P\n\nT. password='Tr0ub4dor&3x'\n"})
    assert [one.rule for one in report.problems] == ["secret"]
    assert write_baseline(file, report.problems, base.root) == 0


@pytest.mark.parametrize("text", [None, "", "[]", '{"findings": 5}', '{"findings": [["a"]]}', "["])
def test_a_file_that_is_no_baseline_says_how_to_write_one(base: Base, text: str | None) -> None:
    file = base.root / "known.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match="--write-baseline"):
        read_baseline(file)


def test_a_baseline_is_not_written_through_a_link_of_the_repository(
    base: Base, tmp_path: Path
) -> None:
    target = tmp_path / "theirs"
    target.write_text("theirs")
    (base.root / "known.json").symlink_to(target)
    with pytest.raises(ConfigError, match="is a link to"):
        write_baseline(base.root / "known.json", [], base.root)
    assert target.read_text() == "theirs"


def test_layers_without_a_page_and_unknown_languages_are_found(base: Base) -> None:
    base.path("practices").mkdir()
    base.write({"core/a.md": "---\nlanguages: [pyton, python, c++20, any]\n---\n# A\n\nT.\n"})
    found = {one.rule: one.message for one in check_knowledge(base.settings(), TODAY).problems}
    assert found["empty-layer"] == "the layer practices has no page"
    assert (
        "'pyton' is not a language that SAGE knows; did you mean python?"
        in found["unknown-language"]
    )
