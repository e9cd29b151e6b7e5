"""`sage init`: a small knowledge base to start from, and a section in the files agents read.

Nothing that exists is overwritten. The pages are the package's templates, as they are.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from sage.atomic import create_bytes, read_bytes, replace_bytes
from sage.errors import ConfigError
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES

AGENT_FILES = ("AGENTS.md", "CLAUDE.md")
BEGIN = "<!-- sage:begin -->"
END = "<!-- sage:end -->"
_BOM = b"\xef\xbb\xbf"

Action = Literal["written", "kept", "updated"]


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one file."""

    path: str
    action: Action
    reason: str = ""


def write_knowledge(root: Path) -> Iterator[Step]:
    """Write the starting pages of every layer that has none yet.

    Raises:
        ConfigError: the root is not a folder, or a file cannot be written.
    """
    if not root.is_dir():
        raise ConfigError(f"{root} is not a folder")
    for name, template in sorted(_templates()):
        path = f"{KNOWLEDGE_DIR}/{name}"
        folder = (root / path).parent
        if "/" in name and folder.is_dir() and _has_pages(folder):
            yield Step(path, "kept", f"{folder.name} has pages already")
        elif create_bytes(root / path, template.read_bytes(), root):
            yield Step(path, "written")
        else:
            yield Step(path, "kept", "exists")


def write_agent_section(root: Path) -> Iterator[Step]:
    """Put the section for agents into the files that are there, or into a new AGENTS.md.

    Raises:
        ConfigError: the marks of a former section are damaged, or a file cannot be written.
    """
    section = resources.files("sage").joinpath("templates", "agents.md").read_text("utf-8").strip()
    for path in _agent_files(root):
        before = read_bytes(path, root)
        after = _with_section(path, before or b"", section)
        if before == after:
            yield Step(path.name, "kept", "up to date")
            continue
        # No copy is kept: it lies in a repository, and git has the old one.
        replace_bytes(path, before, after, root)
        yield Step(path.name, "written" if before is None else "updated")


def _templates() -> Iterator[tuple[str, Traversable]]:
    top = resources.files("sage").joinpath("templates", "knowledge")
    pending = [("", top)]
    while pending:
        prefix, folder = pending.pop()
        for inner in folder.iterdir():
            if inner.is_dir():
                pending.append((f"{prefix}{inner.name}/", inner))
            elif not inner.name.startswith("."):
                yield prefix + inner.name, inner


def _has_pages(folder: Path) -> bool:
    return any(
        name.lower().endswith(MARKDOWN_SUFFIXES)
        for _, _, names in os.walk(folder)
        for name in names
    )


def _agent_files(root: Path) -> list[Path]:
    """The files to change; one that links to or includes another already has its section."""
    there = [root / name for name in AGENT_FILES if os.path.lexists(root / name)]
    real = [path for path in there if not _links_to(path, there)]
    if not real:
        return [root / AGENT_FILES[0]]
    first, rest = real[0], real[1:]
    return [first, *(path for path in rest if not _includes(path, first, root))]


def _links_to(path: Path, others: list[Path]) -> bool:
    """Whether a file is only another name of one beside it."""
    return (
        path.is_symlink()
        and path.exists()
        and any(
            path.samefile(other) for other in others if other.exists() and not other.is_symlink()
        )
    )


def _includes(path: Path, other: Path, root: Path) -> bool:
    return f"@{other.name}".encode() in (read_bytes(path, root) or b"")


def _with_section(path: Path, before: bytes, section: str) -> bytes:
    text = _decoded(path, before)
    newline = "\r\n" if "\r\n" in text else "\n"
    ours = newline.join([BEGIN, *section.splitlines(), END])
    start, end = text.find(BEGIN), text.find(END)
    if (text.count(BEGIN), text.count(END)) == (1, 1) and start < end:
        after = text[:start] + ours + text[end + len(END) :]
    elif BEGIN in text or END in text:
        raise ConfigError(f"{path}: the marks {BEGIN} and {END} are damaged; remove them first")
    else:
        gap = newline * (2 - text[-4:].replace("\r", "").endswith("\n")) if text else ""
        after = f"{text}{gap}{ours}{newline}"
    return (_BOM if before.startswith(_BOM) else b"") + after.encode("utf-8")


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text; add the section by hand") from error
