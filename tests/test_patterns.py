import pytest

from sage.errors import ConfigError
from sage.patterns import MAX_STARS, ignore_rule


def test_patterns_mean_what_they_mean_in_gitignore() -> None:
    ignores = ignore_rule(("drafts/", "*.tmp.md", "!keep.tmp.md", "**/old/**/*.md"))
    assert ignores("core/drafts/a.md")
    assert ignores("core/a.tmp.md")
    assert not ignores("core/keep.tmp.md")
    assert ignores("core/old/a/b/c.md")
    assert not ignores("core/a.md")


def test_pattern_that_is_none_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"ignore: .*'!'.* as in .gitignore"):
        ignore_rule(("!",))


def test_pattern_that_would_take_for_ever_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than 3 stars"):
        ignore_rule(("a*" * (MAX_STARS + 1) + "b",))
    assert not ignore_rule(("a*" * MAX_STARS + "b",))("core/" + "a" * 250)


def test_stars_that_stand_for_whole_names_are_not_counted() -> None:
    ignores = ignore_rule(("/a/*/*/*/*/*.md",))
    assert ignores("a/b/c/d/e/f.md")
    assert not ignores("a/b/c/d/f.md")
