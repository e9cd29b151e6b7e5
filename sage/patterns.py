"""pathspec's home: the patterns of `ignore`, written as in `.gitignore`."""

import re
from collections.abc import Callable

from sage.errors import ConfigError

# pathspec's expressions try every way to divide a name among the stars: one star more multiplies
# the time by the length of the name, to hours for seven, and nothing else runs meanwhile.
MAX_STARS = 3


def ignore_rule(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a path below `.knowledge` matches one of the patterns.

    Raises:
        ConfigError: a pattern is none, or has too many stars.
    """
    if not patterns:
        return lambda _: False
    for pattern in patterns:
        if _stars(pattern) > MAX_STARS:
            raise ConfigError(f"ignore: {pattern!r} has more than {MAX_STARS} stars; divide it")
    # Imported only where patterns are set: most bases have none.
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise ConfigError(f"ignore: {error}; write it as in .gitignore") from error
    return lambda path: spec.match_file(path)


def _stars(pattern: str) -> int:
    """How many stars can share a name in more than one way; one that is a whole name cannot."""
    return sum(len(re.findall(r"\*+", part)) for part in pattern.split("/") if part != "*")
