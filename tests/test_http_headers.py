"""The header matrix: which Host, Origin and target is answered how, on every endpoint."""

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


def visit(client: Client, path: str, *headers: str, host: str | None, target: str = "") -> Reply:
    if not path.endswith("/mcp"):
        return client.send("GET", target or path, *headers, host=host)
    kind = ("Content-Type: application/json", "Accept: application/json")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    return client.send("POST", target or path, *kind, *headers, host=host, body=body)


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1", None, 200),
        ("127.0.0.1:{port}", None, 200),
        ("127.0.0.1:1", None, 200),
        ("localhost:{port}", None, 200),
        ("LocalHost.", None, 200),
        ("[::1]:{port}", None, 200),
        ("[0::1]", None, 200),
        (EVIL, None, 421),
        (f"{EVIL}:{{port}}", None, 421),
        ("127.0.0.1.evil.example", None, 421),
        ("127.0.0.1@evil.example", None, 421),
        ("10.9.8.7", None, 421),
        ("[fe80::1]", None, 421),
        ("127.0.0.1:99999", None, 421),
        ("", None, 421),
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", 200),
        ("localhost:{port}", "http://localhost:{port}", 200),
        ("[::1]:{port}", "http://[::1]:{port}", 200),
        ("127.0.0.1:{port}", "http://localhost:{port}", 403),
        ("127.0.0.1:{port}", "http://127.0.0.1:1", 403),
        ("127.0.0.1:{port}", f"http://{EVIL}", 403),
        ("127.0.0.1:{port}", f"http://{EVIL}:{{port}}", 403),
        ("127.0.0.1:{port}", "null", 403),
        ("127.0.0.1:{port}", "", 403),
        (EVIL, f"http://{EVIL}", 421),
    ],
)
def test_hosts_and_origins(
    client: Client, path: str, host: str, origin: str | None, status: int
) -> None:
    lines = [] if origin is None else [f"Origin: {origin}".replace("{port}", str(client.port))]
    reply = visit(client, path, *lines, host=host.replace("{port}", str(client.port)))
    assert reply.status == status
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://127.0.0.1:{port}{path}", "127.0.0.1", 200),
        ("HTTP://localhost{path}", "127.0.0.1", 200),
        ("http://evil.example{path}", "127.0.0.1", 421),
        ("http://127.0.0.1{path}", EVIL, 421),
        ("http://127.0.0.1@evil.example{path}", "127.0.0.1", 421),
        ("http://{path}", "127.0.0.1", 421),
        ("ftp://127.0.0.1{path}", "127.0.0.1", 404),
        ("//evil.example{path}", "127.0.0.1", 404),
    ],
)
def test_targets_that_are_whole_urls(
    client: Client, path: str, target: str, host: str, status: int
) -> None:
    asked = target.replace("{path}", path).replace("{port}", str(client.port))
    assert visit(client, path, host=host, target=asked).status == status


@pytest.mark.parametrize("path", ENDPOINTS)
def test_no_host_and_two_hosts_are_no_requests(client: Client, path: str) -> None:
    assert client.raw(f"GET {path} HTTP/1.1\r\n\r\n".encode()).status == 400
    assert client.raw(f"GET {path} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".encode()).status == 400
    assert client.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode()).status == 421


@pytest.mark.parametrize("path", ENDPOINTS)
def test_two_origins_are_one_too_many(client: Client, path: str) -> None:
    own = f"Origin: http://127.0.0.1:{client.port}"
    assert visit(client, path, own, own, host=f"127.0.0.1:{client.port}").status == 403


def test_a_refusal_says_what_to_do_and_repeats_nothing(client: Client) -> None:
    reply = client.get("/mcp", host="evil.example")
    assert reply.json["error"]["message"].endswith("allow it with --allow-host")
    assert reply.json["id"] is None
    assert b"evil" not in reply.body


@pytest.mark.parametrize("path", ENDPOINTS)
def test_an_allowed_origin_may_ask_and_read(shared: Client, path: str) -> None:
    reply = visit(shared, path, "Origin: https://tools.example.com", host="127.0.0.1")
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
