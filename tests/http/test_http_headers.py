"""Pages of other origins: which may ask, and what their browsers are told.

The whole matrix of names is in `test_http_matrix`.
"""

from collections.abc import Iterator

import pytest

from tests.httpkit import Client, Reply, serving, write_base

ENDPOINTS = ("/healthz", "/readyz", "/metrics", "/mcp")
EVIL = "evil.example"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root = write_base(tmp_path_factory.mktemp("headers") / "repo")
    with serving(root) as client:
        yield client


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root = write_base(tmp_path_factory.mktemp("shared") / "repo")
    with serving(root, allow_origins=("https://tools.example.com",)) as client:
        yield client


def request(client: Client, path: str, *headers: str, host: str | None, target: str = "") -> Reply:
    if not path.endswith("/mcp"):
        return client.send("GET", target or path, *headers, host=host)
    kind = ("Content-Type: application/json", "Accept: application/json")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    return client.send("POST", target or path, *kind, *headers, host=host, body=body)


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("target", ["ftp://127.0.0.1{path}", "//evil.example{path}"])
def test_a_target_that_is_no_url_of_the_web_is_a_path(
    client: Client, path: str, target: str
) -> None:
    asked = target.replace("{path}", path)
    assert request(client, path, host="127.0.0.1", target=asked).status == 404


def test_a_refusal_says_what_to_do_and_repeats_nothing(client: Client) -> None:
    reply = client.get("/mcp", host="evil.example")
    assert reply.json["error"]["message"].endswith("allow it with --allow-host")
    assert reply.json["id"] is None
    assert b"evil" not in reply.body


@pytest.mark.parametrize("path", ENDPOINTS)
def test_an_allowed_origin_may_ask_and_read(shared: Client, path: str) -> None:
    reply = request(shared, path, "Origin: https://tools.example.com", host="127.0.0.1")
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://tools.example.com"
    assert reply.headers["vary"] == "origin"
    assert "access-control-allow-credentials" not in reply.headers


def test_a_browser_may_ask_in_advance_from_an_allowed_origin_only(shared: Client) -> None:
    asks = [
        "Access-Control-Request-Headers: authorization,content-type,mcp-protocol-version",
        "Access-Control-Request-Method: POST",
    ]
    reply = shared.send("OPTIONS", "/mcp", "Origin: https://tools.example.com", *asks)
    assert reply.status == 204
    assert reply.headers["access-control-allow-methods"] == "POST"
    assert reply.headers["access-control-allow-headers"].startswith("authorization,")
    assert shared.send("OPTIONS", "/mcp", f"Origin: https://{EVIL}", *asks).status == 403
    assert shared.send("OPTIONS", "/mcp", *asks).status == 405


def test_without_allowed_origins_there_is_no_sharing(client: Client) -> None:
    own = f"Origin: http://127.0.0.1:{client.port}"
    reply = client.send("OPTIONS", "/mcp", own, host=f"127.0.0.1:{client.port}")
    assert reply.status == 405
    assert not any(name.startswith("access-control") for name in reply.headers)
