"""Who asks."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sage.access.auth import (
    ANYBODY,
    Access,
    Authenticator,
    Claims,
    SingleSignOn,
    bearer,
    jwt_claims,
)
from sage.access.options import HttpOptions, JwtOptions
from sage.access.refusals import Refused
from sage.access.token_file import Grant, TokenFile
from sage.errors import ConfigError
from tests.conftest import Base, Clock


async def sign_on(value: str) -> Claims | None:
    return {
        "ada": {"sub": "ada", "exp": 4_000_000_000},
        "bob": {"client_id": "bob", "sage_layers": "core,practices", "exp": 4_000_000_000},
    }.get(value)


def admit(keeper: Authenticator, headers: Mapping[str, Sequence[str]], query: bytes = b"") -> Grant:
    pairs = [(name, value) for name, values in headers.items() for value in values]
    return asyncio.run(keeper.admit(pairs, query))


def refusal(keeper: Authenticator, headers: Mapping[str, Sequence[str]], query: bytes = b"") -> int:
    with pytest.raises(Refused) as caught:
        admit(keeper, headers, query)
    return caught.value.status


def test_a_server_for_its_own_machine_asks_for_nothing() -> None:
    keeper = Authenticator()
    assert keeper.asks_for_nothing
    assert admit(keeper, {}) is ANYBODY
    assert admit(keeper, {"authorization": ["Bearer anything"]}) is ANYBODY


PROXIES = """
    forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-forwarded-port
    x-forwarded-server x-forwarded x-real-ip x-client-ip x-cluster-client-ip true-client-ip
    via cf-connecting-ip cf-ray fastly-client-ip fly-client-ip x-original-forwarded-for
    x-original-host x-envoy-external-address x-amzn-trace-id x-azure-clientip
    x-appengine-user-ip x-arr-ssl cdn-loop x-varnish proxy-connection max-forwards
    x-proxyuser-ip x-scheme x-host tailscale-user-login ngrok-agent-ips
    x-goog-iap-jwt-assertion x-remote-addr x-some-product-nobody-knows
"""


@pytest.mark.parametrize("header", PROXIES.split())
def test_but_not_of_somebody_behind_a_proxy(header: str) -> None:
    assert refusal(Authenticator(), {header: ["10.0.0.9"]}) == 403


def test_tokens_and_single_sign_on_live_side_by_side(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    value = tokens.create("ci", ["core"])
    keeper = Authenticator(tokens, SingleSignOn(sign_on))
    assert admit(keeper, {"authorization": [f"Bearer {value}"]}) == Grant("ci", ("core",))
    assert admit(keeper, {"authorization": ["Bearer ada"]}) == Grant("ada", None)
    assert admit(keeper, {"authorization": ["Bearer bob"]}) == Grant("bob", ("core", "practices"))
    assert refusal(keeper, {"authorization": ["Bearer eve"]}) == 401


def test_a_token_of_ours_means_nothing_to_a_server_without_a_file() -> None:
    keeper = Authenticator(None, SingleSignOn(sign_on))
    assert refusal(keeper, {"authorization": ["Bearer sage_0123456789ab_" + "A" * 43]}) == 401


@pytest.mark.parametrize("query", [b"access_token=x", b"a=1&TOKEN=x", b"key=x", b"api_key=x"])
def test_a_url_with_a_token_is_refused_before_anything_else(query: bytes) -> None:
    keeper = Authenticator(None, SingleSignOn(sign_on))
    assert refusal(keeper, {"authorization": ["Bearer ada"]}, query) == 400
    assert admit(keeper, {"authorization": ["Bearer ada"]}, b"monkey=1") == Grant("ada")


def test_the_word_bearer_may_be_written_in_any_case() -> None:
    assert bearer(["bearer  x "]) == "x"


def test_what_clients_send_of_their_own_is_no_sign_of_a_proxy() -> None:
    headers = "host accept accept-language content-type content-length user-agent origin connection"
    more = "mcp-protocol-version mcp-method mcp-name sec-fetch-mode traceparent x-request-id"
    assert admit(Authenticator(), {name: ["x"] for name in (headers + " " + more).split()})


def test_a_proxy_that_adds_no_header_is_known_by_its_old_version() -> None:
    with pytest.raises(Refused):
        asyncio.run(Authenticator().admit([("host", "localhost")], b"", "1.0"))


NOW = 1_800_000_000.0
GOOD: dict[str, object] = {"sub": "ada", "exp": NOW + 60, "nbf": NOW, "iat": NOW}


def signed(claims: Claims, layers_claim: str = "") -> Grant:
    async def verify(_: str) -> Claims | None:
        return claims

    keeper = Authenticator(None, SingleSignOn(verify, layers_claim), lambda: NOW)
    return admit(keeper, {"authorization": ["Bearer x"]})


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "value", [None, True, "1900000000", [], {}, float("nan"), float("inf"), -1, 10**400]
)
def test_a_time_that_is_none_lets_nobody_in(claim: str, value: object) -> None:
    with pytest.raises(Refused) as caught:
        signed({**GOOD, claim: value})
    assert caught.value.status == 401


@pytest.mark.parametrize("changes", [{"exp": NOW}, {"nbf": NOW + 60}, {"iat": NOW + 60}])
def test_a_token_is_good_from_its_beginning_to_its_end(changes: dict[str, object]) -> None:
    assert signed(GOOD) == Grant("ada")
    with pytest.raises(Refused):
        signed({**GOOD, **changes})


@pytest.mark.parametrize("name", [None, "", 7, ["ada"], {"sub": "ada"}, True])
def test_a_token_of_nobody_lets_nobody_in(name: object) -> None:
    with pytest.raises(Refused):
        signed({**GOOD, "sub": name})


@pytest.mark.parametrize("layers", [None, "", " ", [], [None], ["core", 7], {"core": 1}, 0, True])
@pytest.mark.parametrize("claim", ["", "teams"])
def test_a_claim_of_layers_that_names_none_grants_none(layers: object, claim: str) -> None:
    with pytest.raises(Refused) as caught:
        signed({**GOOD, claim or "sage_layers": layers}, claim)
    assert caught.value.status == 403


def test_a_claim_that_the_operator_named_must_be_there() -> None:
    with pytest.raises(Refused):
        signed(GOOD, "teams")
    assert signed({**GOOD, "teams": "all"}, "teams") == Grant("ada")
    assert signed({**GOOD, "teams": ["core"]}, "teams") == Grant("ada", ("core",))


def test_what_was_granted_ends_with_its_token(tmp_path: Path, clock: Clock) -> None:
    tokens = TokenFile(tmp_path / "tokens.json", clock)
    keeper = Authenticator(tokens, SingleSignOn(sign_on), clock)
    lasting = {"authorization": [f"Bearer {tokens.create('ci')}"]}
    short = {"authorization": [f"Bearer {tokens.create('me', None, 60)}"]}
    first, second = admit(keeper, lasting), admit(keeper, short)
    assert keeper.still_admits(first)
    assert keeper.still_admits(second)
    clock.tick(61)
    assert not keeper.still_admits(second)
    tokens.revoke("ci")
    assert not keeper.still_admits(first)
    assert not keeper.still_admits(Grant("ada", expires=clock() - 1))
    assert keeper.still_admits(ANYBODY)


@pytest.mark.parametrize(
    "options",
    [
        JwtOptions("https://id.example", "sage"),
        JwtOptions("https://id.example", "sage", jwks_uri="https://id.example/k", public_key="k"),
    ],
)
def test_single_sign_on_needs_one_place_of_its_keys(base: Base, options: JwtOptions) -> None:
    with pytest.raises(ConfigError, match="one of them"):
        Access.at(["127.0.0.1"], HttpOptions(jwt=options), base.open({}).settings)


def test_an_algorithm_that_nobody_knows_is_a_mistake_of_the_settings() -> None:
    with pytest.raises(ConfigError, match="single sign-on"):
        jwt_claims(JwtOptions("https://id.example", "sage", public_key="k", algorithm="ROT13"))
