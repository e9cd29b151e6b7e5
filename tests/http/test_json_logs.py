"""Log lines."""

import io
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sage.http.json_logs import configure_json_logging, redacted, request_id, request_id_from

TOKEN = "sage_0123456789ab_" + "A" * 43
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


NAMES = ("", "sage", "fastmcp", "asyncio")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers = root.handlers[:]
    levels = {name: logging.getLogger(name).level for name in NAMES}
    text = io.StringIO()
    configure_json_logging("info", text)
    yield text
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def last(stream: io.StringIO) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(stream.getvalue().splitlines()[-1])
    return line


def test_a_record_is_one_json_object_on_one_line(stream: io.StringIO) -> None:
    logging.getLogger("sage.x").warning("two\nlines and %s", "ünï")
    assert len(stream.getvalue().splitlines()) == 1
    line = last(stream)
    assert (line["level"], line["logger"]) == ("warning", "sage.x")
    assert line["message"] == "two\nlines and ünï"
    assert line["time"].endswith("+00:00")


def test_a_line_names_its_request(stream: io.StringIO) -> None:
    token = request_id.set("abc")
    logging.getLogger("sage").info("within")
    request_id.reset(token)
    assert last(stream)["request_id"] == "abc"
    logging.getLogger("sage").info("without")
    assert "request_id" not in last(stream)


def test_fields_and_errors_are_part_of_the_object(stream: io.StringIO) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("sage").exception("failed", extra={"fields": {"status": 500}})
    line = last(stream)
    assert line["status"] == 500
    assert "ValueError: broken" in line["error"]


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"/mcp?access_token={TOKEN}",
        f"Authorization: Bearer {JWT}",
        "authorization: bearer opaque-secret",
        "Basic dXNlcjpwYXNz",
        f"seen {JWT} here",
        "/mcp?token=opaque-secret&x=1",
    ],
)
def test_no_credential_is_logged(stream: io.StringIO, text: str) -> None:
    logging.getLogger("sage").info("%s", text, extra={"fields": {"path": text}})
    for secret in (TOKEN, JWT, "opaque-secret", "dXNlcjpwYXNz"):
        assert secret not in stream.getvalue()
    assert stream.getvalue().count("[removed]") == 2


def test_a_removed_credential_leaves_the_line_readable(stream: io.StringIO) -> None:
    logging.getLogger("sage").info('sent "Bearer abc\\" and "Bearer def"')
    assert last(stream)["message"] == 'sent "[removed]" and "[removed]"'


def test_ordinary_text_is_left_alone() -> None:
    text = "call sage_search with 8000 tokens; the token is not valid (any more)"
    assert redacted(text) == text


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\nb", TOKEN, "ü"])
def test_an_id_that_does_not_belong_in_a_log_is_replaced(given: str) -> None:
    assert len(request_id_from(given)) == 16


def test_an_id_that_a_proxy_gave_is_kept() -> None:
    assert request_id_from("req-1.2:3_4") == "req-1.2:3_4"


def test_libraries_do_not_fill_the_log(stream: io.StringIO) -> None:
    logging.getLogger("fastmcp.server").error("noise")
    logging.getLogger("mcp.server").info("noise")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_what_was_asked_is_in_no_line_of_a_library(stream: io.StringIO, level: str) -> None:
    configure_json_logging(level, stream)
    for name in ("mcp.server.lowlevel", "fastmcp", "uvicorn.error", "httpx2", "asyncio", "x"):
        logging.getLogger(name).debug("the query")
        logging.getLogger(name).info("the query")
    assert stream.getvalue() == ""


def test_a_line_is_short_whatever_is_in_it(stream: io.StringIO) -> None:
    logging.getLogger("sage").info("x" * 10**6, extra={"fields": {"path": "y" * 10**6}})
    try:
        raise ValueError("z" * 10**6)
    except ValueError:
        logging.getLogger("sage").exception("failed")
    assert all(len(line) < 30_000 for line in stream.getvalue().splitlines())


@pytest.mark.parametrize("cut", range(len(JWT) - 20, len(JWT)))
def test_a_credential_that_was_cut_is_removed_as_well(cut: int) -> None:
    assert redacted(f"x {JWT[:cut]}") == "x [removed]"


def steps(text: str) -> float:
    """The processor time that removing credentials takes, the best of three."""

    def once() -> float:
        started = time.process_time()
        redacted(text)
        return time.process_time() - started

    return min(once() for _ in range(3))


@pytest.mark.parametrize(
    "part",
    [
        "eyJ",
        "eyJ.",
        "eyJ-",
        "bearer ",
        "bearer\t\t",
        "token=",
        "sage_0123456789ab_",
        "key=&",
        "a.b-",
    ],
)
def test_removing_credentials_takes_no_longer_than_the_text_is_long(part: str) -> None:
    short, long = part * 3_000, part * 48_000
    # Sixteen times the text: linear is 16, quadratic 256.
    assert steps(long) < 100 * max(steps(short), 0.001)
