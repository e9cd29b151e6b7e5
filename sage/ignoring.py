"""What a writer has told `sage check` to let pass: comments for a line, a list for a page.

`<!-- sage-ignore: rule -->` stands for its own line, or alone on a line for the next line or the
code block that begins there. `sage_ignore: [rule]` in front matter stands for the whole page,
`check: {ignore: [rule]}` in `sage.yaml` for all pages.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sage.checks_pages import IGNORE_KEY
from sage.pages import Page
from sage.problems import Problem
from sage.rules import UNKNOWN_RULE, Rule
from sage.schema import nearest

_COMMENT = re.compile(r"<!--\s*sage-ignore:\s*(?P<rules>[\w\s,-]*?)\s*-->")


class Ignored(NamedTuple):
    """Rules and the lines they do not apply to; line 0 stands for the whole page."""

    rules: frozenset[str]
    first: int
    last: int


def ignored_in(page: Page) -> list[Ignored]:
    """Everything that a page asks to be let pass."""
    found = [
        _lines(page, match, comment.start)
        for comment in page.masked.comments
        if (match := _COMMENT.fullmatch(comment.text))
    ]
    named = page.document.meta.extra.get(IGNORE_KEY)
    if named is not None:
        words = named if isinstance(named, list) else str(named).split(",")
        found.append(Ignored(frozenset(str(word).strip() for word in words), 0, 0))
    return found


def is_ignored(problem: Problem, ignored: list[Ignored]) -> bool:
    """Whether a page asks to let a problem pass."""
    return any(
        problem.rule in part.rules and (not part.first or part.first <= problem.line <= part.last)
        for part in ignored
    )


def check_ignored(
    path: str, ignored: list[Ignored], known: Mapping[str, Rule]
) -> Iterator[Problem]:
    """Names of rules that do not exist, so that nothing is let pass by them."""
    for part in ignored:
        for name in sorted(part.rules.difference(known)):
            message = f"there is no rule {name!r} to ignore{nearest(name, known)}"
            yield UNKNOWN_RULE.problem(path, message, part.first or 1)


def _lines(page: Page, match: re.Match[str], start: int) -> Ignored:
    rules = frozenset(word for word in re.split(r"[\s,]+", match["rules"]) if word)
    line = page.line(start)
    if page.line_text(line).strip() != match.group().strip():
        return Ignored(rules, line, line)
    following = line + 1
    for fence in page.masked.fences:
        if page.line(fence.start) == following:
            return Ignored(rules, line, page.line(fence.start + len(fence.text) - 1))
    return Ignored(rules, line, following)
