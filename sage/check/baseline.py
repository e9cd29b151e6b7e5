"""Findings that a team knows of already: a file of them, so that only new ones fail a check.

A finding is known by its page, its rule and its words, not by its line: text that is added above
makes none of them new. The same finding twice on a page is known twice.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sage.atomic import read_bytes, replace_bytes
from sage.check.rules import SAFETY
from sage.documents.problems import Problem
from sage.errors import ConfigError

VERSION = 1

Known = Counter[tuple[str, str, str]]


def read_baseline(path: Path) -> Known:
    """The findings of a file.

    Raises:
        ConfigError: there is none, or it is no file of findings.
    """
    data = read_bytes(path)
    if data is None:
        raise ConfigError(f"{path} is not there; write it with: sage check --write-baseline {path}")
    try:
        rows = json.loads(data)["findings"]
        return Counter({(str(p), str(rule), str(words)): int(n) for p, rule, words, n in rows})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not a baseline; write it again with: sage check --write-baseline {path}"
        ) from error


def write_baseline(path: Path, problems: Iterable[Problem], root: Path) -> int:
    """Write the findings of a check to a file and return how many there are.

    What is about safety is left out: it is never an old story.

    Raises:
        ConfigError: it cannot be written.
    """
    counted = Counter(map(_key, (one for one in problems if one.rule not in SAFETY)))
    rows = [[*key, number] for key, number in sorted(counted.items())]
    lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    text = f'{{"version": {VERSION}, "findings": [\n{lines}\n]}}\n'
    below = root if path.is_relative_to(root) else None
    replace_bytes(path, read_bytes(path, below), text.encode(), below)
    return sum(counted.values())


def without_known(problems: Iterable[Problem], known: Known) -> list[Problem]:
    """The problems that are not in a baseline."""
    left = Counter(known)
    new = []
    for problem in problems:
        key = _key(problem)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(problem)
    return new


def _key(problem: Problem) -> tuple[str, str, str]:
    # What is suggested depends on the other pages: a new one would make old findings new.
    return (problem.path, problem.rule, problem.message.partition("; did you mean ")[0])
