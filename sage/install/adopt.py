"""The mapping of layers that fits a repository's own documentation, proposed and written.

It looks at the folders as they are, gives each to the layer that its name speaks for, and counts
the pages, so that nothing is left out without being seen.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sage.atomic import replace_bytes
from sage.documents.places import TOOL_FOLDERS
from sage.documents.unserved import OTHER_PAGES
from sage.errors import ConfigError
from sage.paths import CONFIG_FILE, KNOWLEDGE_DIR, MARKDOWN_SUFFIXES
from sage.settings import DEFAULT_LAYERS
from sage.sources import checked_places

HOST_LAYER = "guidelines"
"""The layer of what agents' hosts read by themselves."""
HOST_PLACES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/rules",
    ".claude/skills",
    ".agents/skills",
    ".cursor/rules",
    ".github/copilot-instructions.md",
    ".github/instructions",
    ".kiro/steering",
)
_NESTED = ("AGENTS.md", "CLAUDE.md")
"""Files that every folder may have: naming one means all of them."""
REST = "practices"
"""The layer of pages whose folder speaks for none."""
# The words in the name of a folder that speak for a layer.
_WORDS = {
    "core": ("principle", "value", "vision", "mission", "about", "overview"),
    "guidelines": (
        "adr", "decision", "rfc", "standard", "convention", "style", "policy", "policies", "rule",
        "contribute", "contributing", "contributor", "guideline", "security",
    ),
    "frameworks": (
        "reference", "api", "concept", "architecture", "design", "framework", "library",
        "libraries", "component",
    ),
    "practices": (
        "guide", "tutorial", "howto", "task", "runbook", "playbook", "operation", "ops",
        "practice", "recipe", "setup", "started",
    ),
}  # fmt: skip
_MAX_FOLDERS = 40


class _PageCount(NamedTuple):
    """How many pages a folder has, and how many of them are not hosts' own."""

    all: int
    own: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """One folder of the proposal."""

    layer: str
    folder: str
    pages: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """Which folders become which layers, and what would not be served."""

    folders: tuple[Adopted, ...]
    pages: int
    other_pages: int
    """Pages of kinds that are not read."""
    host_places: tuple[str, ...] = ()
    """What hosts read by themselves and is not mapped."""

    @property
    def layers(self) -> dict[str, list[str]]:
        """The mapping, in the order of the layers."""
        names = [name for name in DEFAULT_LAYERS if any(one.layer == name for one in self.folders)]
        return {name: [one.folder for one in self.folders if one.layer == name] for name in names}

    @property
    def config(self) -> str:
        """The text of `sage.yaml`."""
        lines = ["# The layers of this knowledge base and where their pages lie.", "layers:"]
        for layer, folders in self.layers.items():
            lines.append(f"  {layer}:")
            lines += [f"    - {_quoted(folder)}" for folder in folders]
        return "\n".join(lines) + "\n"


def propose(root: Path, starts: Sequence[str]) -> Proposal:
    """A mapping for the pages below some folders of a repository.

    Raises:
        ConfigError: a folder is not one of the repository, or holds no pages.
    """
    adopted: list[Adopted] = []
    other_pages = 0
    for start in checked_places({REST: list(starts)}, "--from")[REST]:
        folder = root if start == "." else root / start
        if start in HOST_PLACES or folder.is_file():
            adopted.append(_host_pages(root, start))
            continue
        if not folder.is_dir() or not folder.resolve().is_relative_to(root.resolve()):
            raise ConfigError(f"--from {start}: there is no such folder in {root}")
        found, others = _counts(folder)
        other_pages += others
        adopted += _adopted(start, found)
    pages = sum(one.pages for one in adopted)
    if not pages:
        named = ", ".join(starts)
        raise ConfigError(f"--from {named}: no pages there; name another folder, or a file")
    mapped = {one.folder.removeprefix("**/") for one in adopted}
    if "." in mapped:  # whoever maps the root serves these files as well
        mapped.update(_NESTED)
    unnamed = [one for one in HOST_PLACES if one not in mapped and os.path.lexists(root / one)]
    return Proposal(tuple(adopted), pages, other_pages, tuple(unnamed))


def write_config(root: Path, proposal: Proposal) -> Path:
    """Write the proposal as the settings of a repository that has none.

    Raises:
        ConfigError: it has settings already, which stay as they are.
    """
    for path in (root / KNOWLEDGE_DIR / CONFIG_FILE, root / CONFIG_FILE):
        if os.path.lexists(path):
            name = path.relative_to(root)
            raise ConfigError(f"{name} is there already; put the mapping under `layers` by hand")
    path = root / CONFIG_FILE
    replace_bytes(path, None, proposal.config.encode(), root)
    return path


def _host_pages(root: Path, start: str) -> Adopted:
    """One file, the files of that name in every folder, or a folder in which a host looks.

    Raises:
        ConfigError: it is not there, leads elsewhere, or is no markdown.
    """
    place = root / start
    if not place.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"--from {start}: it leads out of {root}")
    if start in _NESTED:
        pages = sum(start in names for _, names in _walked(root))
    elif place.is_dir():
        pages = sum(one.all for one in _counts(place)[0].values())
    else:
        pages = int(place.is_file() and _is_page(place.name, MARKDOWN_SUFFIXES))
    if not pages:
        raise ConfigError(f"--from {start}: there is no such page in {root}")
    return Adopted(HOST_LAYER, f"**/{start}" if start in _NESTED else start, pages)


def _walked(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The folders below one and their files, without those that no page is read from."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            one for one in folders if not one.startswith(".") and one not in TOOL_FOLDERS
        )
        yield place, names


def _counts(folder: Path) -> tuple[dict[str, _PageCount], int]:
    """Pages by the folder below this one that holds them, and pages of other kinds."""
    found: dict[str, _PageCount] = {}
    others = 0
    for place, names in _walked(folder):
        below = Path(place).relative_to(folder).as_posix()
        pages = [name for name in names if _is_page(name, MARKDOWN_SUFFIXES)]
        others += sum(_is_page(name, OTHER_PAGES) for name in names)
        if pages:
            own = sum(name not in _NESTED for name in pages)
            found["" if below == "." else below] = _PageCount(len(pages), own)
    return found, others


def _is_page(name: str, suffixes: tuple[str, ...]) -> bool:
    return not name.startswith(".") and name.lower().endswith(suffixes)


def _adopted(start: str, found: dict[str, _PageCount]) -> Iterator[Adopted]:
    """The folders that speak for a layer, outermost first, and the start for all others.

    A folder in which there is nothing but what hosts read by themselves is not proposed.
    """
    speaking: dict[str, str] = {}
    for folder in sorted(name for name, pages in found.items() if pages.own):
        parts = folder.split("/") if folder else []
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            layer = _layer_for(parts[depth - 1])
            if layer and not any(_lies_in(above, known) for known in speaking):
                speaking[above] = layer
    chosen = dict(sorted(speaking.items(), key=lambda pair: -_pages_in(pair[0], found)))
    chosen = dict(list(chosen.items())[:_MAX_FOLDERS])
    rest = [
        pages for folder, pages in found.items() if not any(_lies_in(folder, one) for one in chosen)
    ]
    for folder, layer in sorted(chosen.items()):
        path = folder if start == "." else f"{start}/{folder}"
        yield Adopted(layer, path, _pages_in(folder, found))
    if any(pages.own for pages in rest):
        layer = _layer_for(start.rpartition("/")[2]) or REST
        yield Adopted(layer, start, sum(pages.all for pages in rest))


def _layer_for(name: str) -> str:
    """The layer that the last word of a folder's name speaks for; empty when none."""
    words = re.findall(r"[a-z]+", name.casefold().replace("how-to", "howto"))
    word = words[-1] if words else ""
    singular = word.removesuffix("s") if len(word) > 3 else word
    return next((layer for layer, known in _WORDS.items() if {word, singular} & set(known)), "")


def _lies_in(folder: str, above: str) -> bool:
    return folder == above or folder.startswith(f"{above}/")


def _pages_in(above: str, found: dict[str, _PageCount]) -> int:
    return sum(pages.all for folder, pages in found.items() if _lies_in(folder, above))


def _quoted(path: str) -> str:
    plain = re.fullmatch(r"[A-Za-z0-9_/][\w/ .-]*", path)
    return path if plain else '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
