"""The page behind tokens: who is asked to sign in, what a session sees, and when it ends."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from sage.access.token_file import TokenFile
from sage.cache import owner
from sage.http.page_endpoint import page_app
from sage.page.site import PageRequest, PageResponse, Site
from tests.httpkit import Client, Reply, serving, write_base

ADDRESSES = ["/", "/?q=tests", "/context?task_type=coding&task=tests", "/health"]
ADDRESSES += [
    "/health/findings",
    "/health/care",
    "/read/guidelines",
    "/read/guidelines/secret-salaries",
]
ADDRESSES += ["/raw/guidelines/secret-salaries", "/choices", "/live"]
ADDRESSES += ["/why?q=narwhal&topic=guidelines%2Fsecret-salaries", "/?q=narwhal"]


@dataclass(frozen=True)
class Team:
    client: Client
    tokens: TokenFile

    def sign_in(self, token: str) -> Reply:
        kind = "Content-Type: application/x-www-form-urlencoded"
        return self.client.send("POST", "/sign-in", kind, body=f"token={quote(token)}".encode())

    def cookie(self, token: str) -> str:
        reply = self.sign_in(token)
        assert reply.status == 303
        return f"Cookie: {reply.headers['set-cookie'].split(';')[0]}"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("page")
    tokens = TokenFile(folder / "private" / "tokens.json")
    tokens.create("first")
    root = write_base(folder / "repo")
    with serving(root, tokens=tokens.path, require_token=True, page=True) as client:
        yield Team(client, tokens)


@pytest.mark.parametrize("address", ADDRESSES)
def test_nobody_sees_anything_before_signing_in(team: Team, address: str) -> None:
    reply = team.client.get(address)
    assert reply.status == 401
    assert b"<h1>Sign in</h1>" in reply.body
    assert b"narwhal table" not in reply.body


@pytest.mark.parametrize("token", ["", "sage_nothing", "x" * 9_000, "\n", "ü"])
def test_a_wrong_token_opens_nothing(team: Team, token: str) -> None:
    reply = team.sign_in(token)
    assert reply.status == 401
    assert "set-cookie" not in reply.headers


def test_a_token_for_all_layers_sees_every_page(team: Team) -> None:
    cookie = team.cookie(team.tokens.create("all"))
    assert b"narwhal" in team.client.get("/read/guidelines/secret-salaries", cookie).body


@pytest.mark.parametrize("address", ADDRESSES)
def test_layers_that_a_token_may_not_see_do_not_exist_for_it(team: Team, address: str) -> None:
    name = f"narrow-{ADDRESSES.index(address)}"
    cookie = team.cookie(team.tokens.create(name, ["core", "practices"]))
    reply = team.client.get(address, cookie)
    shown = reply.body.lower().replace(address.lower().encode(), b"")
    assert b"salaries" not in shown.replace(b"guidelines/secret-salaries", b"")
    assert b"narwhal table" not in shown


def test_what_is_kept_for_a_page_counts_for_whoever_looks(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[str] = []
    answer = Site.answer

    def noted(self: Site, request: PageRequest) -> PageResponse:
        owners.append(owner.get())
        return answer(self, request)

    monkeypatch.setattr(Site, "answer", noted)
    cookie = team.cookie(team.tokens.create("looks"))
    assert team.client.get("/?q=tests", cookie).status == 200
    assert owners == ["looks"]


def test_a_revoked_token_ends_its_session_at_once(team: Team) -> None:
    cookie = team.cookie(team.tokens.create("short"))
    assert team.client.get("/", cookie).status == 200
    team.tokens.revoke("short")
    assert team.client.get("/", cookie).status == 401


def test_signing_out_ends_the_session(team: Team) -> None:
    cookie = team.cookie(team.tokens.create("leaves"))
    assert team.client.send("POST", "/sign-out", cookie).status == 303
    assert team.client.get("/", cookie).status == 401


def test_another_site_cannot_sign_anybody_in(team: Team) -> None:
    token = team.tokens.create("other-site")
    reply = team.client.send(
        "POST", "/sign-in", "Origin: https://evil.example", body=f"token={token}".encode()
    )
    assert reply.status == 403


def test_files_need_no_session_and_may_be_kept(team: Team) -> None:
    reply = team.client.get("/static/x/page.css")
    assert reply.status == 200
    assert "immutable" in reply.headers["cache-control"]


def test_pages_themselves_are_kept_by_nobody(team: Team) -> None:
    cookie = team.cookie(team.tokens.create("kept"))
    assert team.client.get("/", cookie).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pages_take_no_other_method(team: Team, method: str) -> None:
    assert team.client.send(method, "/health").status == 405


def test_without_the_option_there_is_no_page(tmp_path: Path) -> None:
    with serving(write_base(tmp_path / "repo")) as client:
        assert client.get("/").status == 404


def test_a_page_for_one_person_serves_no_mcp_and_nobody_else(tmp_path: Path) -> None:
    with serving(write_base(tmp_path / "repo"), page=True, page_key="secret") as client:
        assert client.get("/").status == 401
        assert client.get("/open/wrong").status == 401
        opened = client.get("/open/secret")
        assert opened.status == 303
        assert client.get("/open/secret").status == 401
        cookie = f"Cookie: {opened.headers['set-cookie'].split(';')[0]}"
        assert client.get("/", cookie).status == 200
        assert client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, cookie).status == 405


def test_a_page_keeps_its_place_until_it_is_made_though_its_client_is_gone() -> None:
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def answer(self, _: PageRequest) -> PageResponse:
            begun.set()
            may_end.wait(60)
            return PageResponse(b"")

    async def work() -> bool:
        async def nothing(*_: object) -> Any:
            return None

        scope = {"path": "/", "query_string": b""}
        call = asyncio.ensure_future(page_app(cast(Site, Slow()))(scope, nothing, nothing))
        await asyncio.to_thread(begun.wait, 60)
        call.cancel()
        await asyncio.wait({call}, timeout=0.05)
        was_done = call.done()
        may_end.set()
        await asyncio.wait({call})
        return was_done

    assert asyncio.run(work()) is False
