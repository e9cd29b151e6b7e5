"""tomllib within the bounds of `safe_yaml`: TOML that anybody may have written.

Dates and times stay text, as in YAML.
"""

import datetime
import re
import tomllib

from sage.safe_yaml import MAX_BYTES, MAX_DEPTH, YamlError

_LINE = re.compile(r"at line (\d+)")


def load_toml(text: str) -> dict[str, object]:
    """The table of one TOML document.

    Raises:
        YamlError: syntax, size or depth.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise YamlError(f"{size} bytes of TOML, at most {MAX_BYTES} are read")
    try:
        table = tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if not isinstance(error, RecursionError) else "too deep"
        line = _LINE.search(reason)
        raise YamlError(f"not valid TOML: {reason}", int(line[1]) if line else 0) from error
    return {key: _plain(value, 1) for key, value in table.items()}


def _plain(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise YamlError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {key: _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return value
