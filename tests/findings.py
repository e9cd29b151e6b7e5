"""What `sage check` finds in a few files, for the tests of its rules."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from sage.check.run import Report, check_knowledge
from tests.conftest import Base

TODAY = date(2026, 6, 15)


def checked(base: Base, files: Mapping[str, str | bytes], **flags: Any) -> Report:
    """Check a knowledge base of these files; every layer has a folder, which may be empty."""
    for layer in ("core", "guidelines", "frameworks", "practices"):
        base.path(layer).mkdir(exist_ok=True)
    base.write(files)
    report = check_knowledge(base.settings(**flags), TODAY)
    return replace(report, problems=tuple(p for p in report.problems if p.rule != "empty-layer"))


def found(base: Base, rule: str, text: str, more: Mapping[str, str] | None = None) -> list[int]:
    """The lines of one page, `core/page.md`, on which a rule is broken."""
    report = checked(base, {"core/page.md": text, **(more or {})})
    return [
        problem.line
        for problem in report.problems
        if problem.rule == rule and problem.path == ".knowledge/core/page.md"
    ]
