"""`sage check`: every rule over every page, without what the writers asked to let pass."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from sage.check.age import check_age
from sage.check.baseline import Known, without_known
from sage.check.credentials import check_secrets
from sage.check.hidden_text import check_characters, check_instructions
from sage.check.links import check_links, check_paths
from sage.check.pages import Base, CheckedPage, read_base
from sage.check.rules import LEVELS, SAFETY, rules
from sage.check.scopes import check_scopes
from sage.check.structure import (
    check_case,
    check_empty,
    check_front_matter,
    check_headings,
    check_layers,
    check_names,
    check_sizes,
    check_superseded,
    check_title,
)
from sage.check.suppressions import (
    Ignored,
    Suppressions,
    check_ignored,
    ignored_in,
)
from sage.documents.problems import Level, Problem
from sage.paths import CONFIG_FILE, KNOWLEDGE_DIR
from sage.settings import CheckSettings, Settings
from sage.token_counter import TokenCounter

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
Further = Callable[[Base, TokenCounter], Iterable[Problem]]
_CONFIG_PATH = f"{KNOWLEDGE_DIR}/{CONFIG_FILE}"
_BASE_RULES = (check_names, check_case, check_layers, check_empty, check_superseded, check_scopes)


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found, by path and line."""

    problems: tuple[Problem, ...]
    pages: int

    known: int = 0
    """Problems that a baseline holds, which are not among them."""

    def count(self, level: Level) -> int:
        """The number of problems of a level."""
        return sum(problem.level == level for problem in self.problems)

    def at_least(self, level: Level) -> tuple[Problem, ...]:
        """The problems of a level and above."""
        least = LEVELS.index(level)
        return tuple(p for p in self.problems if LEVELS.index(p.level) >= least)


def only_new(report: Report, baseline: Known) -> Report:
    """A report without the problems that a baseline holds."""
    new = tuple(without_known(report.problems, baseline))
    return Report(new, report.pages, len(report.problems) - len(new))


def check_knowledge(settings: Settings, today: date, further: Further | None = None) -> Report:
    """Look for everything that is wrong with a knowledge base.

    Args:
        further: finds what is wrong with files that are made from the pages.
    """
    base = read_base(settings)
    counter = TokenCounter()
    found = list(_found(base, counter, settings.check, today))
    found += further(base, counter) if further else ()
    ignored = {page.path: ignored_in(page) for page in base.pages}
    everywhere = Ignored(frozenset(settings.check.ignore), 0, 0)
    kept_rules = frozenset() if settings.check.ignore_safety else SAFETY
    for path, parts in {_CONFIG_PATH: [everywhere], **ignored}.items():
        found += check_ignored(path, parts, rules(), kept_rules)
    passes = {
        path: Suppressions([everywhere, *parts], kept_rules) for path, parts in ignored.items()
    }
    elsewhere = Suppressions([everywhere], kept_rules)
    kept = [
        problem for problem in found if not passes.get(problem.path, elsewhere).let_pass(problem)
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


def _found_in_page(page: CheckedPage, base: Base) -> Iterator[Problem]:
    for check in _PAGE_RULES:
        yield from check(page, base)
