"""Where the pages of a layer lie: its folder in `.knowledge`, or what `sage.yaml` maps it to.

A layer may be folders, globs or single files anywhere in the repository. A page that two layers
name belongs to the one that names it more closely, so that every page has one address.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from sage.documents.scopes import matching_glob
from sage.paths import KNOWLEDGE_DIR, MARKDOWN_SUFFIXES

_KNOWLEDGE = f"{KNOWLEDGE_DIR}/"
_WILDCARDS = frozenset("*?[{")
# What tools put into a repository; nobody keeps pages there.
TOOL_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "vendor", "target"})


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of the repository, all of it or what a glob names in it."""

    folder: str
    """Below the root; empty for the root itself."""
    glob: str = ""
    is_file: bool = False
    """Whether it is one file of the folder, which is then the glob."""
    prefix: str = ""
    """What stands in topics before the path below the folder."""
    base: str = ""
    """The folder below which the glob is meant; empty for the root."""

    @property
    def closeness(self) -> int:
        """How closely it names a page: by more folders, and one file most closely of all."""
        return 2 * len(PurePosixPath(self.folder).parts) + 1_000 * self.is_file

    def holds(self, path: str) -> bool:
        """Whether a path below the root lies in it."""
        if self.folder and not path.startswith(f"{self.folder}/"):
            return False
        below = path[len(self.base) + 1 :] if self.base else path
        if self.is_file:
            return below == self.glob
        return not self.glob or bool(matching_glob((self.glob,), below))

    def topic(self, layer: str, path: str) -> str:
        """The public address of a page in it."""
        below = path[len(self.folder) + 1 :] if self.folder else path
        return "/".join(filter(None, (layer, self.prefix, _without_suffix(below))))


class LayerPlaces(NamedTuple):
    """Where the pages of one layer lie, and what gives a path its topic."""

    places: tuple[Place, ...]
    address: Callable[[str], str | None] | None
    """None for a path that is not the layer's; itself None where a page's address is its path."""


class Places:
    """The places of every layer."""

    def __init__(
        self, layers: Sequence[str], mapped: Mapping[str, Sequence[str]], base: str = ""
    ) -> None:
        """Args:
        base: the folder below the root that all of them lie in; empty for the root.
        """
        self._mapped = bool(mapped or base)
        self._base = base
        self._places = {
            layer: tuple(_placed(mapped.get(layer, ()), base)) or (_own(layer, base),)
            for layer in layers
        }

    def of(self, layer: str) -> tuple[Place, ...]:
        """Where the pages of a layer lie."""
        return self._places.get(layer) or (_own(layer, self._base),)

    def holds(self, path: str) -> bool:
        """Whether some layer has a path."""
        return any(place.holds(path) for places in self._places.values() for place in places)

    def of_layer(self, layer: str) -> LayerPlaces:
        """What a walk of a layer needs to know."""
        address = (lambda path: self._topic(layer, path)) if self._mapped else None
        return LayerPlaces(self.of(layer), address)

    def _topic(self, layer: str, path: str) -> str | None:
        best: tuple[int, str, Place] | None = None
        for name, places in self._places.items():
            for place in places:
                if place.holds(path) and (best is None or place.closeness > best[0]):
                    best = (place.closeness, name, place)
        return best[2].topic(layer, path) if best is not None and best[1] == layer else None


def topic_of(path: str) -> str:
    """The public address of a file: its layer and path without the suffix."""
    return _without_suffix(path.removeprefix(_KNOWLEDGE))


def _without_suffix(path: str) -> str:
    # For every page several times when a name is looked for that nobody has.
    stem, dot, suffix = path.rpartition(".")
    return path if not dot or "/" in suffix or not stem or stem[-1] == "/" else stem


def may_hold(places: Sequence[Place], folder: str) -> bool:
    """Whether a folder may hold pages of mapped places: not what tools put there, nor what lies
    below a single file's."""
    above = (one for one in places if not one.is_file and _is_below(folder, one.folder))
    return folder.rpartition("/")[2] not in TOOL_FOLDERS and any(above)


def is_below_any(folders: Iterable[str], path: str) -> bool:
    """Whether a path lies in one of some folders."""
    return any(_is_below(path, folder) for folder in folders)


def _is_below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _own(layer: str, base: str) -> Place:
    return Place(_below(base, f"{KNOWLEDGE_DIR}/{layer}"))


def _below(base: str, path: str) -> str:
    return f"{base}/{path}" if base and path else base or path


def _placed(entries: Sequence[str], base: str) -> Iterator[Place]:
    folders = [entry for entry in entries if _is_folder(entry)]
    for entry in entries:
        if _is_folder(entry):
            folder = "" if entry == "." else entry
            yield Place(_below(base, folder), prefix=_prefix(folder, folders))
        elif _WILDCARDS.isdisjoint(entry):
            folder = entry.rpartition("/")[0]
            yield Place(_below(base, folder), entry, is_file=True, prefix=folder, base=base)
        else:
            folder = _fixed(entry)
            yield Place(_below(base, folder), entry, prefix=folder, base=base)


def _is_folder(entry: str) -> bool:
    return _WILDCARDS.isdisjoint(entry) and not entry.lower().endswith(MARKDOWN_SUFFIXES)


def _fixed(glob: str) -> str:
    """The folders of a glob before its first wildcard."""
    parts = []
    for part in glob.split("/")[:-1]:
        if not _WILDCARDS.isdisjoint(part):
            break
        parts.append(part)
    return "/".join(parts)


def _prefix(folder: str, folders: Sequence[str]) -> str:
    """As much of the end of a folder's path as tells it from the layer's other folders."""
    if len(folders) < 2:
        return ""
    parts = PurePosixPath(folder).parts
    others = [PurePosixPath(other).parts for other in folders if other != folder]
    for size in range(1, len(parts) + 1):
        if all(other[-size:] != parts[-size:] for other in others):
            return "/".join(parts[-size:])
    return folder
