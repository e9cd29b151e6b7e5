"""Globs of front matter against the paths of files."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.front_matter import split_front_matter
from sage.documents.scopes import matching_glob, split_globs


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "app/orders/models.py"),
        ("Dockerfile", "deploy/Dockerfile"),
        ("src/**", "src/a/b/c.ts"),
        ("src/**/*.ts", "src/a.ts"),
        ("src/**/*.ts", "src/a/b/c.ts"),
        ("**/*.{ts,tsx}", "web/List.tsx"),
        ("{app,lib}/**/test_*.py", "lib/deep/test_orders.py"),
        ("src/orders", "src/orders/models.py"),
        ("src/orders/", "src/orders/models.py"),
        ("./src/*.go", "src/main.go"),
        ("/src/*.go", "src/main.go"),
        ("db/V[0-9]*__*.sql", "db/V12__orders.sql"),
        ("[!.]*.md", "docs/readme.md"),
        ("**", "anything/at.all"),
        ("a**b.py", "src/axxb.py"),
        ("src\\api\\*.cs", "src/api/Orders.cs"),
        ("docs/*.md", "docs\\a.md"),
    ],
)
def test_a_file_in_the_scope_is_found(glob: str, path: str) -> None:
    assert matching_glob([glob], path) == glob


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("src/*.ts", "src/a/b.ts"),
        ("*.py", "app/models.pyc"),
        ("src/**/*.ts", "test/src/a.ts"),
        ("*.ts", "ts"),
        ("?.py", "ab.py"),
        ("[a-c].py", "d.py"),
        ("", "a"),
        ("a/*", ""),
        ("**", "../outside.py"),
        ("x" * 300, "x" * 300),
    ],
)
def test_a_file_outside_is_not(glob: str, path: str) -> None:
    assert matching_glob([glob], path) == ""


def test_the_first_glob_that_holds_the_file_is_named() -> None:
    assert matching_glob(["*.go", "app/**", "*.py"], "app/a.py") == "app/**"


def test_one_line_may_hold_several_globs() -> None:
    assert split_globs("src/**, *.{ts,tsx},,lib/*.js ") == ["src/**", "*.{ts,tsx}", "lib/*.js"]


@given(st.text("ab*?.", min_size=1, max_size=12), st.text("ab.", min_size=1, max_size=12))
def test_a_name_is_matched_as_shells_do(glob: str, name: str) -> None:
    if name in (".", "..") or glob in (".", "..") or set(glob) == {"*"}:
        return
    expected = fnmatch.fnmatchcase(name, glob)
    assert bool(matching_glob([glob], name)) == expected


@pytest.mark.parametrize(
    "glob",
    ["*a" * 100 + "b", "**/" * 60 + "x", "{a,b}" * 40, "[" * 200, "?*" * 120, "{" * 250],
)
def test_a_hostile_glob_ends_without_a_match(glob: str) -> None:
    assert matching_glob([glob] * 64, "/".join(["a" * 20] * 45)) == ""


@pytest.mark.parametrize("key", ["applies_to", "paths", "globs", "applyTo"])
def test_front_matter_names_the_scope_in_several_ways(key: str) -> None:
    listed = split_front_matter(f'---\n{key}: ["src/**", "*.py"]\n---\n', "a.md").meta
    line = split_front_matter(f'---\n{key}: "src/**,*.py"\n---\n', "a.md").meta
    assert listed.applies_to == line.applies_to == ("src/**", "*.py")


def test_a_scope_that_is_no_list_is_a_problem() -> None:
    split = split_front_matter("---\napplies_to: {a: b}\n---\n", "a.md")
    assert split.meta.applies_to == ()
    assert "applies_to: expected a list of globs" in split.problems[0].message
