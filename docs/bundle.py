"""Builds the `.mcpb` file with which Claude Desktop installs the server by one click.

`python -m docs.bundle [OUTPUT]` writes it into `dist`, and the manifest beside it for the official
`mcpb` tool. The program that opens it brings Python and the libraries; only our files are inside.
"""

import json
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sage import __version__
from sage.server.tools import all_tools

REPOSITORY = Path(__file__).parent.parent
DEFAULT_LAYERS = ("core", "guidelines", "frameworks", "practices")
# The oldest time a zip archive can hold: the same files make the same bytes.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)


def manifest() -> dict[str, Any]:
    """What the program that opens the bundle shows, asks for and starts."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "SAGE",
        "version": __version__,
        "description": project["description"],
        "author": {"name": "The SAGE authors"},
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "sage/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": [
                    "run",
                    "--directory",
                    "${__dirname}",
                    "--no-dev",
                    "sage",
                    "serve",
                    "--root",
                    "${user_config.root}",
                ],
                # Without bytecode every start takes twice as long.
                "env": {"UV_COMPILE_BYTECODE": "1"},
            },
        },
        "tools": [
            {"name": tool.name, "description": tool.title}
            for tool in all_tools(DEFAULT_LAYERS, ("coding",))
        ],
        "compatibility": {
            "platforms": ["darwin", "win32", "linux"],
            "runtimes": {"python": project["requires-python"]},
        },
        "user_config": {
            "root": {
                "type": "directory",
                "title": "Repository",
                "description": "The folder that holds your team's .knowledge folder",
                "required": True,
            }
        },
    }


def contents() -> Iterator[tuple[str, bytes]]:
    """The files of the bundle by name, in a stable order."""
    yield "manifest.json", _as_bytes(manifest())
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        yield name, (REPOSITORY / name).read_bytes()
    for path in sorted((REPOSITORY / "sage").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(REPOSITORY).as_posix(), path.read_bytes()


def build(folder: Path) -> Path:
    """Write the bundle and its manifest into a folder; the path of the bundle."""
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / f"sage-kb-{__version__}.mcpb"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents():
            archive.writestr(_member(name), data)
    (folder / "manifest.json").write_bytes(_as_bytes(manifest()))
    return bundle


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, TIMESTAMP)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    return member


def _as_bytes(tree: dict[str, Any]) -> bytes:
    return (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode()


if __name__ == "__main__":
    written = build(Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "dist")
    sys.stdout.write(f"{written}\n")
