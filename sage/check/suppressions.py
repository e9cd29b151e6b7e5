"""What a writer has told `sage check` to let pass: comments for a line, a list for a page.

`<!-- sage-ignore: rule -->` stands for its own line, or alone on a line for the next line or the
code block that begins there. `sage_ignore: [rule]` in front matter stands for the whole page,
`check: {ignore: [rule]}` in `sage.yaml` for all pages. The rules about safety are let pass only
where whoever runs the check allows it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sage.check.pages import CheckedPage
from sage.check.rules import IGNORED_SAFETY, SAFETY, UNKNOWN_RULE, Rule
from sage.check.structure import IGNORE_KEY
from sage.documents.problems import Problem
from sage.errors import did_you_mean
from sage.values import shown

_WORD = re.compile(r"[\w-]+")
_MARK = "sage-ignore:"


class Ignored(NamedTuple):
    """Rules and the lines they do not apply to; line 0 stands for the whole page."""

    rules: frozenset[str]
    first: int
    last: int


class Suppressions:
    """What is let pass on a page, ready to be asked for each of its problems."""

    def __init__(self, ignored: list[Ignored], kept: frozenset[str] = SAFETY) -> None:
        self._kept = kept
        self._everywhere: set[str] = set()
        self._lines: dict[int, set[str]] = {}
        for part in ignored:
            if not part.first:
                self._everywhere |= part.rules
            for line in range(part.first, part.last + 1) if part.first else ():
                self._lines.setdefault(line, set()).update(part.rules)

    def let_pass(self, problem: Problem) -> bool:
        """Whether a problem was asked to be let pass."""
        if problem.rule in self._kept:
            return False
        if problem.rule in self._everywhere:
            return True
        return problem.rule in self._lines.get(problem.line, ())


def ignored_in(page: CheckedPage) -> list[Ignored]:
    """Everything that a page asks to be let pass."""
    fences = {
        page.line(fence.start): page.line(fence.start + len(fence.text) - 1)
        for fence in page.masked.fences
    }
    found = []
    for comment in page.masked.comments:
        rules = _named_in(comment.text)
        if rules is not None:
            line = page.line(comment.start)
            last = line
            if page.line_text(line).strip() == comment.text.strip():
                last = fences.get(line + 1, line + 1)
            found.append(Ignored(rules, line, last))
    named = page.document.meta.extra.get(IGNORE_KEY)
    if named is not None:
        words = named if isinstance(named, list) else str(named).split(",")
        found.append(Ignored(frozenset(str(word).strip() for word in words), 0, 0))
    return found


def check_ignored(
    path: str, ignored: list[Ignored], known: Mapping[str, Rule], kept: frozenset[str] = SAFETY
) -> Iterator[Problem]:
    """Names of rules that do not exist or cannot be let pass, so that they have no effect."""
    for part in ignored:
        for name in sorted(part.rules & kept):
            yield IGNORED_SAFETY.problem(path, f"{name} cannot be ignored here", part.first or 1)
        for name in sorted(part.rules.difference(known)):
            message = f"there is no rule {shown(name)} to ignore{did_you_mean(name, known)}"
            yield UNKNOWN_RULE.problem(path, message, part.first or 1)


def _named_in(comment: str) -> frozenset[str] | None:
    """The rules that a comment names; None when it is an ordinary one."""
    text = comment.removeprefix("<!--").removesuffix("-->").strip()
    if not text.startswith(_MARK):
        return None
    words = text.removeprefix(_MARK).replace(",", " ").split()
    return frozenset(words) if all(map(_WORD.fullmatch, words)) else None
