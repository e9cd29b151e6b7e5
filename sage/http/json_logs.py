"""Log lines as JSON objects: one a line, each with its request, none with a secret."""

import json
import logging
import re
import secrets
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

from sage.server.process import set_log_level

# The request on whose behalf the running code works, "" outside of any.
request_id: ContextVar[str] = ContextVar("sage_request_id", default="")

FIELDS = "fields"
# A request can carry 32 KB of header, and a page can be in an error: no line repeats that.
MAX_VALUE = 2_000
MAX_TRACEBACK = 20_000
_GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SECRETS = re.compile(
    r"""
    sage_[0-9a-f]{12}_[\w-]+                       # a token of ours
    |eyJ[\w.-]+                                   # a JWT, whole or cut; one run, read once
    |(?i:\b(?:bearer|basic)\s+)[^\s"',]+           # what follows a scheme of authentication
    |(?i:\b(?:access_token|token|key)=)[^&\s"']+   # what follows a name of a secret in a URL
    """,
    re.VERBOSE,
)


def redacted(text: str) -> str:
    """The text without anything that looks like a credential."""
    return _SECRETS.sub("[removed]", text)


def request_id_from(given: str) -> str:
    """The id that a proxy gave to a request, when it is fit for a log; else a new one."""
    if _GIVEN_ID.fullmatch(given) and redacted(given) == given:
        return given
    return secrets.token_hex(8)


class JsonLines(logging.Formatter):
    """A record as one JSON object; `extra={"fields": {...}}` adds to it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        line |= getattr(record, FIELDS, {})
        shown = {name: _shown(value) for name, value in line.items()}
        if record.exc_info:
            shown["error"] = redacted(_cut(self.formatException(record.exc_info), MAX_TRACEBACK))
        return json.dumps(shown)


def _shown(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    # Before it is quoted: what is removed must not take the end of a quotation with it.
    return redacted(_cut(str(value), MAX_VALUE))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def configure_json_logging(level: str, stream: TextIO | None = None) -> None:
    """Log as JSON to stderr: our own lines from a level on, and what goes wrong in libraries."""
    output = logging.StreamHandler(stream or sys.stderr)
    output.setFormatter(JsonLines())
    logging.basicConfig(handlers=[output], force=True)
    set_log_level(level)
