import random
import subprocess
from pathlib import Path

import pytest

from sage.documents.ignore_patterns import MAX_PATTERN, MAX_PATTERNS, ignore_rule
from sage.errors import ConfigError
from tests.adversary import processor_seconds


def test_patterns_mean_what_they_mean_in_gitignore() -> None:
    ignores = ignore_rule(("drafts/", "*.tmp.md", "!keep.tmp.md", "**/old/**/*.md"))
    assert ignores("core/drafts/a.md")
    assert ignores("core/a.tmp.md")
    assert not ignores("core/keep.tmp.md")
    assert ignores("core/old/a/b/c.md")
    assert not ignores("core/a.md")


def words(chance: random.Random) -> str:
    pieces = [
        "a",
        "b",
        "ab",
        "*",
        "?",
        "[ab]",
        "[!a]",
        "**",
        "a*",
        "*b",
        "\\*",
        "c.md",
        "*.md",
        ".",
    ]
    return "".join(chance.choices(pieces, k=chance.choice([1, 1, 2, 3])))


def patterns(chance: random.Random) -> list[str]:
    lines = []
    for _ in range(chance.randint(1, 4)):
        text = "/".join(words(chance) for _ in range(chance.choice([1, 1, 2, 3])))
        before = chance.choice(["", "", "", "/", "!", "**/"])
        lines.append(before + text + chance.choice(["", "", "", "/", "/**"]))
    return lines


def test_random_patterns_leave_out_what_git_leaves_out(tmp_path: Path) -> None:
    chance = random.Random(7)
    names = ["a", "b", "ab", "ba", "a.md", "c.md", "ab.md", "*", "aXb"]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    folders = [chance.choices(names[:4], k=chance.randint(0, 3)) for _ in range(150)]
    paths = {"/".join([*folder, chance.choice(names)]) for folder in folders}
    # A name is a file or a folder, not both.
    files = sorted(p for p in paths if not any(q.startswith(f"{p}/") for q in paths))
    for _ in range(60):
        lines = patterns(chance)
        (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
        told = subprocess.run(
            ["git", "check-ignore", "--no-index", "--stdin", "-z"],
            cwd=tmp_path,
            input="\0".join(files),
            capture_output=True,
            text=True,
            check=False,
        )
        ignores = ignore_rule(tuple(lines))
        assert [path for path in files if ignores(path)] == told.stdout.split("\0")[:-1], lines


@pytest.mark.parametrize("line", ["!", "/", "//", "[z-a]", "x" * (MAX_PATTERN + 1)])
def test_pattern_that_is_none_is_a_configuration_error(line: str) -> None:
    with pytest.raises(ConfigError, match=r"ignore: .* as in .gitignore"):
        ignore_rule((line,))


def test_too_many_patterns_are_refused() -> None:
    with pytest.raises(ConfigError, match=f"at most {MAX_PATTERNS} are allowed"):
        ignore_rule(("*.md",) * (MAX_PATTERNS + 1))


@pytest.mark.parametrize("piece", ["a*", "*a", "a*a*b*", "?*", "[a]*", "**/a*", "a*/**/"])
def test_the_worst_patterns_and_names_take_little_time(piece: str) -> None:
    line = (piece * MAX_PATTERN)[: MAX_PATTERN - 2] + "b"
    ignores = ignore_rule((line.replace("//", "/"),) * MAX_PATTERNS)
    names = [f"core/{'a' * (200 + n)}/{'a' * 250}" for n in range(20)]
    assert processor_seconds(lambda: [ignores(name) for name in names], 20) < 5


def test_stars_that_stand_for_whole_names_are_matched_one_by_one() -> None:
    ignores = ignore_rule(("/a/*/*/*/*/*.md",))
    assert ignores("a/b/c/d/e/f.md")
    assert not ignores("a/b/c/d/f.md")
