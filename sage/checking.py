"""`sage check`: every rule over every page, without what the writers asked to let pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from sage.checks_age import check_age
from sage.checks_links import check_links, check_paths
from sage.checks_pages import (
    check_case,
    check_front_matter,
    check_headings,
    check_layers,
    check_names,
    check_sizes,
    check_superseded,
    check_title,
)
from sage.checks_safety import check_characters, check_instructions
from sage.checks_secrets import check_secrets
from sage.ignoring import (
    Ignored,
    check_ignored,
    ignored_in,
    is_ignored,
)
from sage.pages import Base, Page, read_base
from sage.places import KNOWLEDGE_DIR
from sage.problems import Level, Problem
from sage.rules import LEVELS, rules
from sage.settings import CONFIG_FILE, CheckSettings, Settings
from sage.tokens import TokenCounter

_PAGE_RULES = (
    check_links,
    check_paths,
    check_front_matter,
    check_title,
    check_headings,
    check_secrets,
    check_characters,
    check_instructions,
)
_CONFIG_PATH = f"{KNOWLEDGE_DIR}/{CONFIG_FILE}"
_BASE_RULES = (check_names, check_case, check_layers, check_superseded)


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found, by path and line."""

    problems: tuple[Problem, ...]
    pages: int

    def count(self, level: Level) -> int:
        """The number of problems of a level."""
        return sum(problem.level == level for problem in self.problems)

    def at_least(self, level: Level) -> tuple[Problem, ...]:
        """The problems of a level and above."""
        least = LEVELS.index(level)
        return tuple(p for p in self.problems if LEVELS.index(p.level) >= least)


def check_knowledge(settings: Settings, today: date) -> Report:
    """Look for everything that is wrong with a knowledge base."""
    base = read_base(settings)
    counter = TokenCounter(settings.encoding)
    found = list(_found(base, counter, settings.check, today))
    ignored = {page.path: ignored_in(page) for page in base.pages}
    everywhere = Ignored(frozenset(settings.check.ignore), 0, 0)
    for path, parts in {_CONFIG_PATH: [everywhere], **ignored}.items():
        found += check_ignored(path, parts, rules())
    kept = [
        problem
        for problem in found
        if not is_ignored(problem, [everywhere, *ignored.get(problem.path, [])])
    ]
    kept.sort(key=lambda problem: (problem.path, problem.line, problem.rule, problem.message))
    return Report(tuple(dict.fromkeys(kept)), len(base.pages))


def _found(
    base: Base, counter: TokenCounter, wanted: CheckSettings, today: date
) -> Iterator[Problem]:
    yield from base.problems
    for page in base.pages:
        yield from _found_in_page(page, base)
        yield from check_sizes(page, counter, wanted)
    for check in _BASE_RULES:
        yield from check(base)
    if wanted.stale_months:
        yield from check_age(base, wanted.stale_months, today)


def _found_in_page(page: Page, base: Base) -> Iterator[Problem]:
    for check in _PAGE_RULES:
        yield from check(page, base)
