"""The text of somebody's configuration file, and its bytes again: UTF-8, a byte order mark kept."""

from pathlib import Path

from sage.errors import ConfigError

_BOM = b"\xef\xbb\xbf"


def decoded(path: Path, data: bytes) -> str:
    """The text of a file's bytes.

    Raises:
        ConfigError: they are not UTF-8.
    """
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text at byte {error.start}; edit it by hand"
        ) from error


def encoded(before: bytes | None, text: str) -> bytes:
    """The bytes of a new text, with the mark that the old bytes had."""
    return (_BOM if before and before.startswith(_BOM) else b"") + text.encode("utf-8")
