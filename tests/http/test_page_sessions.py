"""A cookie stands for a token, for a while, and only in memory."""

from sage.http.page_sessions import LIFETIME_SECONDS, MAX_SESSIONS, MAX_SESSIONS_EACH, PageSessions
from tests.conftest import Clock


def test_a_session_stands_for_its_token_until_it_ends(clock: Clock) -> None:
    sessions = PageSessions(now=clock)
    cookie = f"a=b; sage_page={sessions.open('sage_token')}; c=d"
    found = sessions.find(cookie)
    assert found is not None
    assert found.token == "sage_token"
    clock.tick(LIFETIME_SECONDS)
    assert sessions.find(cookie) is None


def test_signing_out_ends_it(clock: Clock) -> None:
    sessions = PageSessions(now=clock)
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


def test_one_token_signs_nobody_else_out(clock: Clock) -> None:
    sessions = PageSessions(now=clock)
    other = sessions.open("other")
    mine = [sessions.open("mine") for _ in range(2 * MAX_SESSIONS)]
    assert sessions.find(f"sage_page={other}") is not None
    kept = [one for one in mine if sessions.find(f"sage_page={one}")]
    assert kept == mine[-MAX_SESSIONS_EACH:]


def test_scripts_and_other_sites_cannot_use_the_cookie() -> None:
    header = PageSessions(port=8000).set_cookie("x", secure=True)
    assert header.startswith("sage_page_8000=x; ")
    assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= set(header.split("; "))
