"""The lines of a bulk: an action, and the document that it writes, if any."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_NONE: Mapping[str, str] = MappingProxyType({})
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def put_lines(
    identifier: str, document: Mapping[str, Any], columns: Mapping[str, str] = _NONE
) -> bytes:
    """Writes a document.

    Args:
        columns: further fields, in base64: most of a page, and nothing in them needs an escape.
    """
    body = _encode(document).encode("utf-8", "replace").removesuffix(b"}")
    further = "".join([f', "{name}": "{value}"' for name, value in columns.items()])
    action = json.dumps({"index": {"_id": identifier}}).encode()
    return b"%b\n%b%b}\n" % (action, body, further.encode("ascii"))


def delete_lines(identifier: str) -> bytes:
    """Removes a document."""
    return json.dumps({"delete": {"_id": identifier}}).encode() + b"\n"


def document_in(lines: bytes) -> dict[str, Any]:
    """The document that lines write."""
    document: dict[str, Any] = json.loads(lines.split(b"\n", 2)[1])
    return document


def with_field(lines: bytes, name: str, value: str) -> bytes:
    """The lines of a document that has one field more."""
    return b"%b, %b: %b}\n" % (
        lines.removesuffix(b"}\n"),
        json.dumps(name).encode(),
        json.dumps(value).encode(),
    )
