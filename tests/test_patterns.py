"""No regular expression of the package can be made slow, whatever text it meets.

Every pattern is found: those compiled when a module is imported by watching the import, those
inside functions by reading the code. Each is tried with texts made from its own structure.
"""

import ast
import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sage.check.credentials import check_secrets
from sage.check.hidden_text import check_characters, check_instructions
from sage.check.links import check_links, check_paths
from sage.check.masking import mask
from sage.check.pages import Base, CheckedPage
from sage.check.suppressions import Suppressions, ignored_in
from sage.documents.document import parse_document
from sage.documents.languages import asked_languages, canonical
from sage.errors import did_you_mean
from sage.http.json_logs import redacted
from sage.sanitize import clean
from sage.settings import Settings
from sage.token_counter import TokenCounter
from sage.values import shown
from tests.adversary import inputs, processor_seconds

PACKAGE = Path(__file__).parent.parent / "sage"
SIZE = 8_000
SLOW_SECONDS = 0.012
"""A linear pattern needs about a hundredth of this for a text of that size, a square one more."""
MOST_SECONDS = 0.05
MOST_SECONDS_FOR_A_PAGE = 0.5
MOST_GROWTH = 12.0
"""For a text four times as long: four if linear, sixteen if square."""
LIMIT_SECONDS = 2.0
METHODS = {"match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"}
FROM_THE_START = {"match", "fullmatch"}

# Patterns that a function puts together: the parts come from code, and these are examples of them.
MADE_IN_FUNCTIONS = {
    "check.masking._fence_end": [r"\A[ \t>]*`{3,}[ \t]*[\r\n]*\Z"],
    "cli.terminal.print_marked": [r"\bretr\w*"],
    "context.section_kinds.word_pattern": [r"(?<![^\W\d_])how\ to|(?<![^\W\d_])step"],
    "documents.exported._closing": [r" {0,3}````*"],
    "documents.ignore_patterns._part": [r"\Aa(?>.*?b)(?>.*?c.)[ab].*d\Z"],
    "notes.front_matter_edit._toml_edited": [
        r"(?m)^[ \t]*status[ \t]*=[ \t]*(?P<value>\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s#]+)"
    ],
    "documents.front_matter._line": [r"(?<![^\r\n])[\"']?title[\"']?\s*:"],
}

WATCH = """
import importlib, json, pkgutil, re, sys
seen, missing = [], []
compile = re.compile
def note(pattern, flags=0):
    made = compile(pattern, flags)
    module = sys._getframe(1).f_globals.get("__name__", "")
    if module.startswith("sage"):
        is_text = isinstance(made.pattern, str)
        text = made.pattern if is_text else made.pattern.decode("latin-1")
        flags = made.flags if is_text else made.flags | re.ASCII
        seen.append([module.removeprefix("sage."), text, int(flags)])
    return made
re.compile = note
import sage
for module in pkgutil.walk_packages(sage.__path__, "sage."):
    if module.name != "sage.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.startswith("sage"):
                raise
            missing.append(module.name.removeprefix("sage."))
print(json.dumps([seen, missing]))
"""


class Found(NamedTuple):
    """A pattern, where it is and how it is used."""

    where: str
    pattern: str
    flags: int
    methods: frozenset[str]

    def __str__(self) -> str:
        return f"{self.where}:{self.pattern[:40]!r}"


@functools.cache
def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / (module.replace(".", "/") + ".py")).read_text("utf-8"))


@functools.cache
def modules() -> list[str]:
    return [
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def calls_of_re(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in METHODS | {"compile"}
        ):
            yield node.func.attr, node


def compiled_at_import() -> list[Found]:
    ended = subprocess.run(
        [sys.executable, "-c", WATCH],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    seen, missing = json.loads(ended.stdout)
    for module in missing:  # an extra that is not installed here
        assert not list(calls_of_re(tree_of(module))), f"{module} cannot be imported and compiles"
    return [
        Found(module, pattern, flags, used_with(module, pattern)) for module, pattern, flags in seen
    ]


def used_with(module: str, pattern: str) -> frozenset[str]:
    """The methods called on a pattern; all of them where it is handed on to others."""
    loaded = sys.modules.get(f"sage.{module}") or __import__(f"sage.{module}", fromlist=["x"])
    names = {
        name
        for name, value in vars(loaded).items()
        if isinstance(value, re.Pattern) and text_of(value) == pattern
    }
    called: set[str] = set()
    loads = 0
    for node in (node for user in users_of(module, names) for node in ast.walk(tree_of(user))):
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            loads += 1
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names
        ):
            loads -= 1
            called.add(node.attr)
    return frozenset(called & METHODS) if names and called and not loads else frozenset(METHODS)


def text_of(pattern: re.Pattern[Any]) -> str:
    text: str | bytes = pattern.pattern
    return text if isinstance(text, str) else text.decode("latin-1")


def users_of(module: str, names: set[str]) -> Iterator[str]:
    """The modules that use names of a module: itself, and those that import one of them."""
    for other in modules():
        if other == module or names & imported_by(other).get(f"sage.{module}", set()):
            yield other


@functools.cache
def imported_by(module: str) -> dict[str, set[str]]:
    """The names that a module imports, by the module they are from."""
    imported: dict[str, set[str]] = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return imported


def made_in_functions() -> list[Found]:
    found: list[Found] = []
    for module in modules():
        for function in ast.walk(tree_of(module)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            where = f"{module}.{function.name}"
            for method, call in calls_of_re(function):
                methods = frozenset(METHODS if method == "compile" else {method})
                if isinstance(call.args[0], ast.Constant):
                    found.append(Found(where, str(call.args[0].value), 0, methods))
                else:
                    found += [Found(where, one, 0, methods) for one in examples(where)]
    return found


def examples(where: str) -> list[str]:
    assert where in MADE_IN_FUNCTIONS, (
        f"{where} puts a pattern together: give examples of it in MADE_IN_FUNCTIONS"
    )
    return MADE_IN_FUNCTIONS[where]


ALL = sorted({*compiled_at_import(), *made_in_functions()}, key=lambda one: one[:3])


def runner(found: Found) -> tuple[re.Pattern[str], Callable[[str], object]]:
    pattern = re.compile(found.pattern, found.flags)
    if found.methods <= FROM_THE_START:
        return pattern, pattern.fullmatch if found.methods == {"fullmatch"} else pattern.match
    return pattern, lambda text: sum(1 for _ in pattern.finditer(text))


def grows_with_its_text(
    run: Callable[[str], object], short: str, long: str, most_seconds: float
) -> None:
    if measured(run, short) < SLOW_SECONDS:
        return
    few = min(measured(run, short) for _ in range(3))
    many = min(measured(run, long) for _ in range(2))
    told = f"{short[:60]!r}: {few:.3f} s for {len(short)}, {many:.3f} s for four times as many"
    assert many < MOST_GROWTH * max(few, SLOW_SECONDS), told
    assert few < most_seconds, told


def measured(run: Callable[[str], object], text: str) -> float:
    return processor_seconds(lambda: run(text), LIMIT_SECONDS)


@pytest.mark.parametrize("found", ALL, ids=str)
def test_a_pattern_takes_time_in_proportion_to_its_text(found: Found) -> None:
    pattern, run = runner(found)
    for short, long in zip(inputs(pattern, SIZE), inputs(pattern, 4 * SIZE), strict=True):
        grows_with_its_text(run, short, long, MOST_SECONDS)


def page(text: str) -> CheckedPage:
    return CheckedPage(parse_document(text, ".knowledge/core/a.md", "core"), text)


def base_of(one: CheckedPage) -> Base:
    return Base(Settings(Path("/nowhere"), Path("/nowhere")), (one,), (), ())


def check_whole_page(text: str) -> None:
    one = page(text)
    for check in (check_links, check_paths, check_secrets, check_characters, check_instructions):
        list(check(one, base_of(one)))
    Suppressions(ignored_in(one))
    len(one.anchors)


ATTACKS = {
    "jwt": "eyJ",
    "jwt-parts": "eyJ-",
    "dots": "a.",
    "bearer": "bearer ",
    "comment": "<!-- sage-ignore: ",
    "comments": "<!-- sage-ignore: secret -->\n",
    "comment-spaces": " ",
    "heading": " ",
    "headings": "> # a\n",
    "key": "a: -----BEGIN PRIVATE KEY-----\n",
    "key-lines": "-----BEGIN PRIVATE KEY-----\na: b\n",
    "string": "\x90",
    "string-text": "\x90a",
    "csi": "\x1b[",
    "brackets": "[",
    "link": "[a](",
    "links": "[a](b.md#c)\n",
    "ticks": "`a",
    "paths": "`./././a/b.md` ",
    "fences": "```\n",
    "quotes": "ignore all previous instructions ",
    "accents": "a\u0301\u0327",
    "hyphens": "-",
    "invisible": "a\u200b",
    "assignments": "password = ",
    "addresses": "://a:",
}
BEGINNINGS = {
    "comment-spaces": "<!-- sage-ignore:",
    "heading": "> # a",
    "hyphens": '---\nlanguages: ["a',
    "ticks": "`",
}
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "redacted": redacted,
    "canonical": canonical,
    "asked_languages": asked_languages,
    "clean": clean,
    "mask": mask,
    "parse_document": lambda text: parse_document(text, ".knowledge/core/a.md", "core"),
    "check": check_whole_page,
    "did_you_mean": lambda text: did_you_mean(text, ["layers", "ignore", "synonyms"]),
    "shown": lambda text: shown(json.dumps(text)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_time_in_proportion_to_its_text(name: str) -> None:
    for kind, attack in ATTACKS.items():
        short, long = (
            BEGINNINGS.get(kind, "") + attack * (size // len(attack)) + "x"
            for size in (SIZE, 4 * SIZE)
        )
        grows_with_its_text(FUNCTIONS[name], short, long, MOST_SECONDS_FOR_A_PAGE)


def test_counting_takes_time_in_proportion_to_the_text(counter: TokenCounter) -> None:
    counter.count("loaded")
    for attack in (*ATTACKS.values(), "\n", " \n", "1", "'", "'ll", "\u3000", "漢", "\ud800"):
        short, long = (attack * (size // len(attack)) for size in (SIZE, 4 * SIZE))
        grows_with_its_text(counter.count, f"a{short}a", f"a{long}a", MOST_SECONDS_FOR_A_PAGE)


def test_the_test_finds_slow_patterns() -> None:
    slow = [r"(a+)+b", r"\s*x?\s*$", r"eyJ[\w-]+\.[\w-]+", r"<!--\s*(?P<r>[\w\s,-]*?)\s*-->"]
    for text in slow:
        with pytest.raises(AssertionError, match="four times"):
            test_a_pattern_takes_time_in_proportion_to_its_text(
                Found("", text, 0, frozenset(METHODS))
            )


def test_every_module_that_uses_patterns_is_seen() -> None:
    users = {module for module in modules() if any(True for _ in calls_of_re(tree_of(module)))}
    assert users == {one.where for one in ALL if one.where in users} | {
        one.where.rpartition(".")[0] for one in ALL if one.where not in users
    }
