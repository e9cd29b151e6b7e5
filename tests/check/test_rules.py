"""Every rule that anything can report has its words."""

import re
from pathlib import Path

import pytest

import sage
from sage.check.rules import LEVELS, level_named, rules

REPORTING = re.compile(
    r"(?:Problem\(\s*[\w.]+,|leave_out\(\s*(?:path|full|f\"[^\"]*\"),)\s*\"([a-z-]+)\""
)


def test_every_rule_that_a_module_reports_is_known() -> None:
    named = {
        name
        for module in Path(sage.__file__).parent.rglob("*.py")
        for name in REPORTING.findall(module.read_text("utf-8"))
    }
    assert {"hidden", "too-large", "front-matter", "not-text"} <= named <= set(rules())


def test_every_rule_says_what_it_is_and_how_to_mend_it() -> None:
    for name, rule in rules().items():
        assert name == rule.name
        assert rule.level in LEVELS
        assert rule.about
        assert rule.fix
        assert not rule.fix.endswith(".")


def test_levels_are_named() -> None:
    assert [level_named(name) for name in ("note", "warning", "error")] == list(LEVELS)
    with pytest.raises(ValueError):
        level_named("fatal")
