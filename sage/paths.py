"""Where things are: the repository that holds the knowledge, and the user's own cache folder."""

import os
from collections.abc import Mapping
from pathlib import Path

from sage.errors import ConfigError

KNOWLEDGE_DIR = ".knowledge"
CONFIG_FILE = "sage.yaml"
MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdx", ".mdc")
"""How the name of a page ends."""


def find_root(flag: object, environment: Mapping[str, str], working_dir: Path) -> tuple[Path, str]:
    """The repository that holds `.knowledge` or `sage.yaml`, and how it was found."""
    if flag:
        return _given_root(flag, "--root", working_dir), "--root"
    if environment.get("SAGE_ROOT"):
        return _given_root(environment["SAGE_ROOT"], "SAGE_ROOT", working_dir), "SAGE_ROOT"
    starts = [(working_dir, "the working directory")]
    if environment.get("CLAUDE_PROJECT_DIR"):
        project = located(environment["CLAUDE_PROJECT_DIR"], working_dir)
        starts.insert(0, (project, "CLAUDE_PROJECT_DIR"))
    for start, how in starts:
        for folder in (start, *start.parents):
            if is_root(folder):
                return folder.resolve(), how
    looked = " and ".join(f"{start} ({how})" for start, how in starts)
    raise ConfigError(
        f"no {KNOWLEDGE_DIR} folder and no {CONFIG_FILE} in or above {looked}; "
        f"go to your repository, name it with --root PATH or SAGE_ROOT, or run: sage init"
    )


def is_root(folder: Path) -> bool:
    """Whether a folder holds a knowledge base, or settings that map one."""
    if (folder / KNOWLEDGE_DIR).is_dir():
        return True
    # The settings of a knowledge base lie in its folder, which is no repository of its own.
    return folder.name != KNOWLEDGE_DIR and (folder / CONFIG_FILE).is_file()


def find_cache_dir(environment: Mapping[str, str]) -> Path:
    """The user's private folder for what may be built again: `SAGE_CACHE_DIR` or the platform's."""
    given = environment.get("SAGE_CACHE_DIR")
    if given:
        return located(given, here())
    # Its import costs a few milliseconds that a command with SAGE_CACHE_DIR does not need.
    from platformdirs import user_cache_path

    return user_cache_path("sage", appauthor=False)


def find_user_config(environment: Mapping[str, str]) -> Path:
    """The user's own settings for every knowledge base: `config.yaml` in their config folder."""
    given = Path(environment.get("XDG_CONFIG_HOME", ""))
    if given.is_absolute():
        return given / "sage" / "config.yaml"
    from platformdirs import user_config_path

    return user_config_path("sage", appauthor=False) / "config.yaml"


def find_token_file() -> Path:
    """The file of this user's tokens for a server."""
    from platformdirs import user_config_path

    return user_config_path("sage", appauthor=False) / "tokens.json"


def here() -> Path:
    """The working directory, or the top of the file system when it is deleted or hidden."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def located(given: object, working_dir: Path) -> Path:
    """A path as somebody writes it: from where they are, with `~` for their home."""
    path = Path(str(given))
    try:
        return working_dir / path.expanduser()
    except RuntimeError:  # `~name` of nobody here, or no home at all
        return working_dir / path


def _given_root(given: object, how: str, working_dir: Path) -> Path:
    root = located(given, working_dir)
    if root.name == KNOWLEDGE_DIR and root.is_dir():
        root = root.parent
    if is_root(root):
        return root.resolve()
    if not root.is_dir():
        raise ConfigError(f"{how} names {given}, which is not a folder")
    raise ConfigError(
        f"{how} names {given}, which holds no {KNOWLEDGE_DIR} folder and no {CONFIG_FILE}; "
        f"name the repository that does, or run: sage init --root {given}"
    )


def repository_config(root: Path) -> Path | None:
    """The file of settings that a repository brings along; None when it has none.

    Raises:
        ConfigError: it is a link out of the repository.
    """
    there = [root / KNOWLEDGE_DIR / CONFIG_FILE, root / CONFIG_FILE]
    found = [path for path in there if path.is_file()]
    if not found:
        return None
    # What is wrong in it is told with its own words: it must not be a file of somebody else's.
    if not found[0].resolve().is_relative_to(root):
        name = str(found[0].relative_to(root))
        raise ConfigError(f"{name} is a symbolic link that leaves the repository; copy the file")
    return found[0]
