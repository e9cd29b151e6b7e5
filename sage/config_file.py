"""A file of settings as it is written: bounded, safe YAML, with words for what is wrong in it."""

from pathlib import Path
from typing import Any

from sage.errors import ConfigError
from sage.paths import CONFIG_FILE, KNOWLEDGE_DIR
from sage.safe_yaml import YamlError, load_yaml

MAX_CONFIG_BYTES = 64 * 1024


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


def load_tree(path: Path, name: str) -> dict[str, Any]:
    """The mapping in a file.

    Args:
        name: what the file is called in messages.

    Raises:
        ConfigError: it cannot be read, is not YAML, or is no mapping.
    """
    try:
        tree = load_yaml(_read_bounded(path).decode("utf-8-sig"), MAX_CONFIG_BYTES)
    except YamlError as error:
        place = f"{name}:{error.line}" if error.line else name
        raise ConfigError(f"{place}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{name}: cannot be read: {reason}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{name}: expected a mapping of settings, found {type(tree).__name__}")
    return tree


def _read_bounded(path: Path) -> bytes:
    """What a file holds, if it is not too much for settings."""
    with path.open("rb") as file:
        data = file.read(MAX_CONFIG_BYTES + 1)
    if len(data) > MAX_CONFIG_BYTES:
        raise YamlError(f"more than {MAX_CONFIG_BYTES} bytes of YAML")
    return data
