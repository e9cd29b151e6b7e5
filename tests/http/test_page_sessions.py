"""A cookie stands for a token, for a while, and only in memory."""

import hashlib
import os
from collections.abc import Callable

import pytest

from sage.http.page_sessions import (
    LIFETIME_SECONDS,
    MAX_SESSIONS,
    MAX_SESSIONS_EACH,
    MAX_TOKEN_BYTES,
    PageSession,
    PageSessions,
    Sessions,
    SharedSessions,
)
from tests.conftest import Clock


@pytest.fixture(params=[dict, SharedSessions], ids=["one process", "workers"])
def opened(request: pytest.FixtureRequest) -> Sessions:
    kept: Sessions = request.param()
    return kept


def in_a_child(work: Callable[[], bool]) -> bool:
    """Whether something is true in a process that was forked from this one."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_session_stands_for_its_token_until_it_ends(clock: Clock, opened: Sessions) -> None:
    sessions = PageSessions(now=clock, opened=opened)
    cookie = f"a=b; sage_page={sessions.open('sage_token')}; c=d"
    found = sessions.find(cookie)
    assert found is not None
    assert found.token == "sage_token"
    clock.tick(LIFETIME_SECONDS)
    assert sessions.find(cookie) is None


def test_signing_out_ends_it(clock: Clock, opened: Sessions) -> None:
    sessions = PageSessions(now=clock, opened=opened)
    cookie = f"sage_page={sessions.open('x')}"
    sessions.close(cookie)
    assert sessions.find(cookie) is None


def test_the_address_works_once() -> None:
    sessions = PageSessions(once="secret")
    assert sessions.open_once("secre") is None
    assert sessions.open_once("") is None
    assert sessions.open_once("secret")
    assert sessions.open_once("secret") is None


def test_a_server_without_such_an_address_has_none() -> None:
    assert PageSessions().open_once("") is None


def test_very_many_sessions_push_out_the_oldest(clock: Clock) -> None:
    sessions = PageSessions(now=clock)
    first, *_, last = [sessions.open(str(number)) for number in range(MAX_SESSIONS + 1)]
    assert sessions.find(f"sage_page={first}") is None
    assert sessions.find(f"sage_page={last}") is not None


def test_one_token_signs_nobody_else_out(clock: Clock, opened: Sessions) -> None:
    sessions = PageSessions(now=clock, opened=opened)
    other = sessions.open("other")
    mine = [sessions.open("mine") for _ in range(2 * MAX_SESSIONS)]
    assert sessions.find(f"sage_page={other}") is not None
    kept = [one for one in mine if sessions.find(f"sage_page={one}")]
    assert kept == mine[-MAX_SESSIONS_EACH:]


def test_scripts_and_other_sites_cannot_use_the_cookie() -> None:
    header = PageSessions(port=8000).set_cookie("x", secure=True)
    assert header.startswith("sage_page_8000=x; ")
    assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= set(header.split("; "))


def test_who_signs_in_or_out_in_one_process_does_in_all(clock: Clock) -> None:
    sessions = PageSessions(now=clock, opened=SharedSessions())
    cookie = f"sage_page={sessions.open('sage_token')}"

    def sign_out() -> bool:
        found = sessions.find(cookie)
        sessions.close(cookie)
        return found is not None and found.token == "sage_token"

    assert in_a_child(sign_out)
    assert sessions.find(cookie) is None


def test_no_token_stays_behind_where_a_session_was() -> None:
    shared = SharedSessions()
    shared[b"n" * 32] = PageSession("sage_secret", 1.0)
    del shared[b"n" * 32]
    assert shared._tokens.find(b"sage_secret") < 0
    assert len(shared) == 0
    with pytest.raises(KeyError):
        del shared[b"n" * 32]


def test_a_session_that_was_half_written_is_none() -> None:
    shared = SharedSessions()
    shared[b"n" * 32] = PageSession("sage_secret", 1.0)
    shared._tokens[0:1] = b"S"
    assert b"n" * 32 not in shared


def test_a_full_table_gives_the_place_of_the_oldest() -> None:
    shared = SharedSessions()
    names = [hashlib.sha256(bytes([n % 250, n // 250])).digest() for n in range(MAX_SESSIONS + 2)]
    for name in names:
        shared[name] = PageSession("t", 1.0)
    assert list(shared) == names[2:]


def test_a_token_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="bytes at most"):
        SharedSessions()[b"n" * 32] = PageSession("x" * (MAX_TOKEN_BYTES + 1), 1.0)
