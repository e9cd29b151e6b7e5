"""The kinds of section, and the sections that only point elsewhere."""

import pytest

from sage.context.section_kinds import is_knowledge, kinds_of, word_pattern
from tests.contexts import document


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Core principles", "principles"),
        ("Our values", "principles"),
        ("Naming conventions", "guidelines"),
        ("Repository pattern", "patterns"),
        ("Before it is merged", "checklists"),
        ("Common pitfalls", "pitfalls"),
        ("Anti-Patterns", "pitfalls"),
        ("Troubleshooting", "diagnosis"),
        ("Comment on a pull request", "review"),
        ("Trade-offs", "decisions"),
        ("Roll out in steps", "plans"),
        ("Docstrings", "writing"),
        ("The template", "templates"),
        ("检查清单", "checklists"),
        ("Overview", "background"),
    ],
)
def test_a_heading_shows_its_kind(heading: str, kind: str) -> None:
    assert kind in kinds_of(heading)


def test_words_match_whole_words_and_their_endings() -> None:
    assert kinds_of("Logging in") >= {"diagnosis"}
    assert "diagnosis" not in kinds_of("Login and catalogue")
    assert kinds_of("Measure before you optimise") == frozenset()
    assert kinds_of("Default values") == frozenset()
    assert word_pattern(["root cause"]).search("the root-cause")
    assert not word_pattern([]).search("anything")


def knowledge(text: str) -> bool:
    page = document("practices/a.md", f"# A\n\n{text}")
    section = page.sections[-1]
    source = page.text(section)
    return is_knowledge(section, source, source.partition("\n")[2])


@pytest.mark.parametrize(
    "text",
    [
        "## Table of contents\n\n- [One](#one)\n- [Two](#two)\n",
        "## Related\n\n- `.knowledge/core/a.md` - the principles\n- [b](b.md)\n",
        "## Pages\n\n| File | For |\n|---|---|\n| `a.md` | one |\n| `b.md` | two |\n| `c/` | x |\n",
        "## Pages\n\n| File |\n|---|\n| `a.md` |\n| `b.md` |\n| `c.md` |\n| more |\n",
        "## Empty\n",
        "## Hidden\n\n<!-- not yet\nwritten -->\n",
        "## Rule\n\n---\n\n***\n",
    ],
)
def test_what_only_points_elsewhere_is_no_knowledge(text: str) -> None:
    assert not knowledge(text)


@pytest.mark.parametrize(
    "text",
    [
        "## Checklist\n\n- [ ] Tests pass\n- [x] Docs are written\n",
        "## Contents of a release\n\nA tag, notes and an image.\n",
        "## Modules\n\n| File | Rule |\n|---|---|\n| `a.py` | never imports b |\n",
        "## Rules\n\n| Rule | See |\n|---|---|\n| one | `a.md` |\n| two | - |\n| three | - |\n",
        "## Table\n\nFirst this.\n\nThen that.\n\n| a |\n|---|\n| `a.md` |\n| `b.md` |\n",
        "## Code\n\n```python\nprint(1)\n```\n",
    ],
)
def test_short_knowledge_is_knowledge(text: str) -> None:
    assert knowledge(text)


def test_blank_lines_without_end_are_looked_at_once() -> None:
    assert knowledge("## Blank\n" + "\n" * 200_000 + "It says something.\n")
