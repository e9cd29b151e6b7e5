"""Log lines as JSON objects: one a line, each with its request, none with a secret."""

import json
import logging
import re
import secrets
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

# The request on whose behalf the running code works, "" outside of any.
request_id: ContextVar[str] = ContextVar("sage_request_id", default="")

FIELDS = "fields"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SECRETS = re.compile(
    r"""
    sage_[0-9a-f]{12}_[\w-]+                       # a token of ours
    |eyJ[\w-]+\.[\w-]+\.[\w-]*                     # a JWT
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
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps({name: _shown(value) for name, value in line.items()})


def _shown(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    # Before it is quoted: what is removed must not take the end of a quotation with it.
    return redacted(str(value))


def configure_json_logging(level: str, stream: TextIO | None = None) -> None:
    """Log everything, our own lines and those of libraries, as JSON to stderr from a level on."""
    output = logging.StreamHandler(stream or sys.stderr)
    output.setFormatter(JsonLines())
    logging.basicConfig(handlers=[output], level=level.upper(), force=True)
    if level != "debug":
        # FastMCP logs a traceback for every resource that a client asks for in vain, the
        # protocol's own package a line for every request, asyncio one for clients that went away.
        logging.getLogger("fastmcp").setLevel(logging.CRITICAL)
        logging.getLogger("mcp").setLevel(logging.WARNING)
        logging.getLogger("asyncio").setLevel(logging.ERROR)
