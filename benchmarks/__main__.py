"""Every benchmark, each in a process of its own: `python -m benchmarks [name ...]`."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
EXPECTED = ("loading", "search", "context", "serve")


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; the number of those that failed or are not there."""
    found = _benchmarks()
    wanted = names or list(dict.fromkeys([*EXPECTED, *found]))
    failed = 0
    for name in wanted:
        print(f"\n== {name} {'=' * (76 - len(name))}", flush=True)
        if name not in found:
            print(f"NOT MEASURED: there is no benchmarks/{name}.py with a main()", file=sys.stderr)
            failed += name in names
        elif code := _run(name):
            print(f"FAILED: {name} ended with {code}", file=sys.stderr)
            failed += 1
    return failed


def _benchmarks() -> list[str]:
    """The modules of this folder that have a `main`; what they measure against has none."""
    modules = sorted(module.name for module in pkgutil.iter_modules([str(FOLDER)]))
    return [name for name in modules if name != "__main__" and _has_main(FOLDER / f"{name}.py")]


def _has_main(path: Path) -> bool:
    tree = ast.parse(path.read_text("utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def _run(name: str) -> int:
    program = f"import sys; from benchmarks.{name} import main; sys.exit(main())"
    ended = subprocess.run([sys.executable, "-c", program], cwd=FOLDER.parent, check=False)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
