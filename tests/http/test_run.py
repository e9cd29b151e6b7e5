"""The server over HTTP: its endpoints, and the answers of MCP as over stdio."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sage import __version__
from sage.http.run import bound_sockets
from tests.httpkit import NEW, OLD, Client, read_reply, serving, write_base
from tests.processes import Process
from tests.processes import serving as serving_stdio

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sage_info", {}),
    ("sage_get_knowledge", {"layer": "all", "timeout_ms": 30_000}),
    ("sage_get_knowledge", {"layer": "practices", "topic": "testing#fixtures"}),
    ("sage_get_knowledge", {"layer": "core", "topic": "nothing like it"}),
    ("sage_get_knowledge", {"layer": "nowhere"}),
    ("sage_get_knowledge", {"layer": "core", "max_tokens": "3"}),
    ("sage_search", {"query": "tests"}),
    ("sage_search", {"query": "walruss"}),
    ("sage_search", {"query": " "}),
    ("sage_get_context", {"task_type": "coding", "task": "write a test"}),
    ("sage_get_knowledge", {}),
    ("sage_get_knowledge", {"layer": "core", "tpic": "x"}),
    ("sage_get_knowledge", {"layer": 7}),
    ("sage_get_knowledge", {"layer": "practices", "topic": "../../etc/passwd"}),
    ("sage_get_knowledge", {"layer": "all", "max_tokens": 12}),
    ("sage_search", {"query": "tests", "limit": 1, "layer": "core"}),
    ("sage_search", {"query": "日本 \ud83c\udf89 \u202e"}),
    ("sage_search", {"query": "tests", "limit": 99}),
    ("sage_search", {"query": ["tests"]}),
    ("sage_get_context", {"task_type": "debugging", "language": "go", "token_budget": 60}),
    ("sage_get_context", {"task_type": "reviewing", "current_files": ["tests/test_a.py"]}),
    ("sage_get_context", {"task_type": "dancing"}),
    ("sage_info", {"verbose": True}),
    ("sage_nothing", {}),
)
TOPICS = {"type": "ref/resource", "uri": "knowledge://{layer}/{topic*}"}
PROMPT = {"type": "ref/prompt", "name": "sage_task_prompt"}
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "knowledge://practices/testing"}),
    ("resources/read", {"uri": "knowledge://nowhere"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "sage_task_prompt", "arguments": {"task_type": "coding"}}),
    ("prompts/get", {"name": "sage_task_prompt", "arguments": {"task_type": "dancing"}}),
    ("prompts/get", {"name": "nothing"}),
    ("resources/list", {"cursor": "x"}),
    ("resources/read", {"uri": "knowledge://all"}),
    ("resources/read", {"uri": "knowledge://practices/testing#fixtures"}),
    ("resources/read", {"uri": "file:///etc/passwd"}),
    ("completion/complete", {"ref": TOPICS, "argument": {"name": "layer", "value": "pr"}}),
    ("completion/complete", {"ref": TOPICS, "argument": {"name": "topic", "value": "te"}}),
    ("completion/complete", {"ref": PROMPT, "argument": {"name": "task_type", "value": "re"}}),
    ("completion/complete", {"ref": PROMPT, "argument": {"name": "nothing", "value": ""}}),
    ("tools/call", {"name": 7}),
    ("tools/call", {}),
    ("ping", {}),
    ("nothing/like/it", {}),
)
_MOMENTS = re.compile(
    rb'(\\?"(?:load_time_ms|query_time_ms|uptime_seconds|from_cache|hit_rate|where|message)\\?")'
    rb':(?:\\?"[^"]*\\?"|[\w.]+)'
)
# What says when or how fast, not what.
MOMENTS = {"load_time_ms", "query_time_ms", "uptime_seconds", "from_cache", "cache", "where"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("http") / "repo")


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    with serving(root) as client:
        yield client


def timeless(value: Any) -> Any:
    """The value without moments, the text of an answer included."""
    if isinstance(value, dict):
        return {key: timeless(part) for key, part in value.items() if key not in MOMENTS}
    if isinstance(value, list):
        return [timeless(part) for part in value]
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(timeless(json.loads(value)), ensure_ascii=False, separators=(",", ":"))
    return value


def test_it_says_that_it_is_alive_and_ready(client: Client) -> None:
    alive, ready = client.get("/healthz"), client.get("/readyz")
    assert (alive.status, alive.body) == (200, b"ok\n")
    assert (ready.status, ready.json) == (200, {"ready": True})


def asked_over_http(client: Client, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return client.post(message, f"Mcp-Protocol-Version: {OLD}").body


def asked_over_stdio(process: Process, method: str, params: dict[str, Any]) -> bytes:
    process.send({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    return process.receive_line().removesuffix(b"\n")


def momentless(body: bytes) -> bytes:
    """The very bytes, but for what says when, how fast and where the index lies."""
    return _MOMENTS.sub(rb"\1:0", body)


def test_answers_over_http_are_those_over_stdio_byte_for_byte(client: Client, root: Path) -> None:
    calls = [("tools/call", {"name": tool, "arguments": given}) for tool, given in CALLS]
    with serving_stdio(root) as process:
        process.greet()
        process.call("sage_search", {"query": "tests"})  # waits for the index
        for method, params in [*calls, *REQUESTS]:
            over_stdio = asked_over_stdio(process, method, params)
            over_http = asked_over_http(client, method, params)
            assert momentless(over_http) == momentless(over_stdio), (method, params)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_both_eras_give_one_answer(client: Client, tool: str, arguments: dict[str, Any]) -> None:
    old, new = (timeless(client.call(tool, arguments, era=era)) for era in (OLD, NEW))
    assert new["content"] == old["content"]
    assert new.get("structuredContent") == old.get("structuredContent")
    assert new.get("isError") == old.get("isError")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_greeting_is_answered_in_the_version_it_proposes(client: Client, version: str) -> None:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    result = reply.json["result"]
    assert result["protocolVersion"] == version
    assert (result["serverInfo"]["name"], result["serverInfo"]["version"]) == ("sage", __version__)
    assert "practices (2)" in result["instructions"]
    assert "mcp-session-id" not in reply.headers


@pytest.mark.parametrize("version", [OLD, NEW])
def test_half_a_character_as_an_id_is_answered(client: Client, version: str) -> None:
    headers = ["Content-Type: application/json", "Accept: application/json"]
    headers.append(f"Mcp-Protocol-Version: {version}")
    body = b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}'
    reply = client.send("POST", "/mcp", *headers, body=body)
    assert reply.status in (200, 400)
    assert reply.json["jsonrpc"] == "2.0"


def test_the_new_era_is_discovered(client: Client) -> None:
    result = client.ask("server/discover", era=NEW)
    assert NEW in result["supportedVersions"]
    assert "practices (2)" in result["instructions"]


def test_a_version_that_is_not_served_is_told_which_are(client: Client) -> None:
    reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, "Mcp-Protocol-Version: 1999")
    assert reply.status == 400
    assert b"1999" not in reply.body or NEW.encode() in reply.body


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, 202),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, 202),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, 202),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], 400),
        ({"id": 1, "method": "ping"}, 400),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, 400),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, 400),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, 400),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, 400),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, 400),
        ("ping", 400),
        (None, 400),
    ],
)
def test_what_is_no_request_gets_no_result(client: Client, message: Any, status: int) -> None:
    reply = client.post(message)
    assert reply.status == status
    assert b"pydantic" not in reply.body
    assert b"Traceback" not in reply.body


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 50_000, b"\xff\xfe", b'{"a":' + b"9" * 5_000 + b"}"]
)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_what_is_no_json_is_told_so(client: Client, body: bytes, version: str) -> None:
    headers = ["Content-Type: application/json", "Accept: application/json"]
    headers.append(f"Mcp-Protocol-Version: {version}")
    reply = client.send("POST", "/mcp", *headers, body=body)
    assert reply.status == 400
    assert reply.json["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Content-Type: text/plain", "Accept: application/json"), 415),
        (("Accept: application/json",), 415),
        (("Content-Type: application/json", "Accept: text/html"), 406),
        (("Content-Type: application/json",), 406),
        (("Content-Type: application/json; charset=utf-8", "Accept: */*"), 200),
        (("Content-Type: APPLICATION/JSON", "Accept: application/*"), 200),
    ],
)
def test_the_kind_of_message_is_agreed_on(
    client: Client, headers: tuple[str, ...], status: int
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert client.send("POST", "/mcp", *headers, body=body).status == status


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/mcp", 405, "POST"),
        ("DELETE", "/mcp", 405, "POST"),
        ("PUT", "/mcp", 405, "POST"),
        ("POST", "/healthz", 405, "GET, HEAD"),
        ("POST", "/metrics", 405, "GET, HEAD"),
        ("HEAD", "/healthz", 200, None),
        ("GET", "/", 404, None),
        ("GET", "/mcp/../healthz", 404, None),
        ("GET", "/.well-known/oauth-protected-resource", 404, None),
        ("OPTIONS", "*", 404, None),
    ],
)
def test_methods_and_paths(
    client: Client, method: str, path: str, status: int, allowed: str | None
) -> None:
    reply = client.send(method, path)
    assert reply.status == status
    assert reply.headers.get("allow") == allowed


def test_a_slash_at_the_end_makes_no_difference(client: Client) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    kind = ("Content-Type: application/json", "Accept: application/json")
    assert client.send("POST", "/mcp/", *kind, body=body).json["result"] == {}


def test_it_can_be_elsewhere(root: Path) -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    kind = ("Content-Type: application/json", "Accept: application/json")
    with serving(root, path="/team/mcp") as client:
        assert client.send("POST", "/team/mcp", *kind, body=ping).json["result"] == {}
        assert client.send("POST", "/mcp", *kind, body=ping).status == 404
        assert client.get("/healthz").status == 200


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="UNTESTED: this machine has no IPv6")
def test_it_can_listen_on_ipv6(root: Path) -> None:
    with serving(root, address="::1") as client:
        for host in (f"[::1]:{client.port}", "[::1]", "localhost", "127.0.0.1"):
            assert client.get("/metrics", host=host).status == 200
        own = f"[::1]:{client.port}"
        assert client.get("/metrics", f"Origin: http://{own}", host=own).status == 200
        assert client.get("/metrics", "Origin: http://[::2]", host=own).status == 403
        assert client.get("/metrics", host="[::2]").status == 421


def test_a_connection_serves_many_requests(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port), 10) as connection:
        for _ in range(3):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_reply(connection).status == 200


def test_every_answer_has_an_id_and_is_not_stored(client: Client) -> None:
    given = client.get("/healthz", "X-Request-Id: from-the-proxy")
    made = client.get("/nothing", "X-Request-Id: not fit for a log")
    assert given.headers["x-request-id"] == "from-the-proxy"
    assert len(made.headers["x-request-id"]) == 16
    for reply in (given, made):
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "server" not in reply.headers


def test_metrics_count_calls_errors_times_and_the_index(client: Client) -> None:
    client.call("sage_search", {"query": "walrus"})
    client.call("sage_get_knowledge", {"layer": "nowhere"})
    client.ask("resources/read", {"uri": "knowledge://core/principles"})
    client.call("made_up_name", {})
    page = client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = page.body.decode()
    for sample in (
        'sage_calls_total{tool="sage_search",outcome="ok"}',
        'sage_calls_total{tool="sage_get_knowledge",outcome="INVALID_INPUT"}',
        'sage_calls_total{tool="resource",outcome="ok"}',
        'sage_calls_total{tool="unknown",outcome="NOT_FOUND"}',
        'sage_call_seconds_bucket{tool="sage_search",le="+Inf"}',
        'sage_http_requests_total{endpoint="/mcp",status="200"}',
        'sage_documents{layer="practices"} 2',
        "sage_index_documents 4",
        "sage_reload_seconds_count 1",
        "sage_problems 0",
        "sage_cache_hit_ratio",
        "sage_ready 1",
        "process_resident_memory_bytes",
    ):
        assert sample in text
    assert "made_up_name" not in text


def test_the_guide_names_every_metric_and_no_other(client: Client) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text("utf-8")
    operating = guide.partition("\n## Operating it\n")[2].partition("\n#")[0]
    shown = set(re.findall(r"^# TYPE (\S+)", client.get("/metrics").body.decode(), re.MULTILINE))
    of_replicas = {"sage_generation", "sage_behind_seconds"}
    assert shown | of_replicas == set(re.findall(r"`((?:sage|process)_[a-z_]+)`", operating))


def test_an_edit_is_in_the_next_answer(client: Client, root: Path) -> None:
    page = root / ".knowledge" / "practices" / "fresh.md"
    page.write_text("# Fresh\n\nA page about the okapi.\n")
    found = client.call("sage_search", {"query": "okapi"})["structuredContent"]
    page.unlink()
    gone = client.call("sage_search", {"query": "okapi"})["structuredContent"]
    assert [result["topic"] for result in found["results"]] == ["practices/fresh"]
    assert gone["results"] == []


def test_a_page_of_this_server_may_not_come_through_a_proxy(client: Client) -> None:
    """A server without tokens behind a proxy would be open to all whom the proxy lets through."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for header in ("X-Forwarded-For: 10.0.0.9", "Forwarded: for=10.0.0.9", "Via: 1.1 proxy"):
        assert client.post(message, header).status == 403


def test_sockets_name_their_protocol_so_that_answers_leave_at_once() -> None:
    (listening,) = bound_sockets("127.0.0.1", 0)
    assert listening.proto == socket.IPPROTO_TCP
    listening.close()
