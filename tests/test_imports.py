"""The house: data walks one way, imports never point back, and each library has one home."""

import ast
import functools
import graphlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Base

PACKAGE = Path(__file__).parent.parent / "sage"

# A module may import from its own row and from the rows above it, never from one below.
ROWS = {
    "ground": "__init__ answers bounds deadline errors forms jsontext languages later logs "
    "markdown masking memory privatefiles problems prose replacement schema scrub tomltext vault "
    "yamltext",
    "files": "places settings containment patterns files",
    "documents": "frontmatter documents tokens kinds",
    "library": "cache library topics addresses supersession",
    "search": "analysis postings index spelling vocabulary synonyms query concepts catalog worth "
    "indexing ranking phrases snippets explaining holdings changes asking finding searching "
    "evaluation",
    "context": "recipes cutting passages parts candidates relevance fitness tally packing reasons "
    "assembling context",
    "answers": "reading lookup status knowledge",
    "checks": "rules pages checks_age checks_links checks_pages checks_safety checks_secrets "
    "ignoring checking reports",
    "tools": "arguments calls prompts outputs tools desk notifications wire upkeep server stdio",
    "team": "access admission connections delivery doorkeeper exchange front health hosts limits "
    "metrics observing refusals scopes serving tracing usage visits http",
    "clients": "clients greeting jsonedit registration scaffold diagnosis",
    "commands": "console console_team cli_options cli_serve cli_server cli_team cli __main__",
}
HOMES = {
    "cachetools": "cache",
    "fastmcp": "server",
    "markdown_it": "markdown",
    "mcp": "exchange notifications observing server wire",
    "opentelemetry": "tracing",
    "pathspec": "patterns",
    "platformdirs": "places",
    "rich": "console console_team",
    "tiktoken": "tokens",
    "typer": "cli cli_options cli_serve cli_server cli_team",
    "uvicorn": "connections http",
    "whoosh": "index",
    "yaml": "yamltext",
}


@functools.cache
def imported(module: str) -> set[str]:
    """The full names of everything a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_modules(module: str) -> set[str]:
    """The modules of the package that a module imports."""
    parts = [name.split(".") for name in imported(module) if name.startswith("sage.")]
    return {part[1] if part[1] in MODULES else "__init__" for part in parts}


MODULES = {path.stem for path in PACKAGE.glob("*.py")}
PLACES = {module: row for row, modules in ROWS.items() for module in modules.split()}
GRAPH = {module: imported_modules(module) for module in MODULES}


def test_every_module_has_its_row() -> None:
    assert sorted(MODULES - PLACES.keys()) == [], "place these in ROWS"
    assert sorted(PLACES.keys() - MODULES) == [], "these are gone: take them out of ROWS"


def test_no_import_points_back() -> None:
    order = list(ROWS)
    upward = [
        f"{module} ({PLACES[module]}) imports {other} ({PLACES[other]})"
        for module, others in sorted(GRAPH.items())
        for other in sorted(others)
        if module in PLACES
        and other in PLACES
        and order.index(PLACES[other]) > order.index(PLACES[module])
    ]
    assert upward == []


def test_no_import_goes_in_a_circle() -> None:
    graphlib.TopologicalSorter(GRAPH).prepare()


@pytest.mark.parametrize("library", HOMES)
def test_library_is_imported_in_its_home_only(library: str) -> None:
    users = {
        module
        for module in MODULES
        if any(name.split(".")[0] == library for name in imported(module))
    }
    assert users <= set(HOMES[library].split())


def modules_after(base: Base, *arguments: str) -> set[str]:
    """What is imported once a command has run in a process of its own."""
    program = (
        "import atexit, sys\n"
        "from sage.cli import main\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=base.root,
        env={"PATH": os.environ["PATH"], **base.environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {name.split(".")[0] for name in ended.stderr.splitlines()}


def test_reading_a_page_imports_no_server_no_search_and_no_terminal(base: Base) -> None:
    base.write({"core/a.md": "# Alpha\n"})
    loaded = modules_after(base, "get", "core", "a")
    assert "tiktoken" in loaded
    assert loaded.isdisjoint({"fastmcp", "mcp", "whoosh", "rich", "uvicorn"})


def test_help_imports_nothing_that_reads_or_counts(base: Base) -> None:
    loaded = modules_after(base, "--version")
    assert loaded.isdisjoint({"fastmcp", "mcp", "whoosh", "tiktoken", "markdown_it", "yaml"})


def test_importing_the_package_does_no_work() -> None:
    program = "import sys, sage; sys.exit(any(name.startswith('sage.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
