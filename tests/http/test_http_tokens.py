"""What a token for some layers sees, and tokens that a company's single sign-on signs.

Which token is answered how on which endpoint is in `test_http_matrix`.
"""

import base64
import hmac
import json
import shutil
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sage.access.options import JwtOptions
from sage.access.token_file import TokenFile
from sage.errors import ConfigError
from tests.http.test_run import timeless
from tests.httpkit import NEW, OLD, Client, Reply, serving, write_base


@dataclass(frozen=True)
class Team:
    """A server that asks for tokens, and the file they are in."""

    client: Client
    tokens: TokenFile

    def ping(self, header: str) -> Reply:
        return self.client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, header)

    def make(self, name: str, *layers: str) -> str:
        return bearer(self.tokens.create(name, layers or None))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("tokens")
    tokens = TokenFile(folder / "private" / "tokens.json")
    tokens.create("first")
    with serving(write_base(folder / "repo"), tokens=tokens.path, require_token=True) as client:
        yield Team(client, tokens)


def bearer(value: str) -> str:
    return f"Authorization: Bearer {value}"


def test_a_refusal_does_not_say_what_is_wrong_with_a_token(team: Team) -> None:
    old = TokenFile(team.tokens.path, now=lambda: time.time() - 3_600)
    expired = bearer(old.create("expired", lifetime_seconds=60))
    said = {team.ping(header).body for header in (expired, bearer("x"), bearer("A" * 9_000))}
    assert len(said) == 1
    assert team.ping(expired).json["error"]["message"] == "the token is not valid (any more)"


@pytest.mark.parametrize("era", [OLD, NEW])
def test_a_token_for_some_layers_sees_what_a_server_of_these_layers_shows(
    team: Team, tmp_path: Path, era: str
) -> None:
    scoped = team.make(f"scoped-{era}", "core", "practices")
    narrow = write_base(tmp_path / "narrow")
    (narrow / ".knowledge" / "sage.yaml").write_text("layers: [core, practices]\n")
    # A token tells nothing of other layers: there is no sign of them on the other server either.
    shutil.rmtree(narrow / ".knowledge" / "guidelines")
    with serving(narrow) as other:
        for method, params in SEEN:
            expected = timeless(other.ask(method, params, era=era))
            assert timeless(team.client.ask(method, params, scoped, era=era)) == expected, params


SEEN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/read", {"uri": "knowledge://all"}),
    ("resources/read", {"uri": "knowledge://guidelines/secret-salaries"}),
    ("prompts/get", {"name": "sage_task_prompt", "arguments": {"task_type": "coding"}}),
    ("tools/call", {"name": "sage_get_knowledge", "arguments": {"layer": "all"}}),
    ("tools/call", {"name": "sage_get_knowledge", "arguments": {"layer": "guidelines"}}),
    (
        "tools/call",
        {"name": "sage_get_knowledge", "arguments": {"layer": "all", "topic": "salaries"}},
    ),
    ("tools/call", {"name": "sage_search", "arguments": {"query": "tests"}}),
    ("tools/call", {"name": "sage_search", "arguments": {"query": "narwhal"}}),
    ("tools/call", {"name": "sage_search", "arguments": {"query": "narwhall"}}),
    ("tools/call", {"name": "sage_search", "arguments": {"query": "pay", "layer": "guidelines"}}),
    (
        "tools/call",
        {"name": "sage_get_context", "arguments": {"task_type": "coding", "task": "salaries"}},
    ),
    ("tools/call", {"name": "sage_info", "arguments": {}}),
)


ECHO = '"data": {"uri": "knowledge://guidelines/secret-salaries"}'


def test_nothing_of_another_layer_leaves(team: Team) -> None:
    scoped = team.make("leak", "core", "practices")
    asked = [json.dumps(team.client.ask(method, params, scoped)) for method, params in SEEN]
    greeting = {
        "protocolVersion": OLD,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    asked.append(json.dumps(team.client.ask("initialize", greeting, scoped)))
    for value in ("layer", "topic", "language"):
        params = {
            "ref": {"type": "ref/resource", "uri": "knowledge://{layer}/{topic*}"},
            "argument": {"name": value, "value": ""},
        }
        asked.append(json.dumps(team.client.ask("completion/complete", params, scoped)))
    for answer in asked:
        # What the caller itself sent comes back: a name, and an address.
        without_echo = answer.replace('\\"guidelines\\"', "").replace(ECHO, "")
        for word in ("salaries.md", "secret-salaries", "narwhal table", "guidelines ("):
            assert word not in without_echo
    assert "core (1)" in asked[-4]


def test_a_scope_that_names_every_layer_is_the_whole_server(team: Team) -> None:
    every = team.make("every", "practices", "core", "guidelines", "frameworks")
    listed = team.client.ask("resources/list", {}, every)["resources"]
    assert len(listed) == 4


def test_an_edit_is_seen_through_every_scope(team: Team) -> None:
    scoped = team.make("edits", "practices")
    assert (
        team.client.call("sage_search", {"query": "okapi"}, scoped)["structuredContent"]["total"]
        == 0
    )
    root = team.tokens.path.parent.parent / "repo" / ".knowledge"
    (root / "practices" / "okapi.md").write_text("# Okapi\n\nAbout the okapi.\n")
    (root / "core" / "okapi.md").write_text("# Okapi\n\nAbout the okapi.\n")
    found = team.client.call("sage_search", {"query": "okapi"}, scoped)["structuredContent"]
    (root / "practices" / "okapi.md").unlink()
    (root / "core" / "okapi.md").unlink()
    assert [result["path"] for result in found["results"]] == [".knowledge/practices/okapi.md"]


class _Keys(BaseHTTPRequestHandler):
    """An issuer's public keys."""

    keys: ClassVar[dict[str, Any]] = {}

    def do_GET(self) -> None:
        body = json.dumps(self.keys).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return None


LEFT_OUT = object()


@dataclass(frozen=True)
class Issuer:
    """A company's single sign-on."""

    key: Any
    client: Client

    def token(self, **changes: Any) -> str:
        from joserfc import jwt

        claims = {"iss": "https://id.example", "aud": "sage", "sub": "ada", "exp": time.time() + 60}
        claims |= changes
        kept = {name: value for name, value in claims.items() if value is not LEFT_OUT}
        return bearer(jwt.encode({"alg": "RS256", "kid": "k1"}, kept, self.key))

    def ping(self, header: str) -> int:
        return self.client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, header).status


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, {"kid": "k1"})
    _Keys.keys = {"keys": [{**key.as_dict(private=False), "kid": "k1", "alg": "RS256"}]}
    folder = tmp_path_factory.mktemp("sso")
    with socketserver.TCPServer(("127.0.0.1", 0), _Keys) as keys:
        threading.Thread(target=keys.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{keys.server_address[1]}/jwks"
        sign_on = JwtOptions("https://id.example", "sage", jwks_uri=uri)
        tokens = TokenFile(folder / "tokens.json")
        with serving(write_base(folder / "repo"), jwt=sign_on, tokens=tokens.path) as client:
            yield Issuer(key, client)
        keys.shutdown()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"aud": ["other", "sage"]}, 200),
        ({"iss": "https://evil.example"}, 401),
        ({"aud": "other"}, 401),
        ({"aud": None}, 401),
        ({"aud": LEFT_OUT}, 401),
        ({"iss": None}, 401),
        ({"iss": LEFT_OUT}, 401),
        ({"exp": 1}, 401),
        ({"exp": None}, 401),
        ({"exp": LEFT_OUT}, 401),
        ({"nbf": time.time() + 3_600}, 401),
        ({"nbf": None}, 401),
        ({"sub": LEFT_OUT}, 401),
        ({"sage_layers": None}, 403),
        ({"sage_layers": ["core"]}, 200),
        ({"sage_layers": "core practices"}, 200),
        ({"sage_layers": []}, 403),
        ({"sage_layers": ["marketing"]}, 403),
        ({"sage_layers": {"core": True}}, 403),
    ],
)
def test_tokens_of_single_sign_on(issuer: Issuer, changes: dict[str, Any], status: int) -> None:
    assert issuer.ping(issuer.token(**changes)) == status


def signed_with_public_key(claims: dict[str, Any], key: bytes) -> str:
    """What an attacker makes of a public key when a server lets the token choose its algorithm."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "k1"}, claims)]
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    digest = hmac.digest(key, signed, "sha256")
    return (signed + b"." + base64.urlsafe_b64encode(digest).rstrip(b"=")).decode()


def test_a_signature_counts(issuer: Issuer) -> None:
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    claims = {"iss": "https://id.example", "aud": "sage", "sub": "eve", "exp": time.time() + 60}
    stranger = RSAKey.generate_key(2048, {"kid": "k1"})
    forged = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, stranger)
    confused = signed_with_public_key(claims, issuer.key.as_pem(private=False))
    for value in (forged, confused, issuer.token().split()[-1][:-4] + "AAAA"):
        assert issuer.ping(bearer(value)) == 401


def test_a_token_whose_header_is_a_thousand_lists_is_not_valid(issuer: Issuer) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 5_000 + b"]" * 500).decode().rstrip("=")
    for value in (f"{deep}.e30.x", f"e30.{deep}.x", f"{deep}.{deep}.{deep}"[:8_000]):
        assert issuer.ping(bearer(value)) == 401


def test_single_sign_on_can_be_for_some_layers(issuer: Issuer) -> None:
    scoped = issuer.token(sage_layers=["practices"])
    listed = issuer.client.ask("resources/list", {}, scoped)["resources"]
    assert {page["name"].split("/")[0] for page in listed} == {"practices"}


def test_a_server_for_others_does_not_start_without_a_door(tmp_path: Path) -> None:
    root = write_base(tmp_path / "repo")
    for options in ({"require_token": True}, {"allow_hosts": ("sage.example.com",)}):
        with pytest.raises(ConfigError, match="no token protects it"), serving(root, **options):
            pass


def test_a_token_file_in_the_repository_is_refused(tmp_path: Path) -> None:
    root = write_base(tmp_path / "repo")
    TokenFile(root / "tokens.json").create("ci")
    options: dict[str, Any] = {"require_token": True, "tokens": root / "tokens.json"}
    with pytest.raises(ConfigError, match="lies in the repository"), serving(root, **options):
        pass
