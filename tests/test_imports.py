"""The house: data walks one way through the folders, and each library has one home.

The rows are the folders themselves. A root module that uses a folder stands on `context`: it is
the knowledge base that answers, or part of it; every other one is ground that all may use.
"""

import ast
import functools
import graphlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Base
from tests.processes import PATIENCE_SECONDS

PACKAGE = Path(__file__).parent.parent / "sage"

# A module may import from its own row and from the rows before it, never from one after.
ROWS = [
    "core",
    "documents",
    "terms",
    "search",
    "semantic",
    "context",
    "knowledge",
    "cluster",
    "check",
    "export",
    "hooks",
    "notes",
    "publish",
    "care",
    "page",
    "server",
    "access",
    "http",
    "install",
    "cli",
]
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
MOST_MODULES = 21
MOST_LINES = 430
HOMES = {
    "cachetools": "cache",
    "anyio": "http.mcp_endpoint server.mcp_server server.stdio_transport server.async_knowledge",
    "fastmcp": "server.mcp_server access.auth",
    "h11": "http.connections",
    "jinja2": "page.templating",
    "markupsafe": "page.templating page.highlighting page.reading_view",
    "markdown_it": "documents.markdown page.markdown_html",
    "mcp": "http.mcp_endpoint server.subscriptions http.metrics server.mcp_server "
    "server.stdio_transport",
    "mcp_types": "http.mcp_endpoint server.mcp_server server.stdio_transport server.subscriptions",
    "numpy": "semantic.encoder semantic.granite semantic.multilingual semantic.onnx_folder "
    "semantic.onnx_graph semantic.onnx_session semantic.vectors semantic.vector_file "
    "semantic.likeness semantic.page_vectors",
    "onnxruntime": "semantic.onnx_session",
    "opentelemetry": "http.tracing",
    "platformdirs": "paths",
    "pydantic": "server.stdio_transport",
    "rich": "cli.terminal",
    "starlette": "http.app http.entrance http.call_runner http.layer_servers http.mcp_endpoint "
    "http.request http.page_endpoint",
    "threadpoolctl": "semantic.encoder",
    "tiktoken": "token_counter",
    "tokenizers": "semantic.granite semantic.multilingual semantic.onnx_folder",
    "tomlkit": "install.toml_edit",
    "typer": "cli.main cli.help cli.options cli.page cli.ask cli.check cli.serve cli.team "
    "cli.setup cli.export cli.hooks cli.notes cli.likeness cli.publish cli.care",
    "uvicorn": "http.connections http.run",
    "whoosh": "terms.analysis terms.segment_writer",
    "yaml": "safe_yaml",
}


def name_of(path: Path) -> str:
    """A module's name below the package; a folder's own is the folder's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


@functools.cache
def imported(module: str) -> frozenset[str]:
    """The full names of everything a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def module_named(name: str) -> str:
    """The module of the package that a full name belongs to."""
    inner = name.removeprefix("sage.") if name != "sage" else "__init__"
    while inner not in MODULES:
        inner = inner.rpartition(".")[0] or "__init__"
    return inner


GRAPH = {
    module: {module_named(name) for name in imported(module) if name.split(".")[0] == "sage"}
    for module in MODULES
}


def folder_of(module: str) -> str:
    first = module.split(".")[0]
    return first if first in FOLDERS else "core"


def uses_a_folder(module: str) -> bool:
    """Whether a root module stands on the folders, itself or through another root module."""
    return folder_of(module) != "core" or any(map(uses_a_folder, GRAPH[module]))


def row_of(module: str) -> str:
    folder = folder_of(module)
    if folder != "core":
        return folder
    if module == "__main__":
        return "cli"
    return "knowledge" if uses_a_folder(module) else "core"


def test_every_folder_has_its_row_and_its_question() -> None:
    assert set(FOLDERS) == set(ROWS) - {"core", "knowledge"}
    for folder in FOLDERS:
        first, _, rest = (importlib.import_module(f"sage.{folder}").__doc__ or "").partition("\n")
        assert first.endswith("?"), f"{folder}: the docstring begins with the question it answers"
        assert "In come" in rest, f"{folder}: it says what enters"
        assert "out come" in rest, f"{folder}: it says what leaves"


def test_no_folder_is_a_crowd() -> None:
    sizes = dict.fromkeys((*FOLDERS, "core"), 0)
    for module in MODULES:
        sizes[folder_of(module)] += module not in (*FOLDERS, "__init__", "__main__")
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_no_module_is_too_long_to_be_one_idea() -> None:
    lines = {module: len(path.read_text("utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: size for module, size in lines.items() if size > MOST_LINES} == {}


def test_one_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.lstrip("_"), []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_import_points_back() -> None:
    upward = [
        f"{module} ({row_of(module)}) imports {other} ({row_of(other)})"
        for module, others in sorted(GRAPH.items())
        for other in sorted(others)
        if ROWS.index(row_of(other)) > ROWS.index(row_of(module))
    ]
    assert upward == []


def test_no_import_goes_in_a_circle() -> None:
    graphlib.TopologicalSorter(GRAPH).prepare()


@pytest.mark.parametrize("folder", FOLDERS)
def test_other_folders_import_only_what_a_folder_shows(folder: str) -> None:
    shown = {f"{folder}.{name}" for name in importlib.import_module(f"sage.{folder}").__all__}
    used = {
        other: module
        for module, others in GRAPH.items()
        for other in others
        if folder_of(other) == folder != folder_of(module)
    }
    assert {other: by for other, by in used.items() if other not in shown} == {}
    assert sorted(shown - used.keys()) == []


@pytest.mark.parametrize("library", HOMES)
def test_library_is_imported_in_its_home_only(library: str) -> None:
    users = {
        module
        for module in MODULES
        if any(name.split(".")[0] == library for name in imported(module))
    }
    assert users <= set(HOMES[library].split())


def run_program(base: Base, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A program in a process of its own, in the base."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=base.root,
        env={"PATH": os.environ["PATH"], **base.environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )


def modules_after(base: Base, *arguments: str) -> set[str]:
    """What is imported once a command has run in a process of its own."""
    program = (
        "import atexit, sys\n"
        "from sage.cli.main import main\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        "main()\n"
    )
    ended = run_program(base, program, *arguments)
    return {name.split(".")[0] for name in ended.stderr.splitlines()}


def test_reading_a_page_imports_no_server_no_search_and_no_terminal(base: Base) -> None:
    base.write({"core/a.md": "# Alpha\n"})
    loaded = modules_after(base, "get", "core", "a")
    assert "tiktoken" in loaded
    assert loaded.isdisjoint({"fastmcp", "mcp", "whoosh", "rich", "uvicorn"})


def test_a_prompt_that_needs_nothing_imports_no_knowledge_and_no_terminal(base: Base) -> None:
    base.write({"core/a.md": "# Alpha\n"})
    event = b'{"hook_event_name": "UserPromptSubmit", "session_id": "1", "prompt": "thanks"}'
    loaded = modules_after_hook(base, event)
    assert loaded.isdisjoint({"typer", "rich", "yaml", "markdown_it", "whoosh", "tiktoken"})


def test_a_prompt_about_something_imports_no_terminal_and_no_tokenizer(base: Base) -> None:
    base.write({"core/a.md": "# Shipping labels\n\nPrint labels with the thermal printer.\n"})
    knowledge = base.open()
    knowledge.warm()
    knowledge.close()
    event = b'{"hook_event_name": "UserPromptSubmit", "prompt": "print shipping labels"}'
    loaded = modules_after_hook(base, event)
    assert "whoosh" in loaded
    assert loaded.isdisjoint({"typer", "rich", "tiktoken", "fastmcp"})


def modules_after_hook(base: Base, event: bytes) -> set[str]:
    """What is imported once a hook has answered in a process of its own."""
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from sage.hooks.command import run\n"
        f"run(['--host', 'claude-code'], {event!r}, os.environ, Path.cwd())\n"
        "print('\\n'.join(sys.modules))\n"
    )
    ended = run_program(base, program)
    return {name.split(".")[0] for name in ended.stdout.splitlines()}


def test_help_imports_nothing_that_reads_or_counts(base: Base) -> None:
    loaded = modules_after(base, "--version")
    assert loaded.isdisjoint({"fastmcp", "mcp", "whoosh", "tiktoken", "markdown_it", "yaml"})


def test_importing_the_package_does_no_work() -> None:
    program = "import sys, sage; sys.exit(any(name.startswith('sage.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_the_extra_a_search_imports_nothing_of_it(base: Base) -> None:
    base.write({"core/a.md": "# Alpha\n\nretry with backoff\n"})
    base.environment["SAGE_SEARCH_SEMANTIC"] = "auto"
    program = (
        f"{_WITHOUT_THE_EXTRA}"
        "from pathlib import Path\n"
        "from sage.knowledge import open_knowledge\n"
        "from sage.settings import load_settings\n"
        "knowledge = open_knowledge(load_settings())\n"
        "assert knowledge.search('retry')['found'] == 'yes'\n"
        "assert 'meaning' not in knowledge.info()\n"
        "names = [name for name in sys.modules if name.startswith('sage.semantic')]\n"
        "print(*names, *(extra & sys.modules.keys()))\n"
    )
    ended = run_program(base, program)
    assert ended.stdout.split() == []


_WITHOUT_THE_EXTRA = (
    "import importlib.util, sys\n"
    "find_spec = importlib.util.find_spec\n"
    "extra = {'numpy', 'onnxruntime', 'threadpoolctl', 'tokenizers'}\n"
    "importlib.util.find_spec = lambda name: None if name in extra else find_spec(name)\n"
)


def modules_without_the_extra(base: Base, semantic: str, *arguments: str) -> set[str]:
    """Every module that a command imports where the extra is not installed."""
    base.environment["SAGE_SEARCH_SEMANTIC"] = semantic
    program = (
        f"{_WITHOUT_THE_EXTRA}"
        "import atexit\n"
        "from sage.cli.main import main\n"
        "atexit.register(lambda: print('\\n'.join(sys.modules), file=sys.stderr))\n"
        "main()\n"
    )
    return set(run_program(base, program, *arguments).stderr.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        ("related", "core/a"),
        ("duplicates",),
        ("note", "Retry twice.", "--dry-run"),
        ("care",),
        ("context", "coding", "--task", "retry"),
        ("search", "retry"),
        ("info",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_without_the_extra_commands_import_what_they_import_with_meaning_off(
    base: Base, arguments: tuple[str, ...]
) -> None:
    base.write({"core/a.md": "# Alpha\n\nretry with backoff\n", "core/b.md": "# Beta\n"})
    modules_without_the_extra(base, "off", *arguments)  # with an index that is kept
    without = modules_without_the_extra(base, "auto", *arguments)
    assert without == modules_without_the_extra(base, "off", *arguments)
    ours = {name for name in without if name.startswith("sage.semantic")}
    assert ours == set()
    if arguments[0] in ("related", "duplicates", "note", "care"):
        assert "whoosh" not in without
