"""What is noise in a pasted text, and what is the message."""

import time

import pytest

from sage.search.query import parse
from sage.terms.analysis import Analyzer, is_message, is_pasted, without_noise

TRACE = """\
2026-03-04T10:11:12.123Z ERROR worker
Traceback (most recent call last):
  File "/srv/app/lib/python3.11/site-packages/celery/app/trace.py", line 451, in trace_task
    R = retval = fun(*args, **kwargs)
                 ^^^^^^^^^^^^^^^^^^^^
OperationalError: could not connect to server: Connection refused
"""


def words(text: str) -> set[str]:
    return {word.form for word in parse(text, Analyzer()).words}


def test_a_stack_trace_leaves_its_message() -> None:
    found = words(TRACE)
    assert {"operationalerror", "connect", "server", "connection", "refused"} <= found
    assert not {"sitepackages", "451", "srv", "2026"} & found


def test_frames_of_other_languages_go_too() -> None:
    java = "java.lang.IllegalStateException: no lock\n\tat com.acme.Lock.take(Lock.java:12)\n"
    assert "acme" not in without_noise(java)
    assert "no lock" in without_noise(java)


@pytest.mark.parametrize(
    "text",
    [
        'pods "web-1" is forbidden: User "system:serviceaccount:a" cannot list resource "pods"',
        'Error response from daemon: pull access denied for "alpine"',
    ],
)
def test_quotes_of_a_program_are_no_phrases(text: str) -> None:
    assert is_message(text)
    assert parse(text, Analyzer()).phrases == ()


def test_quotes_of_a_person_are() -> None:
    assert parse('"idempotency key" retry', Analyzer()).phrases
    assert not is_pasted('"idempotency key" retry')


def test_dashes_in_a_pasted_text_leave_nothing_out() -> None:
    assert parse("ran it\n-kafka failed", Analyzer()).excluded == ()
    assert parse("retry -kafka", Analyzer()).excluded


def test_a_text_of_nothing_but_noise_is_still_searched() -> None:
    assert without_noise("2026-03-04T10:11:12Z") == "2026-03-04T10:11:12Z"


@pytest.mark.parametrize("piece", [" ", "^ ", "/", "a/", "../", "at ", "0", "0a", '"', ":1", "~"])
def test_no_text_takes_long(piece: str) -> None:
    started = time.process_time()
    text = "x\n" + piece * (20_000 // len(piece)) + "!"
    is_pasted(text), is_message(text), without_noise(text)
    assert time.process_time() - started < 5
