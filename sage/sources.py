"""Where pages come from: the repository itself, and further folders that are read beside it.

The repository is nearest, the others follow in the order in which they are named: of two pages of
one topic the nearer is served. Anybody may have written a repository's `sage.yaml`: nothing in it
leads out of the repository or into what version control and tools keep hidden; only whoever runs
SAGE names another place. A source that is not there has a fault and takes nothing else down.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from sage.errors import ConfigError, WrongOption
from sage.paths import KNOWLEDGE_DIR, located, repository_config
from sage.safe_yaml import load_tree
from sage.values import ALL_LAYERS, OWN

MAX_SOURCES = 20
MAX_NAME = 40
HOST_FOLDERS = (".agents", ".claude", ".cursor", ".github", ".kiro")
"""Hidden folders in which agents' hosts keep pages of their own."""
MAX_ENTRIES = 64
MAX_LENGTH = 256
MAX_STARS = 8
_KEYS = ("path", "layers", "ignore")
_MAX_PATTERNS = 100
_MAX_PATTERN = 100
_MAX_LAYERS = 50


@dataclass(frozen=True, slots=True)
class Source:
    """One root of pages."""

    name: str
    root: Path
    """What nothing may lead out of: the repository, or the folder itself when it is elsewhere."""
    folder: str = ""
    """Where it lies below the root; empty when it is the root."""
    layers: tuple[str, ...] = ()
    all_layers: tuple[str, ...] = ()
    """With those that are not served: a page of theirs is no page of the others."""
    layer_paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Where the pages of a layer lie that is mapped, below the folder."""
    ignore: tuple[str, ...] = ()
    is_outside: bool = False
    """Whether it lies outside of the repository, so that its paths begin with its name."""
    named_by: str = ""
    fault: str = ""
    """Why it cannot be served; empty when it can."""

    @property
    def place(self) -> Path:
        """The folder that holds it."""
        return self.root / self.folder if self.folder else self.root

    @property
    def prefix(self) -> str:
        """What its paths begin with among those of all sources."""
        return f"{self.name}:" if self.is_outside else ""


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source as somebody names it."""

    name: str
    given: object
    """A path, or a mapping with it."""
    where: str
    """The file, variable or flag."""
    base: Path
    """What a path that is not absolute begins from."""
    is_operators: bool


def named_in(tree: object, where: str, base: Path, is_operators: bool) -> list[NamedSource]:
    """The sources that a file names.

    Raises:
        ConfigError: it is not a mapping of names.
    """
    if tree is None:
        return []
    if not isinstance(tree, dict):
        raise ConfigError(f"{where}: expected names with paths, as in `company: vendor/standards`")
    return [NamedSource(str(name), one, where, base, is_operators) for name, one in tree.items()]


def named_as_text(pairs: Iterable[str], where: str, base: Path) -> list[NamedSource]:
    """The sources in `name=path` as flags and a variable name them.

    Raises:
        ConfigError: one is not of this form.
    """
    named = []
    for pair in filter(None, map(str.strip, pairs)):
        name, equals, path = pair.partition("=")
        if not equals or not path.strip():
            raise _wrong(where, f"{pair!r} is not a source; write NAME=FOLDER")
        named.append(NamedSource(name.strip(), path.strip(), where, base, True))
    return named


def _wrong(where: str, words: str) -> ConfigError:
    """An error of an option, or of a variable or a file."""
    return (WrongOption if where.startswith("--") else ConfigError)(f"{where}: {words}")


def resolved(
    named: Iterable[NamedSource], root: Path, layers: tuple[str, ...]
) -> tuple[Source, ...]:
    """The sources in their order; one named again is the one that was named last.

    Raises:
        ConfigError: a name, a path or a layer is none.
    """
    last = {one.name: one for one in named}
    if len(last) > MAX_SOURCES:
        raise ConfigError(f"{len(last)} sources are named; at most {MAX_SOURCES} are read")
    sources = tuple(_resolved(one, root, layers) for one in last.values())
    places: dict[Path, str] = {}
    for source in sources:
        if source.place in places:
            raise ConfigError(
                f"the sources {places[source.place]} and {source.name} are the same folder"
            )
        places[source.place] = source.name
    return sources


def with_their_layers(layers: tuple[str, ...], sources: Iterable[Source]) -> tuple[str, ...]:
    """The repository's layers, and behind them those that only other sources have."""
    return tuple(dict.fromkeys([*layers, *(name for one in sources for name in one.layers)]))


def _resolved(named: NamedSource, root: Path, layers: tuple[str, ...]) -> Source:
    where = f"{named.where}: sources.{named.name}"
    if not is_name(named.name) or len(named.name) > MAX_NAME or named.name in (OWN, "all"):
        words = f"use letters, digits, - and _, at most {MAX_NAME}, and not {OWN} or all"
        raise _wrong(named.where, f"{named.name!r} cannot name a source; {words}")
    given = {"path": named.given} if isinstance(named.given, str) else named.given
    if not isinstance(given, dict) or not isinstance(given.get("path"), str):
        raise ConfigError(f"{where}: expected a path, or a mapping with `path`")
    unknown = [str(key) for key in given if key not in _KEYS]
    if unknown:
        raise ConfigError(f"{where}: {unknown[0]} is not known; use {', '.join(_KEYS)}")
    source = _placed(named, given["path"], root, where)
    if given.get("layers") is None and "ignore" not in given:
        return _as_it_says(source, layers)
    return _with_layers(replace(source, layers=layers), given, where)


def _placed(named: NamedSource, path: str, root: Path, where: str) -> Source:
    source = Source(named.name, root, named_by=named.where)
    inside = "" if named.is_operators else checked_place(path, where)
    # Never raises, unlike `resolve`: a circle of links is a folder that is not there.
    place = Path(os.path.realpath(root / inside if inside else located(path, named.base)))
    if place == root:
        raise ConfigError(f"{where}: it is the repository itself; name another folder")
    if place.is_relative_to(root):
        return replace(source, folder=place.relative_to(root).as_posix())
    if named.is_operators:
        return replace(source, root=place, is_outside=True)
    fault = "its folder is a symbolic link that leaves the repository"
    return replace(source, folder=inside, fault=fault)


def _as_it_says(source: Source, layers: tuple[str, ...]) -> Source:
    """A source with the layers that its own settings name; what else is set there is its own."""
    source = replace(source, layers=layers)
    if source.fault:
        return source
    try:
        source = replace(source, layers=_usual_layers(source, layers))
        config = repository_config(source.place)
        return (
            _with_layers(source, load_tree(config, config.name), config.name) if config else source
        )
    except ConfigError as error:
        return replace(source, fault=str(error))
    except OSError as error:
        return replace(source, fault=error.strerror or "it cannot be looked at")


def _with_layers(source: Source, given: Mapping[str, object], where: str) -> Source:
    layers = given.get("layers")
    if layers is None:
        layers = list(source.layers)
    if isinstance(layers, list):
        layers = dict.fromkeys(map(str, layers))
    if not isinstance(layers, dict):
        raise ConfigError(f"{where}: layers: expected names, or a mapping of names to folders")
    if len(layers) > _MAX_LAYERS:
        raise ConfigError(f"{where}: layers: {len(layers)} are named, at most {_MAX_LAYERS}")
    places = checked_places(layers, f"{where}: layers")
    check_layers(tuple(places), f"{where}: layers")
    return replace(
        source,
        layers=tuple(places),
        layer_paths={layer: entries for layer, entries in places.items() if entries},
        ignore=_checked_patterns(given.get("ignore") or [], where),
    )


def _checked_patterns(given: object, where: str) -> tuple[str, ...]:
    if isinstance(given, list) and len(given) <= _MAX_PATTERNS:
        patterns = tuple(str(one) for one in given)
        if max(map(len, patterns), default=0) <= _MAX_PATTERN:
            return patterns
    raise ConfigError(
        f"{where}: ignore: expected at most {_MAX_PATTERNS} patterns of up to {_MAX_PATTERN} "
        "characters"
    )


def _usual_layers(source: Source, layers: tuple[str, ...]) -> tuple[str, ...]:
    """The layers of a source that names none: those of ours that it has a folder for."""
    base = source.place / KNOWLEDGE_DIR
    return tuple(name for name in layers if (base / name).is_dir()) or layers


def fault_of(source: Source) -> str:
    """Why a source cannot be served now; empty when it can."""
    if source.fault:
        return source.fault
    try:
        is_folder = source.place.is_dir()
        has_base = bool(source.layer_paths) or (source.place / KNOWLEDGE_DIR).is_dir()
    except OSError as error:
        return error.strerror or "it cannot be looked at"
    if not is_folder:
        return "its folder is not there"
    if not has_base:
        return f"its folder holds no {KNOWLEDGE_DIR} and no sage.yaml that maps layers"
    return ""


def checked_places(value: dict[object, object], where: str) -> dict[str, tuple[str, ...]]:
    """The places of each layer; none for one that stays in `.knowledge`.

    Raises:
        ConfigError: an entry is not a place within the repository.
    """
    places: dict[str, tuple[str, ...]] = {}
    for layer, entries in value.items():
        given = [entries] if isinstance(entries, str) else entries or []
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise ConfigError(f"{where}.{layer}: expected folders, globs or files")
        if len(given) > MAX_ENTRIES:
            raise ConfigError(f"{where}.{layer}: at most {MAX_ENTRIES} places")
        checked = (checked_place(one, f"{where}.{layer}") for one in given)
        places[str(layer)] = tuple(dict.fromkeys(checked))
    return places


def is_name(text: str) -> bool:
    """Whether a text can name a layer or a source."""
    return text.replace("-", "").replace("_", "").isalnum()


def check_layers(layers: tuple[str, ...], where: str) -> None:
    """Refuse what cannot be the layers of a base.

    Raises:
        ConfigError: there are none, or one has no name of its own.
    """
    if not layers:
        raise ConfigError(f"{where}: name at least one folder of {KNOWLEDGE_DIR}")
    for name in layers:
        if not is_name(name) or name.casefold() == ALL_LAYERS:
            raise ConfigError(
                f"{where}: {name!r} cannot be a layer; a layer is the name of one folder, of "
                f"letters, digits, - and _, and not {ALL_LAYERS!r}"
            )
    if len({name.casefold() for name in layers}) < len(layers):
        raise ConfigError(f"{where}: a layer appears twice")


def checked_place(entry: str, where: str) -> str:
    """A path below the repository, or a glob, in one spelling.

    Raises:
        ConfigError: it leads elsewhere or to what is hidden.
    """
    path = entry.strip().replace("\\", "/").removeprefix("./").rstrip("/") or "."
    parts = PurePosixPath(path).parts
    if path.startswith(("/", "~")) or PureWindowsPath(entry).drive or ".." in parts:
        raise ConfigError(f"{where}: {entry!r} leaves the repository; name a place within it")
    if not path.isprintable() or len(path) > MAX_LENGTH or path.count("*") > MAX_STARS:
        raise ConfigError(f"{where}: {entry!r} is not a path, is too long, or has too many stars")
    hidden = [part for part in parts if part.startswith(".") and part != "."]
    wrong = [part for part in hidden if part not in (KNOWLEDGE_DIR, *HOST_FOLDERS)]
    if wrong:
        allowed = ", ".join((KNOWLEDGE_DIR, *HOST_FOLDERS))
        raise ConfigError(f"{where}: {entry!r} is hidden; only {allowed} are read")
    return path
